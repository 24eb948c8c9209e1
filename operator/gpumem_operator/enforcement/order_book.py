"""Orders that are open, and what senders said about them. A new leader's is empty: it gives the
same orders again under the same ids, and senders tell again what became of them."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final

from gpumem_operator.enforcement.facts import Answered
from gpumem_operator.enforcement.steps import Orders
from gpumem_operator.reports.pictures import Sender
from gpumem_operator.reports.report import Acknowledgement, Order

MOST_FOR_ONE_SENDER: Final = 256


class OrderBook:
    """By pod, because a pod's orders are given and withdrawn together."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[tuple[Sender, Order], ...]] = {}
        self._answers: dict[str, dict[str, Answered]] = {}

    def give(self, uid: str, orders: Orders | None) -> None:
        """From now on these orders about a pod are open and no others."""
        if orders is None:
            self._open.pop(uid, None)
            return
        self._open[uid] = tuple(
            (
                target.sender,
                Order(
                    id=key,
                    action=orders.action,
                    pod_uid=uid,
                    container=target.container,
                    pid=target.pid,
                    start_time=target.start_time,
                ),
            )
            for key, target in orders.targets
        )

    def of(self, sender: Sender) -> list[Order]:
        """Open orders to one sender."""
        found = [
            order
            for uid, given in self._open.items()
            for to, order in given
            if to == sender and order.id not in self.answers(uid)
        ]
        return found[:MOST_FOR_ONE_SENDER]

    def heed(self, sender: Sender, said: Sequence[Acknowledgement], now: datetime) -> None:
        """Take answers; those to orders that this sender was not given are left out."""
        results = {one.id: one for one in said}
        for uid, given in self._open.items() if results else ():
            for to, order in given:
                if to == sender and (answer := results.get(order.id)) is not None:
                    known = self._answers.setdefault(uid, {})
                    known.setdefault(order.id, Answered(answer.result, answer.bytes, now))

    def answers(self, uid: str) -> Mapping[str, Answered]:
        """About one pod, by the order's id."""
        return self._answers.get(uid, {})

    def forget(self, uid: str) -> None:
        """The pod is within its limit again."""
        self._open.pop(uid, None)
        self._answers.pop(uid, None)

    def keep(self, uids: Collection[str]) -> None:
        """Forget all other pods."""
        for uid in {*self._open, *self._answers} - set(uids):
            self.forget(uid)
