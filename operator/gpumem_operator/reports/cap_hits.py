"""How often frameworks ran into their caps: the sums of what processes tell.

Names of frameworks and counts are a workload's own word: whatever it invents, there are no more
sums than frameworks that our shim knows, and no more processes are remembered than a pod may have.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from gpumem_operator.reports.uses import PodUse

FRAMEWORKS: Final = frozenset({"cupy", "jax", "tensorflow", "torch"})
"""Those that the shim caps, by the names that it tells."""
OTHER: Final = "other"
MOST_REMEMBERED: Final = 4096
"""Processes of one pod; a report has no more."""


class CapPlace(NamedTuple):
    """Whose cap: one framework of one container."""

    pod_uid: str
    container: str
    framework: str


_Counted = tuple[CapPlace, int, int]
"""Place, start time, and the PID where the start time is not known: an agent and a sidecar know the
same process by different PIDs."""


class CapHits:
    """Sums since the present leader began. A process that ends takes nothing away."""

    def __init__(self) -> None:
        self.totals: dict[CapPlace, int] = {}
        self._told: dict[str, dict[_Counted, int]] = {}
        """By uid of the pod: the most that each process told, the latest last. One that is not
        seen for a while counts nothing again when it is back."""

    def advance(self, uses: Iterable[PodUse]) -> None:
        """Add what came since the last call."""
        for use in uses:
            if not (counts := _counts(use)):
                continue
            told = self._told.setdefault(use.pod.uid, {})
            for key, count in counts.items():
                before = told.pop(key, 0)
                told[key] = max(count, before)
                self.totals[key[0]] = self.totals.get(key[0], 0) + told[key] - before
            while len(told) > MOST_REMEMBERED:
                del told[next(iter(told))]

    def keep(self, uids: Iterable[str]) -> None:
        """Drop pods that are gone."""
        kept = set(uids)
        self.totals = {key: hits for key, hits in self.totals.items() if key.pod_uid in kept}
        self._told = {uid: told for uid, told in self._told.items() if uid in kept}


def _counts(use: PodUse) -> dict[_Counted, int]:
    """Processes that started at the same tick count as one."""
    sums: dict[_Counted, int] = {}
    for (pid, start_time, place), count in dict(_told(use)).items():
        key = (place, -1, pid) if start_time is None else (place, start_time, 0)
        sums[key] = sums.get(key, 0) + count
    return sums


def _told(use: PodUse) -> Iterator[tuple[tuple[int, int | None, CapPlace], int]]:
    """A process on several cards tells the same count with each of them."""
    for row in use.rows:
        for process in row.processes:
            for framework in process.claim.frameworks if process.claim else ():
                if framework.cap_hits is not None:
                    name = framework.name if framework.name in FRAMEWORKS else OTHER
                    place = CapPlace(use.pod.uid, row.container, name)
                    yield (process.pid, process.start_time, place), framework.cap_hits
