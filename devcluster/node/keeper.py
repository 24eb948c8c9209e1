"""The process that owns one node, and takes it along when it or its caller ends.

It stands outside the node's namespaces and is the parent of their first process, which dies with
it. As with the keeper of a cluster, the caller holds one end of a socket to it. What the kernel
does not take away, cgroups and files, is removed here.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from devcluster.balancer import Balancer
from devcluster.channel import Channel
from devcluster.components import Component, Layout
from devcluster.failure import ClusterError, log_tail
from devcluster.node import cgroups, containerd, dns, driver, kubelet, network
from devcluster.node.files import NodeFiles
from devcluster.node.requirements import cni_folder, search_path
from devcluster.node.service_relay import kernel_has_nftables
from devcluster.simulated_driver import build as build_driver
from devcluster.termination import termination_signals

INIT_SECONDS = 30.0
POLL_SECONDS = 0.01


class NodeKeeper:
    """One node, from its first process to the removal of its files."""

    def __init__(self, request: dict[str, Any]) -> None:
        self._layout = Layout(Path(request["root"]))
        self._files = NodeFiles(self._layout.root / "node")
        self._port: int = request["port"]
        self._binaries: dict[str, str] = request["binaries"]
        self._python_path: str = request["python_path"]
        self._name: str = request["name"]
        self._driver_state: str | None = request["driver_state"]
        self._driver_everywhere: bool = request["driver_everywhere"]
        self._relays: bool = request["relays_services"] or not kernel_has_nftables()
        self._ends = ExitStack()

    def start(self) -> dict[str, Any]:
        """Start everything; what the caller is told about it."""
        self._ends.callback(self._remove_files)
        self._files.create()
        cgroups.remove_abandoned()
        cgroup = cgroups.own_name()
        self._ends.callback(cgroups.remove, cgroup)
        cgroups.create(cgroup)
        pipe = self._files.root / "plan"
        os.mkfifo(pipe)
        self._namespaces = self._unshare(pipe)
        self._ends.callback(self._end_namespaces)
        pid = self._first_pid()
        block = network.connect(pid)
        self._ends.callback(network.disconnect, block)
        relay = Balancer(self._port, [self._port], host=block.machine_address)
        self._ends.callback(relay.close)
        self._write_configuration(block, cgroup)
        self._hand_over(self._plan(block), pipe)
        return {
            "pid": pid,
            "address": block.node_address,
            "machine": block.machine_address,
            "services": "relayed" if self._relays else "kube-proxy",
        }

    def wait(self, channel: Channel, caller: int) -> None:
        """Serve the caller until it is gone or a signal comes."""
        caller_pidfd = os.pidfd_open(caller)
        stop = termination_signals()
        events = [channel.fileno(), caller_pidfd, stop.fileno()]
        while True:
            ready, _, _ = select.select(events, [], [])
            if ready != [channel.fileno()] or channel.receive() is None:
                return
            channel.send({"error": self.obituary()})

    def obituary(self) -> str | None:
        """What ended, with the end of its log; None while the node lives."""
        if self._namespaces.running:
            return None
        said = log_tail(self._namespaces.log, lines=3)
        ended = said.split()[0] if said.strip() else ""
        log = self._layout.log_of(ended)
        if not ended or not log.exists():
            return f"The node's first process ended:\n{said}"
        return f"{said.strip()}. The end of its log:\n{log_tail(log)}"

    def end(self) -> None:
        self._ends.close()

    # Parts of the start

    def _unshare(self, pipe: Path) -> Component:
        """Make the namespaces. Their first process is killed with `unshare`, and that with us."""
        namespaces = ["--mount", "--net", "--pid", "--ipc", "--uts"]
        command = ["unshare", *namespaces, "--fork", "--kill-child", "--mount-proc"]
        init = ["env", f"PYTHONPATH={self._python_path}", sys.executable, "-m"]
        init += ["devcluster.node.init", str(pipe)]
        return Component("node", [*command, *init], self._layout.log_of("node"))

    def _first_pid(self) -> int:
        children = Path(f"/proc/{self._namespaces.pid}/task/{self._namespaces.pid}/children")
        deadline = time.monotonic() + INIT_SECONDS
        while self._namespaces.running and time.monotonic() < deadline:
            with suppress(FileNotFoundError):
                if pids := children.read_text().split():
                    return int(pids[0])
            time.sleep(POLL_SECONDS)
        raise ClusterError(f"No namespaces could be made. {self._namespaces.obituary()}")

    def _hand_over(self, plan: dict[str, Any], pipe: Path) -> None:
        """Give the first process its plan, and wait until it has read it."""
        # Opened for both directions, it neither waits for a reader nor breaks without one.
        descriptor = os.open(pipe, os.O_RDWR)
        try:
            os.write(descriptor, json.dumps(plan).encode() + b"\n")
            # Closed earlier, it would take the plan away with it.
            while self._namespaces.running and select.select([descriptor], [], [], 0)[0]:
                time.sleep(POLL_SECONDS)
        finally:
            os.close(descriptor)

    def _write_configuration(self, block: network.Block, cgroup: str) -> None:
        plugins = cni_folder()
        assert plugins is not None, "looked for before the start"
        files = self._files
        snapshotter = containerd.snapshotter_for(files.root)
        base = self._write_base_specification()
        files.write(
            containerd.CONFIGURATION,
            containerd.configuration(
                cni_folder=plugins,
                snapshotter=snapshotter,
                base_specification=base,
                everywhere=self._driver_everywhere,
            ),
        )
        files.write(containerd.NETWORKS / "10-pods.conflist", containerd.network_list(block))
        pki = self._layout.pki
        kubelet.write_credentials(pki, block=block, name=self._name, port=self._port)
        files.write(
            files.KUBELET_CONFIGURATION, kubelet.configuration(pki, cgroup=cgroup, block=block)
        )
        files.write(dns.CONFIGURATION, dns.configuration(pki))
        for name, value in kubelet.TUNABLES.items():
            files.tunable(name).parent.mkdir(parents=True, exist_ok=True)
            files.tunable(name).write_text(f"{value}\n")

    def _write_base_specification(self) -> Path | None:
        if self._driver_state is None:
            return None
        default = subprocess.run(
            [self._binaries["ctr"], "oci", "spec"], check=True, capture_output=True, text=True
        ).stdout
        built = build_driver()
        content = driver.base_specification(
            default,
            library=built.library,
            program=built.program,
            state=Path(self._driver_state),
        )
        self._files.write(driver.BASE_SPECIFICATION, content)
        return driver.BASE_SPECIFICATION

    def _plan(self, block: network.Block) -> dict[str, Any]:
        pki = self._layout.pki
        kubelet_flags = kubelet.kubelet_arguments(
            pki, configuration=self._files.KUBELET_CONFIGURATION, name=self._name, block=block
        )
        commands = {
            "containerd": self._program("containerd", f"--config={containerd.CONFIGURATION}"),
            "kubelet": self._program("kubelet", *kubelet_flags),
            **self._services(block),
            "coredns": self._program("coredns", f"-conf={dns.CONFIGURATION}"),
        }
        sockets = {"containerd": str(containerd.SOCKET)}
        return {
            "path": search_path(),
            "binds": [[str(source), target] for source, target in self._files.binds()],
            "components": [
                {
                    "name": name,
                    "command": command,
                    "log": str(self._layout.log_of(name)),
                    "socket": sockets.get(name),
                }
                for name, command in commands.items()
            ],
        }

    def _services(self, block: network.Block) -> dict[str, list[str]]:
        """What makes addresses of Services lead somewhere."""
        pki = self._layout.pki
        if not self._relays:
            arguments = kubelet.proxy_arguments(pki, name=self._name, block=block)
            return {"kube-proxy": self._program("kube-proxy", *arguments)}
        module = [sys.executable, "-m", "devcluster.node.service_relay"]
        where = [block.machine_address, str(self._port), str(pki)]
        environment = ["env", f"PYTHONPATH={self._python_path}"]
        return {"service-relay": [*environment, *module, *where]}

    def _program(self, name: str, *arguments: str) -> list[str]:
        return [self._binaries[name], *arguments]

    # Parts of the end

    def _end_namespaces(self) -> None:
        """Kill the first process. The kernel lets it go only after all others of the node."""
        children = Path(f"/proc/{self._namespaces.pid}/task/{self._namespaces.pid}/children")
        with suppress(FileNotFoundError, ProcessLookupError):
            for pid in children.read_text().split():
                os.kill(int(pid), signal.SIGKILL)
        self._namespaces.close()

    def _remove_files(self) -> None:
        shutil.rmtree(self._files.root, ignore_errors=True)
        # The cluster may have gone first, and could not remove what was still in use.
        with suppress(OSError):
            self._layout.root.rmdir()


def main(socket_descriptor: int, caller: int) -> None:
    channel = Channel(socket.socket(fileno=socket_descriptor))
    if os.getppid() != caller:
        return  # It died before it could be watched.
    request = channel.receive()
    if request is None:
        return
    keeper = NodeKeeper(request)
    try:
        channel.send(_started(keeper))
        keeper.wait(channel, caller)
    except BrokenPipeError:
        pass
    finally:
        keeper.end()


def _started(keeper: NodeKeeper) -> dict[str, Any]:
    try:
        return keeper.start()
    except ClusterError as error:
        return {"error": str(error)}
    except Exception:
        # Our log goes with the folder, so a mistake of ours is told to the caller.
        return {"error": f"The keeper of the node failed:\n{traceback.format_exc()}"}


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
