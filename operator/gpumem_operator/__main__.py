"""The command `gpumem-operator`: one image, one process for each role.

A role's package is imported only when the role is chosen: the webhook process does without the
Kubernetes client that the controller needs, and with it without a third of its memory.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from gpumem_operator.api.values import Values
from gpumem_operator.kube import decoding
from gpumem_operator.settings import Flags, SettingsError, load_values

ROLES = ("webhook", "controller", "uninstall")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one role until SIGTERM; the exit status is 2 where flags or settings are wrong."""
    decoding.install()
    parser = _parser()
    options = parser.parse_args(arguments)
    flags = _flags(options)
    try:
        return _run_of(flags.role)(flags, load_values(options.settings))
    except SettingsError as error:
        print(f"gpumem-operator: {error}", file=sys.stderr)
        return 2


def _run_of(role: str) -> Callable[[Flags, Values], int]:
    if role == "webhook":
        from gpumem_operator.webhook import process as webhook

        return webhook.run
    if role == "uninstall":
        from gpumem_operator.controllers import uninstall

        return uninstall.run
    from gpumem_operator.controllers import process as controller

    return controller.run


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpumem-operator", description="One process of the GPU memory operator."
    )
    add = parser.add_argument
    add("--role", choices=ROLES, required=True, help="what this process does")
    add("--settings", type=Path, required=True, metavar="FILE", help="the chart's values, as YAML")
    add("--namespace", required=True, metavar="NS", help="namespace of the release")
    add("--kubeconfig", type=Path, metavar="FILE", help="default: the pod's own ServiceAccount")
    add("--bind", default="0.0.0.0", metavar="HOST", help="address of all listeners")
    add("--port", type=_port, default=9443, metavar="N", help="TLS server of the role")
    add("--health-port", type=_port, default=8080, metavar="N", help="probes and metrics")
    certificate = parser.add_mutually_exclusive_group()
    certificate.add_argument("--cert-secret", metavar="NAME", help="Secret with tls.crt, tls.key")
    certificate.add_argument(
        "--cert-dir", type=Path, metavar="DIR", help="folder with tls.crt, tls.key (role webhook)"
    )
    add("--seal-secret", metavar="NAME", help="Secret with the key that seals declarations")
    add("--ca-secret", metavar="NAME", help="Secret of the CA (role controller)")
    add(
        "--webhook-configuration",
        action="append",
        default=[],
        metavar="NAME",
        help="webhook configuration that gets the CA (role controller); may be repeated",
    )
    add(
        "--webhook-host",
        action="append",
        default=[],
        metavar="HOST",
        help="name or address that the certificate is made for (role controller); may be repeated",
    )
    add("--lease", metavar="NAME", help="Lease of the leader (role controller)")
    add(
        "--nodes-config-map",
        default="",
        metavar="NAME",
        help="ConfigMap about nodes, written by the controller and read by the webhook",
    )
    add(
        "--agent-account",
        default="",
        metavar="NAME",
        help="ServiceAccount of node agents, which report (role controller)",
    )
    add(
        "--reader-account",
        default="",
        metavar="NAME",
        help="ServiceAccount whose tokens may ask what is known (role controller)",
    )
    add("--pod", default="", metavar="NAME", help="the process's own pod (role controller)")
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: give a number up to 65535")
    return int(text)


def _flags(options: argparse.Namespace) -> Flags:
    return Flags(
        role=options.role,
        namespace=options.namespace,
        kubeconfig=options.kubeconfig,
        bind=options.bind,
        port=options.port,
        health_port=options.health_port,
        cert_secret=options.cert_secret,
        cert_dir=options.cert_dir,
        seal_secret=options.seal_secret,
        ca_secret=options.ca_secret,
        webhook_configurations=tuple(options.webhook_configuration),
        webhook_hosts=tuple(options.webhook_host),
        lease=options.lease,
        nodes_config_map=options.nodes_config_map,
        agent_account=options.agent_account,
        reader_account=options.reader_account,
        pod=options.pod,
    )


if __name__ == "__main__":
    sys.exit(main())
