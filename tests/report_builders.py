"""Reports as senders write them, and pods as measurement sees them, with only what a test is about.

report(process(bytes=GIB), gpu())                   a sidecar's, of pod "pod-1"
report(process(), agent=True, given={("pod-1", "main"): [GPU]})  an agent's
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpumem_operator.reports.measured import GpuContainer, MeasuredPod
from gpumem_operator.reports.report import Report

Raw = dict[str, Any]
GIB = 2**30
MIB = 2**20
GPU = "GPU-11111111-0000-0000-0000-000000000001"
OTHER_GPU = "GPU-11111111-0000-0000-0000-000000000002"
NODE = "gpu-1"
NAMESPACE = "team"


def gpu(
    uuid: str = GPU,
    *,
    total: int | None = 80 * GIB,
    reserved: int | None = GIB,
    used: int | None = 0,
    unknown: str | None = None,
    parent: str | None = None,
) -> Raw:
    """A card as its sender sees it; with `unknown` it can not be read."""
    amounts = (None, None, None) if unknown else (total, reserved, used)
    return {
        "uuid": uuid,
        "index": 0,
        "model": "NVIDIA H200",
        "parent": parent,
        "totalBytes": amounts[0],
        "reservedBytes": amounts[1],
        "usedBytes": amounts[2],
        "unknown": unknown,
    }


def process(
    amount: int | str = GIB,
    *,
    pid: int = 100,
    gpu: str = GPU,
    pod: str | None = "pod-1",
    container: str | None = "main",
    container_id: str | None = None,
    source: str = "NVML",
) -> Raw:
    """A process with an amount in bytes, or with the reason why there is none."""
    return {
        "pid": pid,
        "gpu": gpu,
        "podUid": pod,
        "container": container,
        "containerId": container_id,
        "bytes": amount if isinstance(amount, int) else None,
        "unknown": amount if isinstance(amount, str) else None,
        "source": source,
    }


def raw_report(
    *processes: Raw,
    gpus: Sequence[Raw] | None = None,
    agent: bool = False,
    given: Mapping[tuple[str, str], Sequence[str]] | None = None,
    unnamed: int = 0,
    unknown: str | None = None,
    sequence: int = 1,
    start: str = "first",
    kind: str = "Full",
    age_milliseconds: int = 0,
    left_out: int = 0,
) -> Raw:
    """A report as it is sent; `given` has GPUs by the uid of a `measured` pod and container."""
    return {
        "schemaVersion": 1,
        "sender": "NodeAgent" if agent else "Sidecar",
        "senderStart": start,
        "sequence": sequence,
        "ageMilliseconds": age_milliseconds,
        "kind": kind,
        "unknown": unknown,
        "gpus": [gpu()] if gpus is None else list(gpus),
        "processes": list(processes),
        "processesLeftOut": left_out,
        "assignments": [
            {
                "podNamespace": NAMESPACE,
                "podName": name_of(uid),
                "container": container,
                "gpus": list(gpus),
                "unnamed": unnamed,
            }
            for (uid, container), gpus in (given or {}).items()
        ],
    }


def name_of(uid: str) -> str:
    """Of a `measured` pod."""
    return f"name-of-{uid}"


def report(*processes: Raw, **fields: Any) -> Report:
    return Report.model_validate(raw_report(*processes, **fields))


def container(
    name: str = "main",
    *,
    gpus: int = 1,
    limit: int | None = 8 * GIB,
    profile: int | None = None,
    exclusive: bool = False,
) -> GpuContainer:
    return GpuContainer(name, gpus, limit, "Policy", profile, exclusive)


def measured(
    uid: str = "pod-1",
    *containers: GpuContainer,
    node: str = NODE,
    started: bool = True,
    shares: bool = True,
    sidecar: bool = True,
    ids: Mapping[str, str] | None = None,
    namespace: str = NAMESPACE,
    policy: str = "training",
    created: str = "2026-03-01T00:00:00Z",
) -> MeasuredPod:
    """A pod that runs, with one GPU container unless others are given."""
    given = containers or (container(),)
    return MeasuredPod(
        uid=uid,
        namespace=namespace,
        name=name_of(uid),
        node=node,
        policy=policy,
        containers=given,
        container_names=frozenset(one.name for one in given) | {"helper"},
        container_ids=ids or {},
        started=started,
        has_sidecar=sidecar,
        shares_processes=shares,
        created=created,
    )
