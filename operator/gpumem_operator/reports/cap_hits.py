"""How often frameworks ran into their caps: the sums of what processes tell."""

from collections.abc import Iterable
from typing import NamedTuple

from gpumem_operator.reports.uses import PodUse


class CapPlace(NamedTuple):
    """Whose cap: one framework of one container."""

    pod_uid: str
    container: str
    framework: str


class CapHits:
    """Sums since the present leader began. A process that ends takes nothing away."""

    def __init__(self) -> None:
        self.totals: dict[CapPlace, int] = {}
        self._told: dict[tuple[CapPlace, int, int | None], int] = {}
        """By place, PID and start time: what the process told last."""

    def advance(self, uses: Iterable[PodUse]) -> None:
        """Add what came since the last call, and forget pods that are gone."""
        told = dict(_counts(uses))
        for key, count in told.items():
            more = max(count - self._told.get(key, 0), 0)
            self.totals[key[0]] = self.totals.get(key[0], 0) + more
        self._told = told

    def keep(self, uids: Iterable[str]) -> None:
        """Drop pods that are gone."""
        kept = set(uids)
        self.totals = {key: hits for key, hits in self.totals.items() if key.pod_uid in kept}


def _counts(uses: Iterable[PodUse]) -> Iterable[tuple[tuple[CapPlace, int, int | None], int]]:
    """A process on several cards tells the same count with each of them."""
    for use in uses:
        for row in use.rows:
            for process in row.processes:
                for framework in process.claim.frameworks if process.claim else ():
                    if framework.cap_hits is not None:
                        place = CapPlace(use.pod.uid, row.container, framework.name)
                        yield (place, process.pid, process.start_time), framework.cap_hits
