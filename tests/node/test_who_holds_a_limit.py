"""Who holds a pod's limit, by real processes under a real kubelet; and each known way round.

The pod has 8 GiB. The agent looks, the leader decides, and `kubectl gpumem` tells.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from devcluster.installation import NAMESPACE
from devcluster.node import Node
from endtoend.team import Team
from gpumem_operator.cli import leader
from gpumem_operator.cli.cluster import Access, cluster
from intake.people import gpumem
from node.cgroups import limit_group
from node.frameworks import (
    HOLDS,
    IDLES,
    TRAINS,
    allocation,
    process_in,
    processes_in,
    run_with_frameworks,
)
from node.workload import (
    execute,
    execution,
    holding,
    nvml_everywhere,
    nvml_in_gpu_containers,
    restricted_pod_spec,
    run_pod,
    sidecar_image,
)
from patience import PATIENCE_SECONDS

pytestmark = pytest.mark.cluster

FORGES = """
import json, os, sys
sys.path.insert(0, "/library")
import gpu
gpu.start(); gpu.context(0)
started = int(open("/proc/self/stat").read().rpartition(")")[2].split()[19])
uuid, cap, reserve = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch = {"name": "torch", "version": "2.9.0", "caps": [{"gpu": uuid, "capBytes": cap}],
    "notCapped": None, "capHits": 0, "reclaim": "Supported"}
state = {"schemaVersion": 1, "pid": os.getpid(), "startTime": started, "container": "main",
    "limitBytes": 8 * 2**30, "contextReserveBytes": reserve, "processesPerGpu": 1,
    "frameworks": [torch], "gpus": []}
os.makedirs("/run/gpumem/main", exist_ok=True)
with open(f"/run/gpumem/main/{os.getpid()}-{started}.json", "w") as file:
    json.dump(state, file)
print("holding", flush=True)
sys.stdin.read()
"""
"""Holds 518 MiB, and writes what the shim would: a cap and a reserve as it is told."""
MIB, GIB = 2**20, 2**30
PAUSE_SECONDS = 0.5
"""The leader answers four questions in a second."""


@pytest.fixture
def team(team: Team) -> Team:
    """Its policy leaves measurement to the agent."""
    spec = {"limits": {"default": "8Gi"}, "monitoring": {"mode": "NodeAgent"}}
    team.kubectl("patch", "gmp", "training", "--type=merge", "-p", json.dumps({"spec": spec}))
    team.until("get", "gmp", "training", "-o", "yaml", until="observedGeneration: 2")
    return team


def told(team: Team) -> dict[str, Any]:
    """What the leader says of the namespace's only pod."""
    [pod] = asyncio.run(_document(team))["pods"]
    found: dict[str, Any] = pod
    return found


async def _document(team: Team) -> Any:
    async with cluster(Access(kubeconfig=team.cluster.kubeconfig)) as api:
        return await leader.ask(api, leader.Release(), namespace=team.name)


