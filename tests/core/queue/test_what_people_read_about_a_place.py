"""Sentences of Events about waiting pods: requested, used, left, the largest holders, next step."""

from dataclasses import replace

from core.queue.waiting_pods import LATER, account, waiting
from gpumem_operator.api.quantity import GIB
from gpumem_operator.ledger.book import Account
from gpumem_operator.ledger.charged_pod import ChargedPod, largest_first
from gpumem_operator.ledger.groups import Group, Held, WaitingPod
from gpumem_operator.ledger.queue import decide
from gpumem_operator.ledger.queue_status import explain_place, places, queue_status

HOLDERS = [ChargedPod("team", "small", 10 * GIB), ChargedPod("team", "large", 80 * GIB)]


def sentence(*pods: WaitingPod, tenant: Account | None = None) -> str:
    """About the last of these pods."""
    found = tenant or account(limit=100 * GIB, charged=90 * GIB)
    turn = decide([found], pods, now=LATER)
    (*_, place) = places(turn, found.name)
    return explain_place(place, found.name, largest_first(HOLDERS))


def test_all_that_a_person_needs_is_in_one_sentence() -> None:
    assert sentence(waiting("a", 40 * GIB, age=9), waiting("b", 16 * GIB)) == (
        "waits in place 2 of 2 for GPU memory of tenant research: it asks for 16Gi, and 10Gi of"
        " 100Gi are left (90Gi charged, 0 reserved for pods on their way): 6Gi more have to"
        " become free."
        " Most is charged to team/large 80Gi, team/small 10Gi. Next step: wait, end a pod that"
        " holds room, or have the"
        " quota raised"
    )


def test_room_that_is_held_names_for_whom() -> None:
    tenant = account(limit=100 * GIB, charged=90 * GIB, hold_after=5)
    text = sentence(waiting("old", 40 * GIB, age=9), waiting("young", GIB), tenant=tenant)
    assert "held for team/old, which has waited longer" in text
    assert "PriorityClass" in text


def test_the_status_names_for_whom_room_is_held_and_for_no_other_reason() -> None:
    tenant = account(limit=100 * GIB, charged=90 * GIB, hold_after=5)
    turn = decide([tenant], [waiting("old", 40 * GIB, age=9), waiting("young", GIB)], now=LATER)
    old, young = queue_status(tenant, turn, epoch=1, generation=1)["queue"]
    assert (young["reason"], young["heldFor"]) == ("HeldForAnother", "team/old")
    assert "heldFor" not in old


def test_what_can_never_fit_is_told_so() -> None:
    text = sentence(waiting("huge", 101 * GIB))
    assert "it asks for 101Gi, which is more than the whole quota of 100Gi" in text


def test_a_group_that_is_not_whole_counts_its_pods() -> None:
    text = sentence(waiting("a", GIB, group=Group("job", 4)))
    assert "1 of the 4 pods of its group are there" in text


def test_a_group_asks_together() -> None:
    gang = [waiting(name, 8 * GIB, group=Group("job", 2)) for name in ("a", "b")]
    assert "its group of 2 pods asks for 16Gi" in sentence(*gang)


def test_a_rollout_that_waits_for_its_own_surge_pod_is_told_so() -> None:
    pod = replace(waiting("new", 40 * GIB), older_revision=Held("serve", 80 * GIB))
    text = sentence(pod)
    assert "Older pods of its own Deployment serve hold 80Gi" in text
    assert "maxSurge 0 and maxUnavailable 1" in text


def test_a_status_shows_the_first_fifty_and_counts_all() -> None:
    pods = [waiting(f"p{number:03}", 20 * GIB, age=999 - number) for number in range(60)]
    tenant = account(limit=100 * GIB, charged=90 * GIB)
    status = queue_status(tenant, decide([tenant], pods, now=LATER), epoch=7, generation=3)
    assert [row["name"] for row in status["queue"]] == [f"p{number:03}" for number in range(50)]
    assert status["queuedBytes"] == 60 * 20 * GIB
    assert (status["epoch"], status["observedGeneration"]) == (7, 3)
    assert (status["chargedBytes"], status["reservations"]) == (90 * GIB, [])
    assert status["heldBytes"] == 0


def test_a_status_tells_how_much_is_held_back() -> None:
    tenant = account(limit=100 * GIB, charged=90 * GIB, hold_after=5)
    turn = decide([tenant], [waiting("old", 40 * GIB, age=9)], now=LATER)
    assert queue_status(tenant, turn, epoch=1, generation=1)["heldBytes"] == 40 * GIB


def test_amounts_that_would_read_the_same_are_told_apart() -> None:
    tenant = account(limit=10 * GIB, charged=5 * GIB - 1)
    text = sentence(waiting("close", 5 * GIB + 2), tenant=tenant)
    assert "it asks for 5368709122, and 5368709121 of 10Gi are left" in text
    whole = account(limit=5 * GIB + 1)
    text = sentence(waiting("huge", 5 * GIB + 2), tenant=whole)
    assert "asks for 5368709122, which is more than the whole quota of 5368709121" in text


def test_past_a_lowered_quota_all_that_has_to_become_free_is_told() -> None:
    text = sentence(waiting("next", 4 * GIB), tenant=account(limit=10 * GIB, charged=28 * GIB))
    assert (
        "it asks for 4Gi, and 0 of 10Gi are left (28Gi charged, 0 reserved for pods on their way):"
        " 22Gi have to become free, 4Gi for it and 18Gi by which the tenant is past its quota."
    ) in text


def test_a_pod_that_declares_nothing_is_told_that_it_counts_whole_and_to_declare() -> None:
    silent = replace(waiting("silent", 80 * GIB), undeclared=("a", "b"))
    text = sentence(silent)
    assert "it counts as 80Gi, and 10Gi of 100Gi are left" in text
    assert "Containers a, b declare no GPU memory, so each of their GPUs counts as a whole" in text
    assert "Next step: declare what it needs (nvidia.com/memory), wait, end a pod" in text


def test_the_status_tells_of_the_group_that_a_pod_goes_on_with() -> None:
    gang = [waiting(name, 40 * GIB, group=Group("job", 3)) for name in ("a", "b")]
    tenant = account(limit=100 * GIB, charged=90 * GIB)
    rows = queue_status(
        tenant, decide([tenant], [*gang, waiting("c", GIB * 50)], now=LATER), epoch=1, generation=1
    )
    assert [row.get("group") for row in rows["queue"]] == [
        {"pods": 2, "missing": 1, "bytes": 80 * GIB},
        {"pods": 2, "missing": 1, "bytes": 80 * GIB},
        None,
    ]
