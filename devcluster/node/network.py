"""The network of one node: a namespace of its own, with one cable to this machine.

    this machine                          the node's namespace
    10.231.N.1 gpumemN  <--- cable --->  10.231.N.2 uplink
    route 10.232.N.0/24 via 10.231.N.2    bridge with the pods, 10.232.N.1

The machine's firewall and forwarding stay as they are: nothing is translated, and nothing leaves
this machine. The kernel removes the cable, and the route with it, when the namespace ends.
"""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from devcluster.failure import ClusterError
from devcluster.node.requirements import find_program

LINKS = ipaddress.IPv4Network("10.231.0.0/16")
PODS = ipaddress.IPv4Network("10.232.0.0/16")
DNS_ADDRESS = "10.96.0.10"
"""Inside every node's namespace, so that any number of nodes may have the same."""
UPLINK = "uplink"


@dataclass(frozen=True)
class Block:
    """The addresses of node number `number` of this machine."""

    number: int

    @property
    def interface(self) -> str:
        return f"gpumem{self.number}"

    @property
    def link(self) -> ipaddress.IPv4Network:
        return list(LINKS.subnets(new_prefix=24))[self.number]

    @property
    def pods(self) -> ipaddress.IPv4Network:
        return list(PODS.subnets(new_prefix=24))[self.number]

    @property
    def machine_address(self) -> str:
        return str(self.link[1])

    @property
    def node_address(self) -> str:
        return str(self.link[2])


def connect(namespace_pid: int) -> Block:
    """Lay a cable into the network namespace of a process, in the first block that is free.

    Raises ClusterError when every block is taken."""
    taken = _routed_networks()
    for number in range(1, 255):
        block = Block(number)
        if any(block.link.overlaps(net) or block.pods.overlaps(net) for net in taken):
            continue
        if _lay_cable(block, namespace_pid):
            _configure(block, namespace_pid)
            return block
    raise ClusterError(
        f"No free network for a node: all of {LINKS} and {PODS} is in use on this machine."
        " `ip route` shows by whom; end nodes that are not needed."
    )


def disconnect(block: Block) -> None:
    """Remove the cable now, where the kernel would do it a moment later."""
    subprocess.run([_ip(), "link", "delete", block.interface], capture_output=True)


def _lay_cable(block: Block, namespace_pid: int) -> bool:
    """False where another node was faster: the name of an interface is the lock."""
    add = ["link", "add", block.interface, "type", "veth"]
    peer = ["peer", "name", UPLINK, "netns", str(namespace_pid)]
    done = subprocess.run([_ip(), *add, *peer], capture_output=True, text=True)
    if done.returncode != 0 and "File exists" not in done.stderr:
        raise ClusterError(f"`ip link add {block.interface}` failed: {done.stderr.strip()}")
    return done.returncode == 0


def _configure(block: Block, namespace_pid: int) -> None:
    prefix = block.link.prefixlen
    _run(["address", "add", f"{block.machine_address}/{prefix}", "dev", block.interface])
    _run(["link", "set", block.interface, "up"])
    inside = ["nsenter", "--target", str(namespace_pid), "--net", _ip()]
    for arguments in (
        ["link", "set", "lo", "up"],
        ["address", "add", f"{DNS_ADDRESS}/32", "dev", "lo"],
        ["address", "add", f"{block.node_address}/{prefix}", "dev", UPLINK],
        ["link", "set", UPLINK, "up"],
        ["route", "add", "default", "via", block.machine_address],
    ):
        _run(arguments, inside)
    _run(["route", "add", str(block.pods), "via", block.node_address])


def _routed_networks() -> list[ipaddress.IPv4Network]:
    """Networks that this machine already knows a way to, the default route left out."""
    shown = subprocess.run([_ip(), "-json", "-4", "route", "show"], capture_output=True, text=True)
    routes = json.loads(shown.stdout or "[]")
    return [
        ipaddress.IPv4Network(route["dst"], strict=False)
        for route in routes
        if route["dst"] != "default"
    ]


def _run(arguments: Sequence[str], command: Sequence[str] = ()) -> None:
    full = [*(command or [_ip()]), *arguments]
    done = subprocess.run(full, capture_output=True, text=True, env=os.environ)
    if done.returncode != 0:
        raise ClusterError(f"`{' '.join(full)}` failed: {done.stderr.strip()}")


def _ip() -> str:
    return find_program("ip") or "ip"
