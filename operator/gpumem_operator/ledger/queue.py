"""Which waiting pods may go on: one pure decision over all tenants.

By PriorityClass, then age; what does not fit is passed over. An entry that was passed over for its
tenant's `holdAfterSeconds` holds the room back from those behind it; one that can never fit, or
that is not complete, holds nothing. Where a quota was lowered below what is charged and reserved,
pods that were about to go on wait again, the last in order first.
"""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Final

from gpumem_operator.ledger.book import Account, Book, Obstacle, Reason
from gpumem_operator.ledger.groups import Entry, Group, WaitingPod, entries_of
from gpumem_operator.ledger.reservation import Reservation, standing

_NOBODY: Final[Mapping[Group, int]] = MappingProxyType({})


@dataclass(frozen=True)
class Waiting:
    """An entry that goes on waiting."""

    entry: Entry
    obstacle: Obstacle
    holds: bool = False
    """Whether it holds room back from those behind it."""


@dataclass(frozen=True)
class Turn:
    """What the leader has to do."""

    reservations: Mapping[str, tuple[Reservation, ...]]
    """What the status of each tenant has to hold."""
    through: tuple[WaitingPod, ...]
    """Pods whose gate may be opened now: all that they need is reserved in stored statuses."""
    lacking: tuple[WaitingPod, ...]
    """Pods that have room reserved and lack other room by now. An earlier leader may still be about
    to open their gate: they have to be fenced before anything is written."""
    waiting: tuple[Waiting, ...]
    """In order."""
    held: Mapping[str, int]
    """Bytes by tenant that pods which have waited for long keep from those behind them."""

    @cached_property
    def queues(self) -> Mapping[str, Sequence[tuple[WaitingPod, Waiting]]]:
        """By tenant, the pods that wait for its room, in order."""
        found: defaultdict[str, list[tuple[WaitingPod, Waiting]]] = defaultdict(list)
        for one in self.waiting:
            for pod in one.entry.pods:
                for tenant in pod.needs or ():
                    found[tenant].append((pod, one))
        return found


def decide(
    accounts: Iterable[Account],
    pods: Sequence[WaitingPod],
    *,
    opened: Container[str] = frozenset(),
    gone: Container[str] = frozenset(),
    keeping: Container[str] = frozenset(),
    alive: Mapping[Group, int] = _NOBODY,
    now: float,
) -> Turn:
    """The turn of the leader. Taken again with what it led to, it changes nothing.

    `accounts` has every tenant that any pod needs. `opened` and `gone` are as for `standing`;
    `keeping` are uids of pods that wait and whose reservations can not be taken back at present;
    `alive` counts the pods of groups that are not gated; `now` is in seconds since 1970.
    """
    accounts = tuple(accounts)
    kept = {one.name: standing(one.stored, opened=opened, gone=gone) for one in accounts}
    movable = [pod for pod in pods if pod.uid not in keeping]
    through = _within_quotas(_provided(movable, kept), accounts, kept, pods)
    needed = _still_needed(kept, movable, through)
    books = {one.name: Book(one, needed[one.name]) for one in accounts}
    members = Counter(alive)
    members.update(pod.group for pod in through if pod.group is not None)
    provided = {pod.uid for pod in through}
    others = [pod for pod in pods if pod.uid not in provided]
    waiting = []
    for entry in entries_of(others, members):
        obstacle = _obstacle(entry, books) or _kept_back(entry, books, keeping)
        if obstacle is None:
            for pod in entry.pods:
                for tenant, amount in (pod.needs or {}).items():
                    reservation = Reservation(pod.uid, pod.namespace, pod.name, amount, seen=True)
                    books[tenant].reserve(reservation)
            continue
        held_in = [
            tenant for tenant in entry.needs or () if _holds(entry, obstacle, books[tenant], now)
        ]
        for tenant in held_in:
            books[tenant].hold(entry.pods[0].title, (entry.needs or {})[tenant])
        waiting.append(Waiting(entry, obstacle, holds=bool(held_in)))
    reservations = {name: tuple(book.reservations) for name, book in books.items()}
    held = {name: book.held_bytes for name, book in books.items()}
    lacking = _lacking([pod for pod in movable if pod.uid not in provided], kept)
    return Turn(reservations, through, lacking, tuple(waiting), held)


