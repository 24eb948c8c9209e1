"""Memory of pods that ask for no GPU, as the agents of their nodes see it."""

from __future__ import annotations

from gpumem_operator.reports.document import usage_document
from gpumem_operator.reports.others import MOST, others_of
from gpumem_operator.reports.pictures import Amount, Sender
from gpumem_operator.reports.snapshot import Snapshot
from gpumem_operator.reports.store import Store
from report_builders import GIB, GPU, NODE, process, report
from reports.views import agent

AGENT = Sender("NodeAgent", NODE)


def taken(**reports: object) -> Store:
    store = Store()
    for kind, told in reports.items():
        sender = AGENT if kind == "agent" else Sender("Sidecar", "stranger")
        store.take(sender, told, 0.0)  # type: ignore[arg-type]
    return store


def test_what_a_pod_holds_that_asked_for_nothing_is_told_with_its_uid() -> None:
    told = agent(
        process(GIB, pid=1, pod="stranger", container=None, container_id="containerd://c1"),
        process(GIB, pid=2, pod="stranger", container=None, container_id="containerd://c1"),
        process("NotAvailable", pid=3, pod="hidden", container=None),
        process(GIB, pid=4),
        process(GIB, pid=5, pod=None),
    )
    others = others_of(taken(agent=told).pictures(), {"pod-1"})
    assert [(one.pod_uid, one.container_id, one.amount, one.processes) for one in others] == [
        ("stranger", "c1", Amount(2 * GIB), 2),
        ("hidden", "", Amount(None, "NotAvailable"), 1),
    ]
    document = usage_document(Snapshot(others=others), now="", namespace="team")
    assert document["others"][0] == {
        "node": NODE,
        "podUid": "stranger",
        "containerId": "c1",
        "gpu": GPU,
        "usedBytes": 2 * GIB,
        "unknown": None,
        "atLeastBytes": None,
        "processes": 2,
    }


def test_nobody_but_an_agent_tells_of_it() -> None:
    told = report(process(GIB, pod="stranger"))
    assert others_of(taken(sidecar=told).pictures(), ()) == ()


def test_of_a_node_the_largest_are_told() -> None:
    many = [process(n, pid=n + 1, pod=f"stranger-{n}") for n in range(1000)]
    others = others_of(taken(agent=agent(*many)).pictures(), ())
    assert [one.amount.bytes for one in others] == list(range(999, 999 - MOST, -1))
