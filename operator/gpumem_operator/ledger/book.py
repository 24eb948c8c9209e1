"""A tenant's room while it is given away: to pods one after the other, and never twice."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from gpumem_operator.ledger.reservation import MOST_RESERVATIONS, Reservation
from gpumem_operator.ledger.room import Room


@dataclass(frozen=True)
class Account:
    """A tenant that is asked for room."""

    name: str
    limit_bytes: int
    charged_bytes: int
    stored: tuple[Reservation, ...] = ()
    """The reservations in its status as it was read."""
    hold_after_seconds: float = 600.0


class Reason(StrEnum):
    """Why room is not given."""

    UNREADABLE = "TenantUnreadable"
    NOT_COUNTED = "ChargeNotCounted"
    NEVER_FITS = "LargerThanQuota"
    INCOMPLETE = "GroupIncomplete"
    NO_ROOM = "NoRoom"
    HELD = "HeldForAnother"
    FULL = "TooManyReservations"


@dataclass(frozen=True)
class Obstacle:
    """What stands between pods and their room."""

    reason: Reason
    tenant: str = ""
    """Where room is missing; empty where that is not what it is about."""
    asked_bytes: int = 0
    """Of all pods that go together, in this tenant."""
    room: Room | None = None
    """When it was their turn: those before them have been given theirs."""
    holder: str = ""
    """Pod that the room is held for."""


class Book:
    """What is left of one tenant's room. Mutable: it is written while a decision is made."""

    def __init__(
        self, account: Account, kept: Iterable[Reservation], *, held_bytes: int = 0
    ) -> None:
        self.account = account
        self.reservations = list(kept)
        reserved = sum(one.amount_bytes for one in self.reservations)
        self.room = Room(account.limit_bytes, account.charged_bytes, reserved)
        self.held_bytes = held_bytes
        """Of what is left, kept for pods that have waited for long."""
        self._holder = ""

    def reserve(self, one: Reservation) -> None:
        self.reservations.append(one)
        self.room = self.room.less(one.amount_bytes)

    def hold(self, holder: str, amount: int) -> None:
        """Keep so much from those who come later, for the pod of this name."""
        self.held_bytes += amount
        self._holder = self._holder or holder

    def obstacle(self, amount: int, pods: int = 1) -> Obstacle | None:
        """What keeps so many pods from getting so much here together."""
        name = self.account.name
        if amount > self.account.limit_bytes:
            return Obstacle(Reason.NEVER_FITS, name, amount, self.room)
        if len(self.reservations) + pods > MOST_RESERVATIONS:
            return Obstacle(Reason.FULL, name, amount, self.room)
        # What is charged nothing overruns nothing, however much is taken already.
        if amount > max(self.room.left_bytes, 0):
            return Obstacle(Reason.NO_ROOM, name, amount, self.room)
        if amount > max(self.room.left_bytes - self.held_bytes, 0):
            return Obstacle(Reason.HELD, name, amount, self.room, self._holder)
        return None
