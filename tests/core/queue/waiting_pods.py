"""Tenants and waiting pods of tests, in words: amounts are small numbers, not bytes of a card."""

from __future__ import annotations

from collections.abc import Mapping

from gpumem_operator.ledger.book import Account
from gpumem_operator.ledger.groups import Group, WaitingPod
from gpumem_operator.ledger.queue import Turn
from gpumem_operator.ledger.reservation import Reservation

LATER = 1_000_000.0
"""Long after everything in a test was created."""


def account(
    name: str = "research",
    *,
    limit: int = 10,
    charged: int = 0,
    stored: tuple[Reservation, ...] = (),
    hold_after: float = 2 * LATER,
) -> Account:
    """A tenant; nobody has waited for long enough to hold its room, unless a test says so."""
    return Account(name, limit, charged, stored, hold_after)


def waiting(
    name: str,
    amount: int = 1,
    *,
    age: int = 0,
    priority: int = 0,
    group: Group | None = None,
    needs: Mapping[str, int] | None = None,
) -> WaitingPod:
    """A gated pod of the tenant `research`; the older, the higher its `age`."""
    return WaitingPod(
        uid=f"uid-{name}",
        namespace="team",
        name=name,
        created=LATER - age,
        needs={"research": amount} if needs is None else needs,
        priority=priority,
        group=group,
    )


def reserved(name: str, amount: int = 1) -> Reservation:
    return Reservation(f"uid-{name}", "team", name, amount)


def granted(turn: Turn, tenant: str = "research") -> list[str]:
    """Names of pods with a reservation, in order."""
    return [one.name for one in turn.reservations[tenant]]


def reasons(turn: Turn) -> dict[str, str]:
    """Why pods wait, by name."""
    return {pod.name: one.obstacle.reason.value for one in turn.waiting for pod in one.entry.pods}
