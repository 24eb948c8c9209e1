"""Everything that a decision about one pod may depend on."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, Literal

from gpumem_operator.api.policy import Enforcement
from gpumem_operator.enforcement.ending import USUAL_SECONDS, Ending, most_seconds
from gpumem_operator.reports.pictures import Amount, Sender

Action = Literal["Reclaim", "Evict", "Delete", "Kill"]
Mode = Literal["None", "Audit", "Warn", "Enforce"]
"""None: no policy decides for the pod any more."""

# Reasons of the pod's condition. They are the memory of what was begun: a new leader has no other.
WITHIN_LIMIT: Final = "WithinLimit"
"""False: no container holds more than it may."""
NOT_JUDGED: Final = "NotJudged"
"""False: something was said, and since then no policy decides for the pod."""
NEAR_LIMIT: Final = "NearLimit"
"""False: a container holds more than `warnPercent` of its limit."""
OVER_LIMIT: Final = "OverLimit"
"""True: a container holds more than its limit; nothing was done about it (yet)."""
WOULD_ACT: Final = "WouldAct"
"""True: the grace period is over, and the mode is Audit."""
RECLAIMING: Final = "Reclaiming"
EVICTING: Final = "Evicting"
DELETING: Final = "Deleting"
KILLING: Final = "Killing"
EVICTION_LOOP: Final = "EvictionLoop"
"""True: pods of the same owner were evicted so often that evicting helps nobody."""
ACTIONS_EXHAUSTED: Final = "ActionsExhausted"
"""True: all actions were tried, and the pod is still over its limit."""


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition `gpumemory.dev/Overuse` of a pod, as it is stored or shall be."""

    status: Literal["True", "False"]
    reason: str
    since: datetime
    """lastTransitionTime: where the status is True, the beginning of the grace period."""
    step_began: datetime
    """lastProbeTime: when the action that the reason names began."""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Hold:
    """What one container holds on one GPU, and may hold there."""

    container: str
    gpu: str
    limit_bytes: int
    used: Amount
    astray: str = ""
    """How it is known that the GPU is not the container's own; empty where it may be."""

    @property
    def is_over(self) -> bool:
        """Whether it is known to hold more than it may: nothing on a GPU that is not its own."""
        return self.excess_bytes > 0

    @property
    def excess_bytes(self) -> int:
        """Above what it may hold there; 0 where it is within that or not known."""
        return max(0, (self.used.bytes or 0) - self._most)

    @property
    def share(self) -> float:
        """Of what it may hold there, by what is known."""
        used = self.used.bytes or 0
        if not self._most:
            return float("inf") if used else 0.0
        return used / self._most

    @property
    def _most(self) -> int:
        return 0 if self.astray else self.limit_bytes


@dataclass(frozen=True, slots=True)
class Target:
    """A process that an order can be given about, and who would carry it out."""

    sender: Sender
    container: str
    pid: int
    """As the sender knows it."""
    start_time: int


@dataclass(frozen=True, slots=True)
class Answered:
    """What a sender said about an order."""

    result: str
    bytes: int | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of the last attempt to evict or delete the pod."""

    result: Literal["Done", "BlockedByPDB", "Failed"]
    at: datetime
    message: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """One pod at one moment."""

    uid: str
    mode: Mode
    """What the policy wants; Audit where it only observes."""
    settings: Enforcement
    holds: tuple[Hold, ...]
    """Of containers with a limit. Empty: nothing is judged."""
    stored: Condition | None = None
    ending: Ending | None = None
    """Where the pod was told to end."""
    asks_seconds: int = USUAL_SECONDS
    """terminationGracePeriodSeconds: how long it wants to take for that."""
    reclaimable: tuple[Target, ...] = ()
    """Processes of containers over their limit whose shim can give cached memory back."""
    killable: tuple[Target, ...] = ()
    """Processes of containers over their limit that an agent can end, the largest first."""
    answers: Mapping[str, Answered] = field(default_factory=dict)
    """By id of the order."""
    tried: Tried | None = None
    evictions_of_owner: int = 0
    """Of other pods of the same controller within the last hour."""

    def completed(
        self, *, answers: Mapping[str, Answered], tried: Tried | None, evictions_of_owner: int
    ) -> "Facts":
        """With what only the leader at work remembers. A pod that it has evicted is on its way out,
        whether the watch has told of it or not."""
        ending = self.ending
        if ending is None and tried is not None and tried.result == "Done":
            most = min(self.asks_seconds, most_seconds(self.settings))
            ending = Ending(tried.at + timedelta(seconds=most), most)
        return replace(
            self,
            ending=ending,
            answers=answers,
            tried=tried,
            evictions_of_owner=evictions_of_owner,
        )

    @property
    def worst(self) -> Hold | None:
        """The hold with the largest part of its limit, by what is known; None without any."""
        known = [hold for hold in self.holds if hold.used.known]
        return max(known, key=lambda hold: hold.share, default=None)
