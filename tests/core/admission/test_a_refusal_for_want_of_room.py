"""Requested, left, charged, reserved, the limit, who holds most, and the next step."""

import pytest

from gpumem_operator.admission.room import refuse, refuse_late
from gpumem_operator.api.quantity import GIB
from gpumem_operator.ledger.book import Obstacle, Reason
from gpumem_operator.ledger.charged_pod import ChargedPod
from gpumem_operator.ledger.room import Room

HOLDERS = [ChargedPod("team", f"pod-{size}", size * GIB) for size in (40, 30, 10, 5)]
ROOM = Room(100 * GIB, 85 * GIB, 5 * GIB)
EVENT_CHARACTERS = 1024
"""An Event about a ReplicaSet shows no more of a refusal."""


def text(reason: Reason, *, holder: str = "") -> str:
    obstacle = Obstacle(reason, "research", 16 * GIB, ROOM, holder)
    found = refuse("team/new", obstacle, HOLDERS).refusal
    assert found is not None
    return found


def test_the_arithmetic_is_shown() -> None:
    assert text(Reason.NO_ROOM) == (
        "GPU pod team/new is refused: tenant research: the pod asks for 16Gi, and 10Gi of 100Gi are"
        " left (85Gi charged, 5Gi reserved for pods on their way): 6Gi more have to become free."
        " Most is"
        " charged to team/pod-40 40Gi, team/pod-30 30Gi, team/pod-10 10Gi (next step: try again"
        " when pods of the tenant"
        " have ended, end one, or have the quota raised; whoever may read tenants sees"
        " with kubectl gpumem tenants who holds it)"
    )


def test_a_pod_that_declares_nothing_did_not_ask_for_a_whole_gpu() -> None:
    obstacle = Obstacle(Reason.NO_ROOM, "research", 80 * GIB, ROOM)
    found = refuse("team/new", obstacle, HOLDERS, undeclared=("c",)).refusal
    assert found is not None
    assert "the pod counts as 80Gi, and 10Gi of 100Gi are left" in found
    assert "Container c declares no GPU memory, so each of its GPUs counts as a whole one" in found
    assert "next step: declare what it needs (nvidia.com/memory), try again when" in found


def test_room_that_is_held_says_so() -> None:
    assert "held for pods that have waited longer" in text(Reason.HELD)
    assert "held for team/old, which has waited longer" in text(Reason.HELD, holder="team/old")


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason != "GroupIncomplete"])
def test_every_refusal_has_a_next_step_and_fits_into_an_event(reason: Reason) -> None:
    assert "next step: " in text(reason)
    assert len(text(reason)) < EVENT_CHARACTERS / 2


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (Reason.NO_ROOM, 403),
        (Reason.NEVER_FITS, 403),
        (Reason.NOT_COUNTED, 429),
        (Reason.FULL, 429),
        (Reason.UNREADABLE, 500),
    ],
)
def test_the_code_says_whether_the_same_request_may_pass_in_a_moment(
    reason: Reason, code: int
) -> None:
    assert refuse("team/new", Obstacle(reason, "research", GIB, ROOM), []).code == code


def test_what_is_late_says_to_try_again() -> None:
    late = refuse_late("team/new", "no answer within 1.5 s")
    assert late.code == 429
    assert late.refusal is not None
    assert "could not be reserved in time: no answer within 1.5 s" in late.refusal
    assert "try again" in late.refusal