def until(team: Team, look: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not look(found := told(team)):
        assert time.monotonic() < deadline, json.dumps(found, indent=1)
        time.sleep(PAUSE_SECONDS)
    return found


def until_held_by(team: Team, expected: str) -> dict[str, Any]:
    """`expected` is the enforcer with its reason, if it has one: `None: NoShim`."""
    return until(team, lambda pod: ": ".join(filter(None, _enforcer(pod))) == expected)


def _enforcer(pod: dict[str, Any]) -> tuple[str, str | None]:
    # A pod that the leader has just seen has neither.
    return pod.get("enforcedBy", ""), pod.get("enforcedReason")


def unbound(pod: dict[str, Any]) -> list[int]:
    """PIDs of processes that nothing bounds."""
    return [one["pid"] for one in _processes(pod) if one["boundBy"] == "None"]


def _caps(pod: dict[str, Any]) -> list[int]:
    return [one["capBytes"] for one in _processes(pod)]


def _processes(pod: dict[str, Any]) -> list[dict[str, Any]]:
    rows = [row for one in pod["containers"] for row in one["perGpu"]]
    return [one for row in rows for one in row["processes"]]


PYTHON = ("python", "-c", HOLDS)
ROUND = {
    "unset PYTHONPATH": ("env", "-u", "PYTHONPATH", *PYTHON),
    "python -S": ("python", "-S", "-c", HOLDS),
    "python -E": ("python", "-E", "-c", HOLDS),
    "python -I": ("python", "-I", "-c", HOLDS),
    "a program in C": allocation(512),
}
UNCAPPED = {
    "no caching": ("env", "PYTORCH_NO_CUDA_MEMORY_CACHING=1", *PYTHON),
    "an allocator of its own": ("env", "SIMULATED_TORCH_BACKEND=pluggable", *PYTHON),
}


def test_a_framework_is_believed_until_a_process_shows_that_it_does_not_hold(team: Team) -> None:
    run_with_frameworks(team, "train", TRAINS)
    pod = until_held_by(team, "Framework")
    [row] = pod["containers"][0]["perGpu"]
    [process] = row["processes"]
    assert (process["boundBy"], process["frameworks"]) == ("Framework", ["torch"])
    assert process["capBytes"] + process["reserveBytes"] <= 8 * GIB

    for way, command in ROUND.items():
        with process_in(team, "train", *command):
            pod = until_held_by(team, "None: NoShim")
            [free] = unbound(pod)
            assert pod["enforcedDetail"] == f"process {free}", way
            assert free != process["pid"]
        until_held_by(team, "Framework")

    for way, command in UNCAPPED.items():
        with process_in(team, "train", *command):
            pod = until_held_by(team, "None: NotCapped")
            [free] = unbound(pod)
            assert pod["enforcedDetail"] == f"process {free}: torch AllocatorHasNoCap", way
        until_held_by(team, "Framework")

    with process_in(team, "train", *PYTHON):
        pod = until_held_by(team, "None: SeveralProcesses")
        assert pod["enforcedDetail"].startswith("2 processes: caps and reserves allow 16Gi")
    until_held_by(team, "Framework")

    tell_to_hold(team, "SIGUSR1")
    pod = until_held_by(team, "None: OverLimit")
    assert pod["enforcedDetail"].startswith(f"process {process['pid']}")
    tell_to_hold(team, "SIGUSR2")
    # It is held again before the shim has put its cap back to where it was.
    as_before = ("Framework", None), [process["capBytes"]]
    until(team, lambda pod: (_enforcer(pod), _caps(pod)) == as_before)

    lines = why(team, "train")
    assert "  limit of main held by Framework\n" in lines
    whose = "on the node" if pod["source"] == "NodeAgent" else "in the pod"
    number = f"process {process['pid']} (its id {whose})"
    assert f"    {number}: holds 2566Mi, bound by Framework, cap 7Gi" in lines


def tell_to_hold(team: Team, signal: str) -> None:
    send = f"import os, signal; os.kill(int(open('/tmp/pid').read()), signal.{signal})"
    execute(team, "train", "python", "-S", "-c", send)


def test_a_forged_state_is_believed_as_far_as_it_is_kept_to(team: Team) -> None:
    run_with_frameworks(team, "forger", IDLES)
    shown = execute(team, "forger", "python", "-S", "-c", UUID).strip()

    for cap, reserve, expected in (
        (7 * GIB, GIB, "Framework"),
        (100 * GIB, GIB, "None: OverLimit"),
        (256 * MIB, 0, "None: OverLimit"),
    ):
        forged = ("python", "-S", "-c", FORGES, shown, str(cap), str(reserve))
        with process_in(team, "forger", *forged):
            until_held_by(team, expected)
        until_held_by(team, "Unknown: NoProcess")


UUID = """
import os, ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
nvml.nvmlInit_v2()
handle, text = ctypes.c_void_p(), ctypes.create_string_buffer(96)
nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle))
nvml.nvmlDeviceGetUUID(handle, text, 96)
given = os.environ.get("NVIDIA_VISIBLE_DEVICES", "")
print(given if given.startswith("GPU-") else text.value.decode())
"""


@nvml_everywhere
def test_a_container_that_asked_for_nothing_is_seen_with_what_it_holds(team: Team) -> None:
    run_with_frameworks(team, "train", TRAINS)
    until_held_by(team, "Framework")
    debug(team, "train", ["simulated-alloc", "--gpu", "0", "--mib", "512"])
    until_held_by(team, "None: NotAsked")
    # The kernel ends everything else in the container with its first process, this one too.
    end = "import os; os.kill(1, 15)"
    execution(team, "train", "python", "-S", "-c", end, container="debugger")
    until_held_by(team, "Framework")


@nvml_everywhere
def test_a_pod_that_asks_for_nothing_and_gives_itself_every_card_is_named(team: Team) -> None:
    command = ["simulated-alloc", "--gpu", "0", "--mib", "512"]
    program = f"import os; os.execvp('simulated-alloc', {command})"
    spec = restricted_pod_spec(program, env={"NVIDIA_VISIBLE_DEVICES": "all"})
    del spec["containers"][0]["resources"]
    run_pod(team, "taker", spec)
    until_held_by(team, "None: NotAsked")
    step = "next step: ask for the GPU in resources.limits, or set NVIDIA_VISIBLE_DEVICES to void"
    assert step in why(team, "taker")


def why(team: Team, pod: str) -> str:
    return gpumem(team.cluster.kubeconfig, "why", f"pod/{pod}", "-n", team.name).stdout


def debug(team: Team, pod: str, command: list[str]) -> None:
    """An ephemeral container, as `kubectl debug --profile=restricted` makes it."""
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {
        "name": "debugger",
        "image": sidecar_image(),
        "command": command,
        "securityContext": security,
    }
    stored = team.get("pod", pod)
    stored["spec"]["ephemeralContainers"] = [container]
    path = f"/api/v1/namespaces/{team.name}/pods/{pod}/ephemeralcontainers"
    answer = team.cluster.kubectl("replace", "--raw", path, "-f", "-", input=json.dumps(stored))
    assert '"debugger"' in answer.stdout


@nvml_in_gpu_containers
def test_managed_memory_counts_against_the_limit_of_who_has_the_card_alone(team: Team) -> None:
    run_pod(team, "managed", restricted_pod_spec(holding(512, managed_mib=8192)))

    pod = until_held_by(team, "None: OverLimit")
    assert "8704Mi held, limit 8Gi" in pod["enforcedDetail"]


def test_a_client_of_mps_is_held_by_the_limit_that_it_was_started_with(team: Team) -> None:
    run_with_frameworks(team, "mps", IDLES)
    client = allocation(512, "--kind", "mps")

    with process_in(team, "mps", *client):
        pod = until_held_by(team, "MPS")
        [row] = pod["containers"][0]["perGpu"]
        assert [one["capBytes"] for one in row["processes"]] == [8 * GIB]
        with process_in(team, "mps", *client):
            until_held_by(team, "None: SeveralProcesses")
        until_held_by(team, "MPS")
        with process_in(team, "mps", "env", "-u", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", *client):
            pod = until_held_by(team, "None: NoShim")
            assert pod["enforcedDetail"] == f"process {unbound(pod)[0]}"
        until_held_by(team, "MPS")


def test_the_drivers_limit_is_told_once_it_was_read_back_and_holds_every_process(
    operator_in_pods: Node, team: Team
) -> None:
    stored = run_with_frameworks(team, "driver", IDLES)
    with process_in(team, "driver", *allocation(512)):
        until_held_by(team, "None: NoShim")
        with limit_group(operator_in_pods, stored, 8 * GIB) as group:
            group.take(processes_in(stored, "simulated-alloc"))
            until_held_by(team, "Driver")
            with process_in(team, "driver", *allocation(256)):
                group.take(processes_in(stored, "simulated-alloc"))
                pod = until(team, lambda pod: pod.get("usedBytes") == 768 * MIB)
                assert pod["enforcedBy"] == "Driver"
            group.lift()
            until_held_by(team, "None: NoShim")


def test_a_node_is_labelled_once_its_agent_can_read_the_drivers_limits(
    operator_in_pods: Node, team: Team
) -> None:
    get = ["get", "node", operator_in_pods.name, "-o", "yaml"]
    team.until(*get, until='gpumemory.dev/enforcer.driver: "true"')


def test_the_agent_may_do_no_more_than_it_was_given(operator_in_pods: Node) -> None:
    where = ["daemonset/gpu-memory-operator-agent", "-n", NAMESPACE, "--"]
    look = "print(open('/proc/self/status').read()); open('/sys/fs/cgroup/cgroup.procs', 'w')"
    done = operator_in_pods.cluster.kubectl("exec", *where, "python", "-c", look, check=False)
    assert "CapEff:\t0000000000080024\n" in done.stdout, "SYS_PTRACE, DAC_READ_SEARCH, KILL"
    assert "Read-only file system" in done.stderr
