"""Workloads as a decision sees them, with only what a test is about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpumem_operator.api.scaling import ScalingTarget
from gpumem_operator.scaling.decision import Decision, decide
from gpumem_operator.scaling.facts import TargetFacts, TargetPod, TenantRoom
from gpumem_operator.scaling.memory import Memory

GIB = 2**30
NOW = 1_800_000_000
STARTING = "starting"
SIGNAL = {"metricName": "vllm:kv_cache_usage_perc", "port": 8000, "targetValue": "0.8"}


def target(**fields: Any) -> ScalingTarget:
    """A Deployment between 1 and 20 replicas that is to hold 80 % of its limits."""
    reference = {"kind": "Deployment", "name": "serve"}
    return ScalingTarget.model_validate({"targetRef": reference, "maxReplicas": 20, **fields})


def pods(*percents: float | str, limit: int = 10 * GIB, **fields: Any) -> tuple[TargetPod, ...]:
    """One pod for each percentage of its limit, reason why it is not known, or STARTING."""
    return tuple(
        TargetPod(
            name=f"serve-{number}",
            started=percent != STARTING,
            limit_bytes=limit,
            used_bytes=None if isinstance(percent, str) else int(limit * percent / 100),
            unknown=percent if isinstance(percent, str) else None,
            **fields,
        )
        for number, percent in enumerate(percents)
    )


def room(gib: int, *, pod: int | None = 10, tenant: str = "research") -> TenantRoom:
    return TenantRoom(tenant, gib * GIB, None if pod is None else pod * GIB)


def decision(
    loads: Iterable[TargetPod],
    *,
    replicas: int | None = None,
    rooms: tuple[TenantRoom, ...] = (),
    memory: Memory | None = None,
    now: int = NOW,
    **fields: Any,
) -> Decision:
    """Without a memory: one that says what is there, and that nothing else was recommended."""
    found = tuple(loads)
    facts = TargetFacts(len(found) if replicas is None else replicas, found, rooms)
    return decide(target(**fields), facts, memory or Memory(), now=now)


AT_ONCE: Any = {"scaleDown": {"stabilizationSeconds": 0}}
"""Shrinks without waiting."""
