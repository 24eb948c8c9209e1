"""Series about what is done about pods over their limits; the leader's, and gone when it ends."""

from collections import Counter as Count
from collections.abc import Collection, Iterable
from typing import Final

from prometheus_client import Counter, Gauge

_ACTIONS: Final = Counter(
    "gpumem_enforcement_actions_total",
    "Lines of recentActions: what was done about pods over their limits, and what became of it.",
    ("namespace", "policy", "action", "result"),
)
_OVER: Final = Gauge(
    "gpumem_pods_over_limit",
    "Pods that are known to hold more than their limit, by what is done about it.",
    ("namespace", "policy", "reason"),
)
Labels = tuple[str, str, str]


class EnforcementSeries:
    """Of one leader. `policy` is empty where a tenant's default policy decides."""

    def __init__(self) -> None:
        self._counted: set[tuple[str, str, str, str]] = set()

    def count(self, namespace: str, policy: str, *, action: str, result: str) -> None:
        """One more line."""
        labels = (namespace, policy, action, result)
        self._counted.add(labels)
        _ACTIONS.labels(*labels).inc()

    def show(self, over: Iterable[Labels]) -> None:
        """One entry for each pod that is over: namespace, policy and reason; and no others."""
        _OVER.clear()
        for labels, number in Count(over).items():
            _OVER.labels(*labels).set(number)

    def keep(self, namespaces: Collection[str], policies: Collection[tuple[str, str]]) -> None:
        """Those of a policy end with it, those of a namespace's default policies with that."""
        gone = {
            labels
            for labels in self._counted
            if labels[0] not in namespaces or (labels[1] and labels[:2] not in policies)
        }
        for labels in gone:
            _ACTIONS.remove(*labels)
        self._counted -= gone

    def end(self) -> None:
        """Nobody is told anything by one that does not lead."""
        self.show(())
        self.keep((), ())
