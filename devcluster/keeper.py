"""The process that owns the components of one cluster, and takes them along when it ends.

A test run can end in many ways (a failed fixture, Ctrl-C, SIGKILL by a CI system), and none of
them may leave an apiserver behind. The caller therefore owns no component. It holds one end of a
socket to the keeper, which the kernel closes whatever happens to the caller; the keeper then ends
the components and removes the folder. Should the keeper itself be killed, the kernel kills the
components, as they asked it to (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from devcluster.channel import Channel
from devcluster.components import (
    Component,
    Layout,
    Options,
    apiserver_arguments,
    controller_manager_arguments,
    etcd_arguments,
    scheduler_arguments,
)
from devcluster.credentials import write_credentials
from devcluster.failure import ClusterError, log_tail
from devcluster.ports import HeldPort
from devcluster.probe import Probe
from devcluster.registry import Record, process_start, remove_record, write_record
from devcluster.termination import termination_signals

START_SECONDS = 120.0
"""Far more than the usual few seconds: a busy CI machine may run several clusters at once."""
TERMINATE_SECONDS = 5.0
"""How long components may take to end by themselves before they are killed."""
POLL_SECONDS = 0.05

APISERVER = "kube-apiserver"


class CallerGone(Exception):
    """Nobody wants this cluster any more."""


class Keeper:
    """One cluster, from its first process to the removal of its folder."""

    def __init__(self, channel: Channel, *, caller: int) -> None:
        self._channel = channel
        self._selector = selectors.DefaultSelector()
        self._selector.register(channel, selectors.EVENT_READ, "caller")
        self._caller = caller
        self._caller_pidfd = os.pidfd_open(caller)
        # The socket alone would not do: children that the caller forked may hold it open.
        self._selector.register(self._caller_pidfd, selectors.EVENT_READ, "caller died")
        self._selector.register(termination_signals(), selectors.EVENT_READ, "signal")
        self._detached = False
        self._components: dict[str, Component] = {}
        self._ports = {name: HeldPort() for name in ("etcd", APISERVER)}

    def run(self) -> None:
        """Serve one caller until it is gone, or, once detached, until a signal."""
        request = self._channel.receive()
        if request is None:
            return
        self._layout = Layout(Path(request["root"]))
        self._binaries: dict[str, str] = request["binaries"]
        self._options = Options(request["audit_policy"], tuple(request["apiserver_flags"]))
        try:
            self._answer(self._start)
            while True:
                self._serve()
        except (CallerGone, BrokenPipeError):
            pass
        finally:
            self._end()

    # Starting and serving

    @property
    def _url(self) -> str:
        return f"https://127.0.0.1:{self._ports[APISERVER].number}"

    def _start(self) -> None:
        self._register(kept=False)
        etcd_port = self._ports["etcd"].number
        self._spawn("etcd", etcd_arguments(self._layout, port=etcd_port))
        write_credentials(self._layout, url=self._url)
        self._probe = Probe(self._ports[APISERVER].number, self._layout.pki)
        self._start_apiserver()
        self._spawn("kube-controller-manager", controller_manager_arguments(self._layout))
        self._spawn("kube-scheduler", scheduler_arguments(self._layout))
        # Pods are refused in a namespace that does not have its ServiceAccount yet.
        self._await_path("/api/v1/namespaces/default/serviceaccounts/default")

    def _register(self, *, kept: bool, holder: int | None = None) -> None:
        pid = os.getpid()
        start = process_start(pid)
        assert start is not None, "this process has no /proc entry"
        held = (holder, process_start(holder)) if holder is not None else (None, None)
        write_record(Record(str(self._layout.root), self._url, pid, start, kept, *held))

    def _serve(self) -> None:
        """Wait for one request or event, and act on it."""
        actions: dict[str, Callable[[], None]] = {
            "start-apiserver": self._start_apiserver,
            "stop-apiserver": lambda: self._terminate([APISERVER]),
            "detach": self._detach,
            "hold": lambda: self._register(kept=True, holder=self._caller),
            "check": self._raise_for_dead,
        }
        for name in self._events(None):
            if name == "caller":
                request = self._channel.receive()
                if request is None:
                    raise CallerGone
                self._answer(actions[request["do"]])

    def _answer(self, action: Callable[[], None]) -> None:
        reply: dict[str, Any] = {"url": self._url}
        try:
            action()
        except CallerGone:
            raise
        except ClusterError as error:
            reply = {"error": str(error)}
        except Exception:
            # Our log goes with the folder, so a mistake of ours is told to the caller.
            reply = {"error": f"The keeper failed:\n{traceback.format_exc()}"}
        self._channel.send(reply)
        if self._detached:
            self._selector.unregister(self._channel)

    def _detach(self) -> None:
        self._register(kept=True)
        self._detached = True
        self._selector.unregister(self._caller_pidfd)

    # Components

    def _spawn(self, name: str, arguments: Sequence[str]) -> None:
        command = [self._binaries[name], *arguments]
        component = Component(name, command, self._layout.log_of(name))
        self._components[name] = component
        self._selector.register(component.pidfd, selectors.EVENT_READ, name)

    def _start_apiserver(self) -> None:
        if APISERVER in self._components and self._components[APISERVER].running:
            raise ClusterError("The apiserver is running already. Stop it first.")
        self._forget(APISERVER)
        etcd_port = self._ports["etcd"].number
        port = self._ports[APISERVER].number
        arguments = apiserver_arguments(self._layout, self._options, port=port, etcd_port=etcd_port)
        self._spawn(APISERVER, arguments)
        self._await_path("/readyz")

    def _terminate(self, names: Sequence[str]) -> None:
        """End components: politely, then by force. Those that are gone already count as ended."""
        ending = [self._components[name] for name in names if name in self._components]
        for component in ending:
            component.signal(signal.SIGTERM)
        deadline = time.monotonic() + TERMINATE_SECONDS
        with selectors.DefaultSelector() as selector:
            for component in ending:
                selector.register(component.pidfd, selectors.EVENT_READ)
            while selector.get_map() and (left := deadline - time.monotonic()) > 0:
                for key, _ in selector.select(left):
                    selector.unregister(key.fd)
        for component in ending:
            component.signal(signal.SIGKILL)
            self._forget(component.name)

    def _forget(self, name: str) -> None:
        component = self._components.pop(name, None)
        if component is None:
            return
        if component.pidfd in self._selector.get_map():
            self._selector.unregister(component.pidfd)
        component.close()

    def _raise_for_dead(self) -> None:
        for component in self._components.values():
            if not component.running:
                raise ClusterError(component.obituary())

    # Waiting

    def _await_path(self, path: str) -> None:
        """Wait until the apiserver answers `path`, while all components live."""
        deadline = time.monotonic() + START_SECONDS
        while not self._probe.succeeds(path):
            self._raise_for_dead()
            if time.monotonic() > deadline:
                log = self._layout.log_of(APISERVER)
                raise ClusterError(
                    f"The apiserver did not answer {path} within {START_SECONDS:.0f} s."
                    f" The end of its log:\n{log_tail(log)}"
                )
            # A message in the middle of a start can only be the end of the caller.
            if "caller" in self._events(POLL_SECONDS):
                raise CallerGone

    def _events(self, timeout: float | None) -> list[str]:
        """What happened until `timeout`; raises CallerGone when it is time to end."""
        names: list[str] = []
        for key, _ in self._selector.select(timeout):
            if key.data in ("caller died", "signal"):
                raise CallerGone
            if key.data in self._components:
                # It stays in `_components`, where the next check finds it dead.
                self._selector.unregister(key.fd)
            names.append(key.data)
        return names

    def _end(self) -> None:
        # Clients before servers: a server whose clients are still there takes long to end.
        for names in (["kube-controller-manager", "kube-scheduler"], [APISERVER], ["etcd"]):
            self._terminate(names)
        shutil.rmtree(self._layout.root, ignore_errors=True)
        remove_record(os.getpid())


def main(socket_descriptor: int, caller: int) -> None:
    channel = Channel(socket.socket(fileno=socket_descriptor))
    if os.getppid() != caller:
        return  # It died before it could be watched.
    Keeper(channel, caller=caller).run()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
