"""Compares pods with and without the webhook, in pairs that see the same machine.

Times of one minute and the next differ by more than what is measured here. So blocks with and
without alternate in random order, each cycle gives one ratio, and the median of these counts.
"""

import random
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from bench.load import Generator, Load
from bench.shapes import Pod


@dataclass(frozen=True)
class Plan:
    """One row of the table."""

    shape: str
    load: Load
    block: int
    """Pods of each block."""
    cycles: int
    state: str = "up"
    """Of the webhook: up, stopped or hung."""
    target: float | None = None
    """Largest ratio that is good enough."""


@dataclass(frozen=True)
class Comparison:
    """What one plan gave."""

    plan: Plan
    without_ms: float
    """Median of the medians without the webhook."""
    with_ms: float
    ratios: tuple[float, ...]
    """One for each cycle: median time with, by median time without."""
    slowest_ms: float
    """Median of the slowest with the webhook in each cycle."""

    @property
    def ratio(self) -> float:
        return median(self.ratios)

    @property
    def good(self) -> bool | None:
        """None where nothing was asked."""
        return None if self.plan.target is None else self.ratio <= self.plan.target

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ratio, "good": self.good}


async def compare(
    generator: Generator,
    pod: Pod,
    plan: Plan,
    *,
    namespaces: dict[bool, str],
    choose: random.Random,
    say: Callable[[str], None],
) -> Comparison:
    """`namespaces[True]` is the one whose pods go through the webhook."""
    medians: dict[bool, list[float]] = {True: [], False: []}
    slowest: list[float] = []
    for cycle in range(-1, plan.cycles):
        for with_webhook in choose.sample([True, False], 2):
            namespace = namespaces[with_webhook]
            times = await generator.run(plan.load, pod, namespace=namespace, count=plan.block)
            if not plan.load.dry_run:
                await generator.delete_all(namespace)
            # The first cycle opens connections and fills caches.
            if cycle >= 0:
                medians[with_webhook].append(median(times) * 1000)
                slowest += [max(times) * 1000] if with_webhook else []
    pairs = zip(medians[True], medians[False], strict=True)
    result = Comparison(
        plan=plan,
        without_ms=median(medians[False]),
        with_ms=median(medians[True]),
        ratios=tuple(with_ / without for with_, without in pairs),
        slowest_ms=median(slowest),
    )
    say(f"{plan.shape}, {plan.load.title}, webhook {plan.state}: {result.ratio:.2f}")
    return result