def _provided(
    pods: Iterable[WaitingPod], kept: Mapping[str, Iterable[Reservation]]
) -> tuple[WaitingPod, ...]:
    """Pods that have all that they need reserved; those that need nothing among them.

    What was reserved may be less than is needed by now: the tenant's `wholeGPU` was raised.
    """
    reserved = _amounts(kept)
    return tuple(
        pod
        for pod in pods
        if pod.needs is not None
        and all(reserved[name].get(pod.uid, -1) >= amount for name, amount in pod.needs.items())
    )


def _within_quotas(
    provided: tuple[WaitingPod, ...],
    accounts: Iterable[Account],
    kept: Mapping[str, Iterable[Reservation]],
    pods: Iterable[WaitingPod],
) -> tuple[WaitingPod, ...]:
    """Without the last of them, while what is taken is more than a quota; groups stay whole.

    What others of `pods` have is given back, or can not be at present, which is no reason to take
    more from these.
    """
    needed = _still_needed(kept, pods, provided)
    excess = {one.name: _excess(one, needed[one.name]) for one in accounts}
    if not any(amount > 0 for amount in excess.values()):
        return provided
    reserved = _amounts(kept)
    dropped: set[str] = set()
    groups: set[Group] = set()
    for pod in sorted(provided, key=lambda pod: pod.order, reverse=True):
        rows = {name: reserved[name][pod.uid] for name in pod.needs or ()}
        if any(amount and excess[name] > 0 for name, amount in rows.items()):
            dropped.add(pod.uid)
            if pod.group is not None:
                groups.add(pod.group)
            for name, amount in rows.items():
                excess[name] -= amount
    return tuple(pod for pod in provided if pod.uid not in dropped and pod.group not in groups)


def _excess(account: Account, needed: Iterable[Reservation]) -> int:
    reserved = sum(one.amount_bytes for one in needed)
    return account.charged_bytes + reserved - account.limit_bytes


def _amounts(kept: Mapping[str, Iterable[Reservation]]) -> Mapping[str, Mapping[str, int]]:
    """Bytes by tenant and uid."""
    return {name: {one.pod_uid: one.amount_bytes for one in rows} for name, rows in kept.items()}


def _lacking(
    pods: Iterable[WaitingPod], kept: Mapping[str, Iterable[Reservation]]
) -> tuple[WaitingPod, ...]:
    # A pod whose needs can not be told keeps what it has.
    reserved = {one.pod_uid for rows in kept.values() for one in rows}
    return tuple(pod for pod in pods if pod.needs is not None and pod.uid in reserved)


def _still_needed(
    kept: Mapping[str, Iterable[Reservation]],
    pods: Iterable[WaitingPod],
    through: Iterable[WaitingPod],
) -> Mapping[str, tuple[Reservation, ...]]:
    """By tenant, without those of gated pods that lack another one, or need none here any more."""
    # A pod whose needs can not be told keeps what it has.
    surplus = {pod.uid for pod in pods if pod.needs is not None}
    needs = {pod.uid: pod.needs or {} for pod in through}
    return {
        name: tuple(
            one for one in rows if one.pod_uid not in surplus or name in needs.get(one.pod_uid, {})
        )
        for name, rows in kept.items()
    }


def _obstacle(entry: Entry, books: Mapping[str, Book]) -> Obstacle | None:
    if entry.needs is None:
        return Obstacle(Reason.UNREADABLE)
    found = [books[name].obstacle(amount, len(entry.pods)) for name, amount in entry.needs.items()]
    obstacles = sorted((one for one in found if one), key=lambda one: _WEIGHT[one.reason])
    if obstacles and obstacles[0].reason is Reason.NEVER_FITS:
        return obstacles[0]
    if entry.missing:
        return Obstacle(Reason.INCOMPLETE)
    return obstacles[0] if obstacles else None


def _kept_back(entry: Entry, books: Mapping[str, Book], keeping: Container[str]) -> Obstacle | None:
    """What it has is to be taken back first."""
    if entry.needs and any(pod.uid in keeping for pod in entry.pods):
        name, amount = next(iter(entry.needs.items()))
        return Obstacle(Reason.NO_ROOM, name, amount, books[name].room)
    return None


_WEIGHT: Final = {reason: place for place, reason in enumerate(Reason)}


def _holds(entry: Entry, obstacle: Obstacle, book: Book, now: float) -> bool:
    """Whether it holds room of this tenant, which need not be the one that it waits for."""
    if obstacle.reason is Reason.FULL:
        # There will be a place within seconds: nobody is to be faster.
        return True
    if obstacle.reason not in (Reason.NO_ROOM, Reason.HELD):
        return False
    return now - entry.complete_since >= book.account.hold_after_seconds
