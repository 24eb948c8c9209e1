"""What a turn costs grows with the pods that wait, and not with these times the tenants: the leader
decides about all of them at once, and renews its lease in between."""

from __future__ import annotations

import pytest

from core.queue.waiting_pods import LATER, account, reserved, waiting
from gpumem_operator.ledger.groups import WaitingPod
from gpumem_operator.ledger.queue import decide
from gpumem_operator.ledger.queue_status import queue_status


class Counted(WaitingPod):
    """Counts how often somebody asks what it needs."""

    looks = 0

    def __getattribute__(self, name: str) -> object:
        if name == "needs":
            Counted.looks += 1
        return super().__getattribute__(name)


def looks(tenants: int, *, charged: int) -> int:
    """At the needs of pods in a turn and in what is stored after it. Each tenant has a pod that
    waits and one that has its room; with much `charged` that is taken back."""
    accounts, pods = [], []
    for number in range(tenants):
        name = f"t{number}"
        accounts.append(
            account(name, limit=10, charged=charged, stored=(reserved(f"next-{name}", 8),))
        )
        for pod in (f"next-{name}", f"waits-{name}"):
            found = waiting(pod, needs={name: 8})
            pods.append(Counted(**vars(found)))
    Counted.looks = 0
    turn = decide(accounts, pods, now=LATER)
    for one in accounts:
        queue_status(one, turn, epoch=1, generation=1)
    return Counted.looks


@pytest.mark.parametrize("charged", [0, 9], ids=["room", "lowered quota"])
def test_ten_times_the_tenants_are_ten_times_the_looks(charged: int) -> None:
    assert looks(100, charged=charged) <= 11 * looks(10, charged=charged)
