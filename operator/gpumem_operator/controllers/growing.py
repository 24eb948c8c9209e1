"""Tells of pods whose use only grows: series, and an Event on the pod."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from gpumem_operator.controllers.about import about_pod
from gpumem_operator.controllers.alarms import Alarms
from gpumem_operator.controllers.overuse import Suspect
from gpumem_operator.controllers.worker import attempt
from gpumem_operator.enforcement.growth import Growth, Growths, Place
from gpumem_operator.metrics import growth as series

GROWING_USE: Final = "GrowingUse"
_TELLING_SECONDS: Final = 24 * 3600
"""A limit that is further away is nothing that anybody has to be told of now."""
MOST_AT_ONCE: Final = 20


class GrowingPods:
    """Of one leader."""

    def __init__(self, alarms: Alarms, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._alarms = alarms
        self._monotonic = monotonic
        self._growths = Growths()

    async def look(self, suspects: Iterable[Suspect]) -> None:
        """At all pods that hold something."""
        by_uid = {suspect.facts.uid: suspect for suspect in suspects}
        holds = ((uid, hold) for uid, suspect in by_uid.items() for hold in suspect.facts.holds)
        found = self._growths.look(holds, self._monotonic())
        series.show(_growing(by_uid[place.uid], place, one) for place, one in found.items())
        told = {place: one for place, one in found.items() if _is_near(one)}
        for place in sorted(told, key=lambda place: told[place].seconds_to_limit)[:MOST_AT_ONCE]:
            suspect = by_uid[place.uid]
            with attempt("enforcement", f"pod {suspect.title}"):
                await self._tell(suspect, place, told)

    async def _tell(self, suspect: Suspect, place: Place, told: Mapping[Place, Growth]) -> None:
        message = f"Container {place.container} on {place.gpu}. {told[place].sentence}."
        await self._alarms.tell(
            about_pod(suspect.entry.measured), kind=GROWING_USE, message=message
        )


def _is_near(growth: Growth) -> bool:
    return growth.seconds_to_limit < _TELLING_SECONDS


def _growing(suspect: Suspect, place: Place, growth: Growth) -> series.Growing:
    pod = suspect.entry.measured
    labels = (pod.namespace, pod.name, place.container, place.gpu)
    return series.Growing(labels, growth.bytes_per_second, growth.seconds_to_limit)
