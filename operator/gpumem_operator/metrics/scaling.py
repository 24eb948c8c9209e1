"""Series about scaling targets, read from the policies' statuses whenever somebody scrapes.

What is not known has no series: there is no number of replicas that would mean it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_TARGET: Final = ("namespace", "policy", "kind", "name")
_NUMBERS: Final = {
    "currentReplicas": ("gpumem_scaling_replicas", "What the workload asks for."),
    "desiredReplicas": ("gpumem_scaling_desired_replicas", "What the policy makes of it."),
    "recommendedReplicas": (
        "gpumem_scaling_recommended_replicas",
        "What its load alone would ask for, within the bounds of the policy.",
    ),
}
Targets = Callable[[], Iterable[tuple[str, str, Mapping[str, Any]]]]
"""Namespace and name of each policy, with its status."""


class ScalingCollector(Collector):
    """The entries of `status.scaling` of all policies."""

    def __init__(self, policies: Targets) -> None:
        self._policies = policies

    def describe(self) -> list[Metric]:
        """Nothing, so that registering looks at nothing."""
        return []

    def collect(self) -> Iterator[Metric]:
        entries = [
            (_labels(namespace, name, entry), entry)
            for namespace, name, status in self._policies()
            for entry in status.get("scaling") or ()
        ]
        for field, (series, text) in _NUMBERS.items():
            family = GaugeMetricFamily(series, text, labels=_TARGET)
            for labels, entry in entries:
                if field in entry:
                    family.add_metric(labels, entry[field])
            yield family
        reason = GaugeMetricFamily(
            "gpumem_scaling_reason",
            "1 for the reason in status.scaling: why it follows, is held back, or is not scaled.",
            labels=(*_TARGET, "reason"),
        )
        for labels, entry in entries:
            reason.add_metric([*labels, str(entry.get("reason", ""))], 1)
        yield reason


def _labels(namespace: str, policy: str, entry: Mapping[str, Any]) -> list[str]:
    target = entry.get("targetRef") or {}
    return [namespace, policy, str(target.get("kind", "")), str(target.get("name", ""))]
