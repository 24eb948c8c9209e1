"""Series about scaling and enforcement: what they count, and when they go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client import REGISTRY, CollectorRegistry

from gpumem_operator.metrics.enforcement import EnforcementSeries
from gpumem_operator.metrics.scaling import ScalingCollector

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "serve"}
LABELS = {"namespace": "research", "policy": "training"}


@pytest.fixture
def series() -> Iterator[EnforcementSeries]:
    made = EnforcementSeries()
    yield made
    made.end()


def actions(policy: str = "training") -> float | None:
    labels = LABELS | {"policy": policy, "action": "Evict", "result": "Done"}
    return REGISTRY.get_sample_value("gpumem_enforcement_actions_total", labels)


def over(reason: str) -> float | None:
    return REGISTRY.get_sample_value("gpumem_pods_over_limit", LABELS | {"reason": reason})


def test_actions_are_counted_until_their_policy_or_namespace_goes(
    series: EnforcementSeries,
) -> None:
    for policy in ("training", "training", ""):
        series.count("research", policy, action="Evict", result="Done")
    series.keep({"research"}, {("research", "training")})
    assert (actions(), actions("")) == (2, 1)
    series.keep({"research"}, {("vision", "training")})
    assert (actions(), actions("")) == (None, 1), "of the tenant's default policy"
    series.keep({"vision"}, set())
    assert actions("") is None


def test_pods_over_their_limits_are_counted_by_what_is_done(series: EnforcementSeries) -> None:
    series.show([("research", "training", "Evicting")] * 2 + [("research", "training", "Killing")])
    assert (over("Evicting"), over("Killing")) == (2, 1)
    series.show([("research", "training", "BlockedByPDB")])
    assert (over("Evicting"), over("BlockedByPDB")) == (None, 1)


def test_one_that_does_not_lead_any_more_shows_nothing(series: EnforcementSeries) -> None:
    series.count("research", "training", action="Evict", result="Done")
    series.show([("research", "training", "Evicting")])
    series.end()
    assert (actions(), over("Evicting")) == (None, None)


def test_scaling_shows_what_is_stored_and_nothing_that_is_not_known() -> None:
    entry = {
        "targetRef": TARGET,
        "reason": "Stabilizing",
        "currentReplicas": 4,
        "desiredReplicas": 4,
        "recommendedReplicas": 2,
    }
    unread = {"targetRef": TARGET | {"name": "gone"}, "reason": "TargetNotFound"}
    status: dict[str, Any] = {"scaling": [entry, unread]}
    registry = CollectorRegistry()
    registry.register(ScalingCollector(lambda: [("research", "training", status)]))

    def value(series: str, name: str = "serve", **labels: str) -> float | None:
        own = LABELS | {"kind": "Deployment", "name": name} | labels
        return registry.get_sample_value(f"gpumem_scaling_{series}", own)

    assert [value(one) for one in ("replicas", "desired_replicas", "recommended_replicas")] == [
        4, 4, 2,
    ]  # fmt: skip
    assert value("reason", reason="Stabilizing") == 1
    assert value("replicas", "gone") is None
    assert value("reason", "gone", reason="TargetNotFound") == 1
    status.clear()
    assert value("replicas") is None
