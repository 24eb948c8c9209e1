"""Where the driver tells no amount, what a workload says of itself is shown and never counted."""

from __future__ import annotations

import pytest

from gpumem_operator.reports.cards import Parts
from gpumem_operator.reports.pictures import Amount
from gpumem_operator.reports.report import Process
from report_builders import GIB, GPU, Raw, gpu, measured, process, report
from reports.views import agent, rows, seen, use

EIB = 2**60


def claimed(amount: int, unknown: str | None = "NotAvailable") -> Raw:
    """By a process of which the driver tells no amount."""
    return process(amount, source="Shim") | {"unknown": unknown}


@pytest.mark.parametrize("unknown", ["NotAvailable", None], ids=["now", "by older senders"])
def test_it_is_at_least_so_much_and_in_no_sum(unknown: str | None) -> None:
    for found in (
        use(agent=agent(claimed(3 * GIB, unknown))),
        use(pod_1=report(claimed(3 * GIB, unknown))),
    ):
        assert found.total == Amount(None, "NotAvailable", 3 * GIB)


def test_the_senders_reason_is_kept() -> None:
    found = use(pod_1=report(claimed(3 * GIB, "DriverHidesMemory")))
    assert rows(found) == [("main", GPU, "DriverHidesMemory")]


@pytest.mark.parametrize("claim", [1, 8 * EIB - 1])
def test_it_is_in_no_part_of_the_card(claim: int) -> None:
    pods = (measured("pod-1"), measured("pod-2"))
    said = agent(
        claimed(claim),
        process(2 * GIB, pid=101, pod="pod-2"),
        gpus=[gpu(used=30 * GIB)],
    )
    found = seen(*pods, agent=said)
    assert found.cards[0].parts == Parts(80 * GIB, GIB, 2 * GIB, 28 * GIB, 49 * GIB)
    assert found.pods["pod-2"].total == Amount(2 * GIB)


def test_the_card_that_one_container_alone_was_given_tells_more_than_its_claim() -> None:
    said = agent(claimed(8 * EIB - 1), gpus=[gpu(used=30 * GIB)], given={("pod-1", "main"): [GPU]})
    assert use(agent=said).total == Amount(30 * GIB)


def test_only_a_claim_may_stand_beside_the_reason() -> None:
    with pytest.raises(ValueError, match="exactly one"):
        Process.model_validate(process(GIB) | {"unknown": "NotAvailable"})
    with pytest.raises(ValueError, match="one of"):
        Process.model_validate(process("NotAvailable", source="Shim") | {"unknown": None})
