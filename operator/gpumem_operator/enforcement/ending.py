"""How long a pod over its limit may take to end, once it was told to.

A pod asks for as long as it likes, a year for instance, and whoever deletes it may grant that. It
is evicted or deleted with a bound, and one that was told to end later than that is told again: the
API server lets such a time be shortened, and never prolonged.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from gpumem_operator.api.policy import Enforcement

USUAL_SECONDS: Final = 30
"""A pod's time to end where it says nothing else. No bound is below it."""
OVERDUE_TIME: Final = timedelta(seconds=30)
"""After a pod's time to end: the kubelet's own time, and the difference of two clocks."""


@dataclass(frozen=True, slots=True)
class Ending:
    """A pod was told to end, by whomever."""

    by: datetime
    """deletionTimestamp: then the kubelet ends it by force."""
    grace_seconds: int
    """deletionGracePeriodSeconds: from when it was told until then."""

    def is_overdue(self, now: datetime) -> bool:
        """Whether it should have ended, and a report that is fresh shows that it has not."""
        return now >= self.by + OVERDUE_TIME

    def is_soon(self, now: datetime, settings: Enforcement) -> bool:
        """Whether nothing has to be done but to wait."""
        longest = timedelta(seconds=most_seconds(settings))
        return not self.is_overdue(now) and self.by <= now + longest + OVERDUE_TIME

    def shortened(self, now: datetime, settings: Enforcement) -> int:
        """The grace period with which it has as long as it may have, from now on."""
        return self.grace_seconds - int((self.by - now).total_seconds()) + most_seconds(settings)


def most_seconds(settings: Enforcement) -> int:
    """What an evicted or deleted pod gets at most."""
    return max(USUAL_SECONDS, settings.eviction_timeout_seconds)
