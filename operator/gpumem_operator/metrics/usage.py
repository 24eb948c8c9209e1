"""Series about GPU memory, read from the leader's snapshot whenever somebody scrapes.

Nothing is set and nothing has to be unset: a pod that is gone is not in the snapshot, and neither
is a value that is not known. Those have a series `gpumem_unknown` with the reason instead.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gpumem_operator.metrics.detail import PROCESSES
from gpumem_operator.reports.cards import Card
from gpumem_operator.reports.snapshot import PodView, Snapshot

_POD: Final = ("namespace", "pod", "container", "node", "policy", "tenant", "enforced_by")
_CARD: Final = ("node", "gpu")
_CARD_PARTS: Final = {
    "total": "All memory of a card.",
    "reserved": "What the driver keeps of a card for itself.",
    "attributed": "What pods hold of a card.",
    "free": "What nobody holds of a card.",
}


class UsageCollector(Collector):
    """All series about pods, cards, tenants and namespaces."""

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot

    def describe(self) -> list[Metric]:
        """Nothing, so that registering costs no snapshot."""
        return []

    def collect(self) -> Iterator[Metric]:
        snapshot = self._snapshot()
        yield from _pods(snapshot)
        yield from _cards(snapshot)
        yield from _totals(snapshot)
        yield _cap_hits(snapshot)
        if PROCESSES.get():
            yield _processes(snapshot)


@contextmanager
def showing(collector: Collector, registry: CollectorRegistry = REGISTRY) -> Iterator[None]:
    """Show the collector's series until the block ends."""
    registry.register(collector)
    try:
        yield
    finally:
        registry.unregister(collector)


def _pods(snapshot: Snapshot) -> Iterator[Metric]:
    limit = GaugeMetricFamily(
        "gpumem_limit_bytes",
        "The most that a container may hold on each of its GPUs.",
        labels=_POD,
    )
    used = GaugeMetricFamily(
        "gpumem_used_bytes",
        "What a container holds on a GPU, as measured. The label gpu is empty where it holds"
        " nothing.",
        labels=(*_POD, "gpu"),
    )
    least = GaugeMetricFamily(
        "gpumem_used_at_least_bytes",
        "The part that is known of what a container holds on a GPU, where the whole is not.",
        labels=(*_POD, "gpu"),
    )
    unknown = GaugeMetricFamily(
        "gpumem_unknown",
        "1 for what a container holds on a GPU and nobody can say; the label gpu is empty where"
        " not even the GPU is known.",
        labels=(*_POD, "gpu", "reason"),
    )
    for view in snapshot.pods.values():
        for container in view.use.pod.containers:
            if container.limit_bytes is not None:
                limit.add_metric(_labels(view, container.name), container.limit_bytes)
        for row in view.use.rows:
            labels = [*_labels(view, row.container), row.gpu]
            if row.amount.bytes is not None:
                used.add_metric(labels, row.amount.bytes)
            else:
                unknown.add_metric([*labels, row.amount.unknown or ""], 1)
                if row.amount.at_least:
                    least.add_metric(labels, row.amount.at_least)
    yield from (limit, used, least, unknown)


def _cards(snapshot: Snapshot) -> Iterator[Metric]:
    families = {
        part: GaugeMetricFamily(f"gpumem_gpu_{part}_bytes", text, labels=_CARD)
        for part, text in _CARD_PARTS.items()
    }
    families["unattributed"] = GaugeMetricFamily(
        "gpumem_unattributed_bytes", "What is held of a card by no pod that is known.", labels=_CARD
    )
    unknown = GaugeMetricFamily(
        "gpumem_gpu_unknown", "1 for a card that can not be read.", labels=(*_CARD, "reason")
    )
    for card in snapshot.cards:
        _add_card(card, families, unknown)
    yield from (*families.values(), unknown)


def _add_card(
    card: Card, families: dict[str, GaugeMetricFamily], unknown: GaugeMetricFamily
) -> None:
    labels = [card.node, card.uuid]
    if card.parts is None:
        unknown.add_metric([*labels, card.unknown or ""], 1)
        return
    for part, family in families.items():
        family.add_metric(labels, getattr(card.parts, part))


def _totals(snapshot: Snapshot) -> Iterator[Metric]:
    labels = ("tenant", "namespace")
    charged = CounterMetricFamily(
        "gpumem_charged_byte_seconds",
        "What was charged, over time; it outlives pods.",
        labels=labels,
    )
    used = CounterMetricFamily(
        "gpumem_used_byte_seconds",
        "What was measured to be held, over time; it outlives pods.",
        labels=labels,
    )
    unmeasured = CounterMetricFamily(
        "gpumem_unmeasured_pod_seconds",
        "How long pods ran without being measured: they are not in gpumem_used_byte_seconds.",
        labels=labels,
    )
    for account, totals in snapshot.totals.items():
        charged.add_metric(account, totals.charged)
        used.add_metric(account, totals.used)
        unmeasured.add_metric(account, totals.unmeasured_pod_seconds)
    yield from (charged, used, unmeasured)


def _cap_hits(snapshot: Snapshot) -> Metric:
    family = CounterMetricFamily(
        "gpumem_cap_hits",
        "Allocations that failed because a framework had reached its cap, as its shim says.",
        labels=(*_POD, "framework"),
    )
    for place, hits in snapshot.cap_hits.items():
        view = snapshot.pods.get(place.pod_uid)
        if view is not None:
            family.add_metric([*_labels(view, place.container), place.framework], hits)
    return family


def _processes(snapshot: Snapshot) -> Metric:
    family = GaugeMetricFamily(
        "gpumem_process_used_bytes",
        "What one process holds on a GPU; only in answers to ?processes=true.",
        labels=(*_POD, "gpu", "pid"),
    )
    for view in snapshot.pods.values():
        for row in view.use.rows:
            for process in row.processes:
                if process.amount.bytes is not None:
                    labels = [*_labels(view, row.container), row.gpu, str(process.pid)]
                    family.add_metric(labels, process.amount.bytes)
    return family


def _labels(view: PodView, container: str) -> list[str]:
    pod = view.use.pod
    enforcer = view.enforcers.get(container)
    tenants = ",".join(sorted(view.charges))
    kind = enforcer.kind if enforcer else ""
    return [pod.namespace, pod.name, container, pod.node, pod.policy, tenants, kind]
