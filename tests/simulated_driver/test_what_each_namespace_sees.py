"""A table of driver versions and callers, as NVIDIA's kernel module answered over time."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from devcluster.sandbox import child_of, inside, new_namespace
from devcluster.simulated_driver import MIB, Driver, numbered_device
from simulated_driver.node import Node, needs_namespaces, process

HELD = 8192
HOST_PIDS = ("510.39.01", "525.60.13", "535.104.12", "535.112.99")
HIDES_MEMORY = ("535.113.01", "550.54.14", "560.35.03", "565.57.00")
RIGHT = ("565.57.01", "570.86.15", "580.159.03", "615.71.09")


class Seen(NamedTuple):
    pid: str  # "host": the node's PID, "inside": that of the process's own namespace
    mib: int


EVERY_VERSION = (*HOST_PIDS, *HIDES_MEMORY, *RIGHT)
SCENARIOS = [
    *[(version, "the host", Seen("host", HELD)) for version in EVERY_VERSION],
    *[(version, "the same namespace", Seen("host", HELD)) for version in HOST_PIDS],
    *[(version, "the same namespace", Seen("inside", 0)) for version in HIDES_MEMORY],
    *[(version, "the same namespace", Seen("inside", HELD)) for version in RIGHT],
    *[(version, "a sibling namespace", Seen("host", HELD)) for version in HOST_PIDS],
    *[(version, "a sibling namespace", None) for version in (*HIDES_MEMORY, *RIGHT)],
]


def version_of(version: str) -> Driver:
    return Driver((numbered_device(0),), version=version)


@needs_namespaces
@pytest.mark.parametrize(
    ("version", "caller", "seen"),
    SCENARIOS,
    ids=[f"{version} from {caller}" for version, caller, _ in SCENARIOS],
)
def test_a_process_in_a_container(node: Node, version: str, caller: str, seen: Seen | None) -> None:
    node.use(version_of(version))
    with node.hold(HELD, prefix=new_namespace()) as held:
        host_pid = child_of(held.pid)
        node.card()  # the node's own tools look at the card now and then
        position = {
            "the host": (),
            "the same namespace": inside(host_pid),
            "a sibling namespace": new_namespace(),
        }
        card = node.card(position[caller])

    pids = {"host": host_pid, "inside": held.pid_inside}
    assert card["compute"] == ([process(pids[seen.pid], seen.mib)] if seen else [])
    assert card["memory_v2"]["used"] == HELD * MIB, "the card's own number is everybody's"


@needs_namespaces
@pytest.mark.parametrize(("version", "mib"), [("550.54.14", 0), ("580.159.03", HELD)])
def test_a_namespace_between_host_and_process_sees_its_own_pid_of_it(
    node: Node, version: str, mib: int
) -> None:
    """A node that is itself a container, as in kind."""
    node.use(version_of(version))
    nested = (*new_namespace(), "bash", "-c", '"$0" "$@"; exit', *new_namespace())
    with node.hold(HELD, prefix=nested) as held:
        between = child_of(held.pid)
        seen = node.card(inside(between))["compute"]
        from_host = node.card()["compute"]
    host_pid = from_host[0][0]
    assert seen == [process(seen[0][0], mib)]
    assert seen[0][0] not in (host_pid, held.pid_inside)


@needs_namespaces
def test_processes_of_the_host_are_not_seen_from_a_container(node: Node) -> None:
    with node.hold(HELD):
        assert node.card(new_namespace())["compute"] == []
        assert node.card(new_namespace())["memory_v2"]["used"] == HELD * MIB


@needs_namespaces
def test_an_old_driver_shows_a_foreign_pid_before_the_host_has_looked(node: Node) -> None:
    node.use(version_of("525.60.13"))
    with node.hold(HELD, prefix=new_namespace()) as held:
        [seen] = node.card(inside(child_of(held.pid)))["compute"]
    assert seen[1] == HELD * MIB
    assert seen[0] > 3_000_000, "a number that is no PID of the caller's namespace"


@pytest.mark.parametrize(
    ("version", "has_v3"), [("470.82.01", False), ("495.46", False), ("510.39.01", True)]
)
def test_drivers_before_510_lack_the_third_version_of_the_lists(
    node: Node, version: str, has_v3: bool
) -> None:
    node.use(version_of(version))
    with node.hold(HELD) as held:
        card = node.card()
    listed = [process(held.pid, HELD)]
    missing = {"error": "FUNCTION_NOT_FOUND"}
    assert card["compute"] == (listed if has_v3 else missing)
    assert card["compute_v2"] == listed
    assert (card["memory_v2"] == missing) is not has_v3
    assert card["memory"]["used"] > HELD * MIB


def test_pynvml_names_the_missing_version_with_an_exception_of_its_own(node: Node) -> None:
    """Its unversioned functions raise what is no NVMLError: code that measures must catch both."""
    node.use(version_of("470.82.01"))
    code = """
import pynvml
pynvml.nvmlInit()
try:
    pynvml.nvmlDeviceGetComputeRunningProcesses(pynvml.nvmlDeviceGetHandleByIndex(0))
except pynvml.NVMLLibraryMismatchError as error:
    print(isinstance(error, pynvml.NVMLError))
"""
    assert node.run(code).stdout == "False\n"


def test_the_version_says_that_it_is_a_simulation(node: Node) -> None:
    seen = node.observe()
    assert seen["driver"] == "580.159.03-simulated"
    assert seen["nvml"] == "13.580.159.03-simulated"
    assert seen["cards"][0]["name"] == "Simulated H200"
