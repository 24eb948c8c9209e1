"""A real node, as one object."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from devcluster.binaries import find_node_binaries
from devcluster.channel import Channel
from devcluster.controlplane import Cluster
from devcluster.failure import ClusterError, log_tail
from devcluster.gpu_node import label_gpus, offer_gpus
from devcluster.node import cdi
from devcluster.node.containerd import NVIDIA, SOCKET
from devcluster.node.offer import Offer
from devcluster.node.pause import pause_archive
from devcluster.node.requirements import why_not
from devcluster.packagepath import python_path
from devcluster.simulated_driver import Driver, create_state, write_driver

READY_SECONDS = 120.0
"""The usual is a few seconds; a busy CI machine may take its time."""
IMPORT_SECONDS = 300.0
END_SECONDS = 30.0
POLL_SECONDS = 0.1
_RUNTIME_CLASS = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": NVIDIA},
    "handler": NVIDIA,
}


class Node:
    """kubelet, containerd, kube-proxy and CoreDNS on this machine, as the only node of a cluster.

    The API server reaches its pods, webhooks behind a Service and the logs of containers, and pods
    reach the API server as in any cluster. Nothing outside this machine can be reached.
    """

    name = "node-1"

    def __init__(self, cluster: Cluster, keeper: subprocess.Popen[bytes], channel: Channel) -> None:
        """Use `Node.start`."""
        self.driver_state = cluster.root / "simulated-driver"
        """The state of the simulated driver, where the node has one: for faults, for example."""
        self.cluster = cluster
        self._keeper = keeper
        self._channel = channel
        self._binaries = find_node_binaries()
        self._plugins: list[subprocess.Popen[bytes]] = []
        self.address = ""
        """Of the node, as pods and the API server see it."""
        self.pid = 0
        """The first process of the node's namespaces, in which it has process id 1."""
        self.services = ""
        """How addresses of Services lead to pods: by `kube-proxy`, or `relayed`."""

    @classmethod
    def start(
        cls,
        cluster: Cluster,
        *,
        driver: Driver | None = None,
        driver_everywhere: bool = True,
        relays_services: bool = False,
    ) -> Self:
        """Start a node and wait until it is Ready and may run pods.

        With a simulated `driver`, containers of the RuntimeClass `nvidia` find its library and
        `simulated-alloc`; with `driver_everywhere` all others do, too. With `relays_services`
        a program of this package stands in for kube-proxy, as it does on kernels without nftables.
        Raises ClusterError where this machine lacks something, or with the end of the log of a
        component that ended."""
        if (reason := why_not()) is not None:
            raise ClusterError(f"No node can run here: {reason}.")
        find_node_binaries()
        node = cls(cluster, *_spawn_keeper(cluster.logs / "node-keeper.log"))
        try:
            node._begin(driver, everywhere=driver_everywhere, relays_services=relays_services)
        except BaseException:
            node.stop()
            raise
        return node

    def import_image(self, archive: Path) -> None:
        """Give the node an image from an OCI or Docker archive, under the name it has there."""
        self._ctr("images", "import", str(archive))

    def offer_gpus(self, *, cards: int, mib_per_card: int, replicas: int = 1) -> None:
        """What a GPU's own components would say of it: labels, and GPUs to request.

        The kubelet knows nothing of these GPUs; those of a `plug_in` it hands out itself."""
        offer_gpus(
            self.cluster, self.name, cards=cards, mib_per_card=mib_per_card, replicas=replicas
        )

    def label_gpus(self, *, cards: int, mib_per_card: int, replicas: int = 1) -> None:
        """What GPU feature discovery and NVIDIA's GPU operator would say of the node."""
        label_gpus(
            self.cluster, self.name, cards=cards, mib_per_card=mib_per_card, replicas=replicas
        )

    def write_cdi(self, specification: str) -> None:
        """Say what containers get with each card that a plugin hands out by its name in CDI."""
        folder = Path(f"/proc/{self.pid}/root{cdi.FOLDER}")
        folder.mkdir(exist_ok=True)
        (folder / "gpus.json").write_text(specification)

    def plug_in(self, offer: Offer) -> None:
        """Start a device plugin and wait until the node offers what it does."""
        program = [sys.executable, "-m", "devcluster.node.device_plugin", offer.as_json()]
        environment = ["env", f"PYTHONPATH={python_path()}"]
        with (self.cluster.logs / "device-plugin.log").open("ab") as log:
            command = [*self.inside, *environment, *program]
            self._plugins.append(subprocess.Popen(command, stdout=log, stderr=log, cwd="/"))
        path = offer.resource.replace(".", "\\.")
        get = ["get", "node", self.name, "-o", f"jsonpath={{.status.allocatable.{path}}}"]
        deadline = time.monotonic() + READY_SECONDS
        while self.cluster.kubectl(*get).stdout != str(len(offer.devices)):
            self._check_before(deadline, f"the node offers no {offer.resource}")
            time.sleep(POLL_SECONDS)

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a program of this machine inside the node's namespaces."""
        return subprocess.run([*self.inside, *command], capture_output=True, text=True)

    @property
    def inside(self) -> list[str]:
        """What to put before a command that is to run inside the node's namespaces."""
        return ["nsenter", "--target", str(self.pid), "--all"]

    def check(self) -> None:
        """Raise ClusterError, with the end of its log, when a component has died."""
        self._channel.send({"do": "check"})
        self._receive()

    def stop(self) -> None:
        """End everything and remove its files; may be called twice."""
        self._channel.close()
        try:
            self._keeper.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            # The kernel kills the node with it.
            self._keeper.kill()
            self._keeper.wait()
        # They are in the node's namespaces, and ended with these.
        for plugin in self._plugins:
            plugin.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    # Parts of the start

    def _begin(self, driver: Driver | None, *, everywhere: bool, relays_services: bool) -> None:
        if driver is not None:
            create_state(self.driver_state, driver)
        port = urllib.parse.urlsplit(self.cluster.url).port
        self._channel.send(
            {
                "root": str(self.cluster.root),
                "port": port,
                "name": self.name,
                "driver_state": str(self.driver_state) if driver is not None else None,
                "driver_everywhere": everywhere,
                "relays_services": relays_services,
                "python_path": python_path(),
                "binaries": {name: str(path) for name, path in self._binaries.items()},
            }
        )
        told = self._receive()
        self.pid, self.address, self.services = told["pid"], told["address"], told["services"]
        if driver is not None:
            write_driver(self.driver_state, driver, node_process=self.pid)
        self.cluster.kubectl("apply", "-f", "-", input=json.dumps(_endpoint(told["machine"], port)))
        self.cluster.kubectl("apply", "-f", "-", input=json.dumps(_RUNTIME_CLASS))
        self._await_socket()
        self.import_image(pause_archive())
        self._await_ready()

    def _receive(self) -> dict[str, Any]:
        reply = self._channel.receive()
        if reply is None:
            log = log_tail(self.cluster.logs / "node-keeper.log")
            raise ClusterError(f"The keeper of the node is gone. The end of its log:\n{log}")
        if reply.get("error"):
            raise ClusterError(reply["error"])
        return reply

    def _await_socket(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not self._socket.is_socket():
            self._check_before(deadline, "containerd opened no socket")
            time.sleep(POLL_SECONDS)

    def _await_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        ready = '{.status.conditions[?(@.type=="Ready")].status} {.spec.taints[*].key}'
        get = ["get", "node", self.name, "--ignore-not-found", "-o", f"jsonpath={ready}"]
        while (said := self.cluster.kubectl(*get).stdout.strip()) != "True":
            self._check_before(deadline, f"the node did not become Ready: {said or 'unknown'}")
            time.sleep(POLL_SECONDS)

    def _check_before(self, deadline: float, what: str) -> None:
        self.check()
        if time.monotonic() > deadline:
            log = log_tail(self.cluster.logs / "kubelet.log")
            raise ClusterError(f"After {READY_SECONDS:.0f} s {what}. The kubelet's log:\n{log}")

    @property
    def _socket(self) -> Path:
        return Path(f"/proc/{self.pid}/root{SOCKET}")

    def _ctr(self, *arguments: str) -> None:
        command: Sequence[str | Path] = [self._binaries["ctr"], "-a", self._socket, "-n", "k8s.io"]
        done = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, timeout=IMPORT_SECONDS
        )
        if done.returncode != 0:
            shown = " ".join(arguments)
            raise ClusterError(f"`ctr {shown}` failed:\n{done.stdout}{done.stderr}".rstrip())


def _endpoint(address: str, port: int | None) -> dict[str, Any]:
    """Where the Service `kubernetes` leads: pods can not reach the API server's own address."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }


def _spawn_keeper(log: Path) -> tuple[subprocess.Popen[bytes], Channel]:
    ours, theirs = socket.socketpair()
    with theirs, log.open("wb") as output:
        keeper = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "devcluster.node.keeper",
                str(theirs.fileno()),
                str(os.getpid()),
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            env={**os.environ, "PYTHONPATH": python_path()},
            pass_fds=[theirs.fileno()],
            # A Ctrl-C at the terminal is for the caller; the keeper sees its consequence.
            start_new_session=True,
        )
    return keeper, Channel(ours)
