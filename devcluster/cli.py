"""The command `python -m devcluster`."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from devcluster.binaries import find_binaries
from devcluster.controlplane import Cluster
from devcluster.failure import ClusterError
from devcluster.progress import say
from devcluster.registry import find_record, records, stop_cluster


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        options.action(options)
    except ClusterError as error:
        print(f"devcluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m devcluster",
        description="A real Kubernetes control plane on this machine, for tests and demos.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    build = commands.add_parser("build", help="find the programs, and build those not found")
    build.set_defaults(action=_build)

    start = commands.add_parser("start", help="start a cluster and print its kubeconfig's path")
    start.add_argument("dir", nargs="?", type=Path, help="its folder (default: a new one)")
    start.add_argument(
        "--keep", action="store_true", help="let it run on until `stop`, instead of until Ctrl-C"
    )
    start.add_argument("--audit-policy", type=Path, metavar="FILE", help="turn on the audit log")
    start.set_defaults(action=_start)

    stop = commands.add_parser("stop", help="end a cluster and remove its folder")
    stop.add_argument("dir", type=Path, help="the folder that `start` or `list` printed")
    stop.set_defaults(action=_stop)

    listing = commands.add_parser("list", help="show the clusters of this user")
    listing.set_defaults(action=_list)

    kubeconfig = commands.add_parser("kubeconfig", help="print the path of a kubeconfig")
    kubeconfig.add_argument("dir", type=Path, help="the folder that `start` or `list` printed")
    kubeconfig.set_defaults(action=_kubeconfig)
    return parser


def _build(_: argparse.Namespace) -> None:
    find_binaries(verbose=True)


def _start(options: argparse.Namespace) -> None:
    with Cluster.start(options.dir, audit_policy=options.audit_policy) as cluster:
        print(cluster.kubeconfig, flush=True)
        if not options.keep:
            say(f"{cluster.url} is ready; Ctrl-C ends it")
            signal.pause()
        cluster.detach()
        say(f"{cluster.url} is ready; `python -m devcluster stop {cluster.root}` ends it")


def _stop(options: argparse.Namespace) -> None:
    record = find_record(options.dir)
    stop_cluster(record)
    say(f"{record.url} is stopped, and {record.root} is removed")


def _list(_: argparse.Namespace) -> None:
    for record in records():
        life = "until stopped" if record.kept else "until its caller ends"
        state = life if record.running else "its keeper was killed: stop it to remove the folder"
        print(f"{record.root}\t{record.url}\t{state}")


def _kubeconfig(options: argparse.Namespace) -> None:
    print(Path(find_record(options.dir).root) / "kubeconfig")
