"""What passes between a sender and the leader with each report, beside what was measured."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpumem_operator.reports.pictures import Sender
from gpumem_operator.reports.report import Acknowledgement, Order


@dataclass(frozen=True)
class Wanted:
    """What a sender shall do beside reporting what changed."""

    orders: list[Order]
    urgent: bool
    """Whether it shall report every 500 ms."""


Exchange = Callable[[Sender, Sequence[Acknowledgement]], Wanted]
"""Takes what a sender says about its orders; gives what is wanted of it now."""
