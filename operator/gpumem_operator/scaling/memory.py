"""What a decision remembers of earlier ones: so little that it is kept in the policy's status.

A leader that takes over reads it there and decides as the one before would have. Times are whole
seconds since 1970.
"""

from dataclasses import dataclass, replace
from typing import Final

MOST_PASTS: Final = 24
MOST_CHANGES: Final = 20


@dataclass(frozen=True, slots=True)
class Past:
    """A recommendation that no longer holds."""

    until: int
    replicas: int


@dataclass(frozen=True, slots=True)
class Change:
    """One change of replicas that was made."""

    time: int
    before: int
    after: int
    message: str = ""
    """Why, for people."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Of one target."""

    latest: int | None = None
    """What was recommended last, and is taken to hold until the next decision. None: nothing."""
    highest: tuple[Past, ...] = ()
    """Recommendations above all later ones, the oldest first: they keep replicas from falling."""
    lowest: tuple[Past, ...] = ()
    """Recommendations below all later ones, the oldest first: they keep replicas from growing."""
    changes: tuple[Change, ...] = ()
    """The oldest first."""

    def settled(self, replicas: int) -> "Memory":
        """Without a last change that was written down and not made, or was undone at once."""
        if self.changes and self.changes[-1].before == replicas:
            return replace(self, changes=self.changes[:-1])
        return self

    def with_change(self, change: Change, *, kept_seconds: int) -> "Memory":
        """With one more; those older than `kept_seconds` are forgotten.

        Where there are too many, the two oldest become one, at the later time: then they bound the
        pace longer, and never less.
        """
        changes = [one for one in self.changes if one.time > change.time - kept_seconds]
        changes.append(change)
        while len(changes) > MOST_CHANGES:
            first, second = changes[:2]
            changes[:2] = [replace(second, before=first.before)]
        return replace(self, changes=tuple(changes))
