"""What is known after some reports, and how it is written down in tests."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from gpumem_operator.reports.attribution import attribute
from gpumem_operator.reports.measured import MeasuredPod
from gpumem_operator.reports.pictures import Sender
from gpumem_operator.reports.report import Report
from gpumem_operator.reports.store import Store
from gpumem_operator.reports.uses import PodUse, Usage
from report_builders import NODE, measured, report

POD = measured()


def seen(
    *pods: MeasuredPod,
    now: float = 1.0,
    by_agent: Collection[str] = (),
    since: Mapping[str, float] = {},
    **reports: Report,
) -> Usage:
    """What is known after these reports: `agent` is of the node, others of pods `pod_N`."""
    store = Store()
    for name, one in reports.items():
        sender = (
            Sender("NodeAgent", NODE)
            if name == "agent"
            else Sender("Sidecar", name.replace("_", "-"))
        )
        store.take(sender, one, 0.0)
    return attribute(pods, store.pictures(), now, by_agent=by_agent, since=since)


def use(pod: MeasuredPod = POD, **reports: Any) -> PodUse:
    return seen(pod, **reports).pods[pod.uid]


def rows(found: PodUse) -> list[tuple[str, str, int | str | None]]:
    return [
        (row.container, row.gpu, row.amount.bytes if row.amount.known else row.amount.unknown)
        for row in found.rows
    ]


def agent(*processes: Any, **fields: Any) -> Report:
    return report(*processes, agent=True, **fields)
