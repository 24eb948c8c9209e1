"""Pods of one controller that need each other go on together or not at all."""

from core.queue.waiting_pods import LATER, account, granted, reasons, reserved, waiting
from gpumem_operator.ledger.groups import Group, WaitingPod
from gpumem_operator.ledger.queue import decide

GANG = Group("uid-of-job", 3)


def gang(number: int, amount: int = 2, *, group: Group = GANG, first: int = 0) -> list[WaitingPod]:
    return [
        waiting(f"g{index}", amount, age=100 - index, group=group)
        for index in range(first, first + number)
    ]


def test_a_group_goes_on_whole() -> None:
    turn = decide([account(limit=6)], gang(3), now=LATER)
    assert granted(turn) == ["g0", "g1", "g2"]


def test_a_group_that_does_not_fit_whole_gets_nothing() -> None:
    turn = decide([account(limit=6, charged=1)], gang(3), now=LATER)
    assert granted(turn) == []
    assert turn.waiting[0].obstacle.asked_bytes == 6


def test_a_group_that_is_about_to_go_on_waits_again_whole_where_the_quota_was_lowered() -> None:
    stored = tuple(reserved(f"g{number}", 2) for number in range(3))
    turn = decide([account(limit=5, stored=stored)], gang(3), now=LATER)
    assert turn.through == ()
    assert granted(turn) == []


def test_a_group_waits_for_its_last_pod_and_holds_nothing_meanwhile() -> None:
    pods = [*gang(2), waiting("single", 6)]
    turn = decide([account(limit=6, hold_after=0)], pods, now=LATER)
    assert granted(turn) == ["single"]
    assert reasons(turn) == {"g0": "GroupIncomplete", "g1": "GroupIncomplete"}
    assert turn.waiting[0].entry.missing == 1


def test_a_group_larger_than_the_quota_holds_nothing() -> None:
    pods = [*gang(3), waiting("single", 5)]
    turn = decide([account(limit=5, hold_after=0)], pods, now=LATER)
    assert granted(turn) == ["single"]
    assert reasons(turn)["g0"] == "LargerThanQuota"


def test_a_group_that_holds_does_so_from_when_it_was_whole() -> None:
    pods = [*gang(2), waiting("g2", 2, age=5, group=GANG), waiting("single", 1)]
    hesitant = decide([account(limit=6, charged=1, hold_after=10)], pods, now=LATER)
    assert granted(hesitant) == ["single"]
    patient = decide([account(limit=6, charged=1, hold_after=10)], pods, now=LATER + 5)
    assert granted(patient) == []


def test_a_lost_pod_is_replaced_without_a_whole_group_more() -> None:
    turn = decide([account()], gang(1), alive={GANG: 2}, now=LATER)
    assert granted(turn) == ["g0"]


def test_pods_on_their_way_count_as_members() -> None:
    on_their_way = gang(2)
    stored = tuple(reserved(pod.name, 2) for pod in on_their_way)
    turn = decide([account(stored=stored)], gang(3), now=LATER)
    assert turn.through == tuple(on_their_way)
    assert granted(turn) == ["g0", "g1", "g2"]


def test_more_pods_than_a_group_are_several_groups() -> None:
    turn = decide([account(limit=8)], gang(7), now=LATER)
    assert granted(turn) == ["g0", "g1", "g2"]
    assert reasons(turn) == {
        **dict.fromkeys(("g3", "g4", "g5"), "NoRoom"),
        "g6": "GroupIncomplete",
    }


def test_groups_of_two_controllers_are_two_groups() -> None:
    other = Group("uid-of-another", 3)
    turn = decide([account()], [*gang(2), *gang(1, group=other, first=2)], now=LATER)
    assert granted(turn) == []
