"""The four processes of a control plane: their command lines, and their life as children."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from devcluster.failure import log_tail

PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Layout:
    """Where the files of one cluster are."""

    root: Path

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def pki(self) -> Path:
        return self.root / "pki"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's; the components have theirs in `pki`."""
        return self.root / "kubeconfig"

    @property
    def audit_log(self) -> Path:
        return self.logs / "audit.log"

    def log_of(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def kubeconfig_of(self, name: str) -> Path:
        return self.pki / f"{name}.kubeconfig"


@dataclass(frozen=True)
class Options:
    """What a caller may choose about the control plane."""

    audit_policy: str | None = None
    apiserver_flags: tuple[str, ...] = field(default=())


def etcd_arguments(layout: Layout, *, port: int) -> list[str]:
    """Nothing is fsynced: a test cluster's data need not survive the machine."""
    url = f"http://127.0.0.1:{port}"
    # A lone member talks to no peer, so any port will do for that, and it need not be known.
    peer_url = "http://127.0.0.1:0"
    return [
        f"--data-dir={layout.root / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=default={peer_url}",
        "--socket-reuse-port",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def apiserver_arguments(
    layout: Layout, options: Options, *, port: int, etcd_port: int
) -> list[str]:
    pki = layout.pki
    arguments = [
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        # A loopback address is refused as an endpoint; a node brings one that pods can reach.
        "--endpoint-reconciler-type=none",
        f"--secure-port={port}",
        "--permit-port-sharing",
        f"--tls-cert-file={pki / 'apiserver.crt'}",
        f"--tls-private-key-file={pki / 'apiserver.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        # For the logs of containers, where there is a node.
        f"--kubelet-client-certificate={pki / 'admin.crt'}",
        f"--kubelet-client-key={pki / 'admin.key'}",
        f"--kubelet-certificate-authority={pki / 'ca.crt'}",
        "--kubelet-preferred-address-types=InternalIP",
        # Webhooks behind a Service are called at its pods: addresses of Services lead nowhere here.
        "--enable-aggregator-routing",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged",
        # Without it a stop waits a minute for the watches of the clients.
        "--shutdown-watch-termination-grace-period=1s",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={pki / 'service-account.key'}",
        f"--service-account-key-file={pki / 'service-account.pub'}",
    ]
    if options.audit_policy is not None:
        arguments += [
            f"--audit-policy-file={options.audit_policy}",
            f"--audit-log-path={layout.audit_log}",
        ]
    return [*arguments, *options.apiserver_flags]


def controller_manager_arguments(layout: Layout) -> list[str]:
    return [
        f"--kubeconfig={layout.kubeconfig_of('kube-controller-manager')}",
        "--use-service-account-credentials",
        f"--root-ca-file={layout.pki / 'ca.crt'}",
        f"--service-account-private-key-file={layout.pki / 'service-account.key'}",
        *_CONTROLLER_FLAGS,
    ]


def scheduler_arguments(layout: Layout) -> list[str]:
    return [f"--kubeconfig={layout.kubeconfig_of('kube-scheduler')}", *_CONTROLLER_FLAGS]


_CONTROLLER_FLAGS = (
    # There is no rival to elect against, and with an election they would end themselves
    # whenever the apiserver is down for long.
    "--leader-elect=false",
    # Without a port of their own there is none to clash over.
    "--secure-port=0",
    # The usual 20 requests a second make the controller-manager take seconds to start.
    "--kube-api-qps=500",
    "--kube-api-burst=500",
)


class Component:
    """One running process, which ends when this process ends."""

    def __init__(self, name: str, command: Sequence[str | Path], log: Path) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd="/",
                env=_component_environment(),
                preexec_fn=_die_with(os.getpid()),
            )
        self.pidfd = os.pidfd_open(self._process.pid)
        """Becomes readable when the process ends."""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        if self.running:
            self._process.send_signal(number)

    def close(self) -> None:
        """Reap the ended process."""
        self._process.wait()
        os.close(self.pidfd)

    def obituary(self) -> str:
        return (
            f"{self.name} ended with status {self._process.poll()}."
            f" The end of its log:\n{log_tail(self.log)}"
        )


def _component_environment() -> Mapping[str, str]:
    """Nothing of the caller's but what finds programs and files: same cluster for everyone."""
    return {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}


def _die_with(parent: int) -> Callable[[], None]:
    """A function for the child to call first, so that it can not outlive `parent`."""
    libc = ctypes.CDLL(None, use_errno=True)

    def set_death_signal() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # It died before the call above could help.
            os._exit(1)

    return set_death_signal
