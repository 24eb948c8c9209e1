"""A real Kubernetes control plane for tests and demos, as one object."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from devcluster.binaries import find_binaries
from devcluster.channel import Channel
from devcluster.commands import Commands
from devcluster.components import Layout
from devcluster.failure import ClusterError, log_tail
from devcluster.kubeconfig import token_user, write_kubeconfig
from devcluster.packagepath import python_path
from devcluster.registry import remove_record

KEEPER_END_SECONDS = 20.0


class Cluster(Commands):
    """etcd, kube-apiserver, kube-controller-manager and kube-scheduler on loopback.

    There are no nodes: pods stay pending unless something plays a node. The processes and the
    folder are gone when the cluster is stopped, and also when this process ends in any way.
    """

    def __init__(
        self,
        layout: Layout,
        keeper: subprocess.Popen[bytes],
        channel: Channel,
        *,
        binaries: Mapping[str, Path],
    ) -> None:
        """Use `Cluster.start`."""
        super().__init__(layout.kubeconfig, root=layout.root, binaries=binaries)
        self._layout = layout
        self._keeper = keeper
        self._channel = channel
        self._lock = threading.Lock()
        self._detached = False
        self.url = ""

    @classmethod
    def start(
        cls,
        root: Path | None = None,
        *,
        audit_policy: Path | None = None,
        apiserver_flags: Sequence[str] = (),
        binaries: Mapping[str, Path] | None = None,
    ) -> Self:
        """Start a cluster and wait until pods can be created in its namespace `default`.

        `root` is a folder that does not exist yet, or an empty one; it is removed at the end.
        `audit_policy` turns on the audit log at `audit_log`. `apiserver_flags` come last on the
        command line, so they also override. `binaries` replaces some of the programs by name.
        Raises ClusterError, with the end of the log when a component died.
        """
        programs = {**find_binaries(), **(binaries or {})}
        layout = Layout(_make_root(root))
        cluster = cls(layout, *_spawn_keeper(layout), binaries=programs)
        request: dict[str, object] = {
            "root": str(layout.root),
            "binaries": {name: str(path) for name, path in programs.items()},
            "audit_policy": str(audit_policy.resolve()) if audit_policy else None,
            "apiserver_flags": list(apiserver_flags),
        }
        try:
            cluster.url = cluster._ask(request)
        except BaseException:
            cluster.stop()
            raise
        return cluster

    # Where things are

    @property
    def logs(self) -> Path:
        """The folder with one log for each component."""
        return self._layout.logs

    @property
    def audit_log(self) -> Path:
        """One JSON object a line; exists only with an audit policy."""
        return self._layout.audit_log

    @property
    def ca_pem(self) -> bytes:
        """The certificate that the apiserver's is signed with."""
        return (self._layout.pki / "ca.crt").read_bytes()

    def kubeconfig_for_token(self, token: str, path: Path) -> Path:
        """Write a kubeconfig for the bearer of `token`, say a ServiceAccount; returns `path`."""
        return write_kubeconfig(path, url=self.url, ca_pem=self.ca_pem, user=token_user(token))

    # Life

    def stop_apiserver(self) -> None:
        """End the apiserver; its data stay in etcd and its port stays reserved."""
        self._ask({"do": "stop-apiserver"})

    def start_apiserver(self) -> None:
        """Start the apiserver again at the same address, and wait until it is ready."""
        self._ask({"do": "start-apiserver"})

    def restart_apiserver(self, down_seconds: float = 0.0) -> None:
        """An outage of the apiserver that lasts at least `down_seconds`."""
        self.stop_apiserver()
        time.sleep(down_seconds)
        self.start_apiserver()

    def check(self) -> None:
        """Raise ClusterError, with the end of its log, when a component has died."""
        self._ask({"do": "check"})

    def detach(self) -> None:
        """Let the cluster outlive this process, until `python -m devcluster stop`."""
        self._ask({"do": "detach"})
        self._detached = True

    def hold(self) -> None:
        """Have `python -m devcluster stop` terminate this process, which is to end the cluster."""
        self._ask({"do": "hold"})

    def stop(self) -> None:
        """End all components and remove the folder, unless detached; may be called twice."""
        self._channel.close()
        if self._detached:
            return
        try:
            self._keeper.wait(KEEPER_END_SECONDS)
        except subprocess.TimeoutExpired:
            # The kernel kills the components with it.
            self._keeper.kill()
            self._keeper.wait()
        # The keeper did both of these, unless it was killed.
        shutil.rmtree(self.root, ignore_errors=True)
        remove_record(self._keeper.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _ask(self, request: dict[str, object]) -> str:
        """Have the keeper do something; returns the address of the apiserver."""
        with self._lock:
            with contextlib.suppress(BrokenPipeError):
                self._channel.send(request)
            reply = self._channel.receive()
        if reply is None:
            raise ClusterError(
                f"The keeper of {self.root} is gone. The end of its log:\n"
                f"{log_tail(self._layout.log_of('keeper'))}"
            )
        if "error" in reply:
            raise ClusterError(reply["error"])
        return str(reply["url"])


def _make_root(root: Path | None) -> Path:
    if root is None:
        root = Path(tempfile.mkdtemp(prefix="devcluster-"))
    elif root.exists() and any(root.iterdir()):
        raise ClusterError(
            f"{root} is not empty. A cluster removes its folder at the end,"
            " so give it one that does not exist yet."
        )
    root = root.resolve()
    Layout(root).logs.mkdir(parents=True)
    return root


def _spawn_keeper(layout: Layout) -> tuple[subprocess.Popen[bytes], Channel]:
    ours, theirs = socket.socketpair()
    with theirs, layout.log_of("keeper").open("wb") as log:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "devcluster.keeper", str(theirs.fileno()), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env={**os.environ, "PYTHONPATH": python_path()},
            pass_fds=[theirs.fileno()],
            # A Ctrl-C at the terminal is for the caller; the keeper sees its consequence.
            start_new_session=True,
        )
    return keeper, Channel(ours)
