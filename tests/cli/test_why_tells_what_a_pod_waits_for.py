"""`kubectl gpumem why pod/x` of a pod that waits at its tenant's quota."""

from dataclasses import replace
from typing import Any

import pytest

from builders import GIB, around, container, pod, tenant
from gpumem_operator import names
from gpumem_operator.cli.explain import Known, explain_pod
from gpumem_operator.ledger.book import Reason
from gpumem_operator.ledger.queue_status import NEXT_STEP


def gated(*containers: Any) -> Any:
    raw = pod(
        *containers, schedulingGates=[{"name": names.QUOTA_GATE}], status={"phase": "Pending"}
    )
    raw["metadata"]["uid"] = "u"
    return raw


def known(**status: Any) -> Known:
    return Known(
        (),
        around().namespace,
        tenants=(tenant(limit="100Gi"),),
        tenant_statuses={"research": status},
    )


def told(**status: Any) -> str:
    return "\n".join(explain_pod(gated(), known(**status)))


def last_step(about: Known) -> str:
    return explain_pod(gated(), about)[-1]


def queued(name: str, reason: str = "NoRoom") -> dict[str, Any]:
    return {"namespace": "ml", "name": name, "bytes": 80 * GIB, "reason": reason}


def test_its_place_the_room_and_who_holds_it() -> None:
    holder = {"namespace": "ml", "name": "big", "chargedBytes": 90 * GIB}
    text = told(chargedBytes=90 * GIB, queue=[queued("other"), queued("job-0")], topPods=[holder])
    assert "tenant research: place 2 in the queue, NoRoom: it counts as 80Gi, and 10Gi" in text
    assert (
        "tenant research: 10Gi of 100Gi are left (90Gi charged, 0 reserved for pods on their"
        " way). Most is charged"
        " to ml/big 90Gi"
    ) in text
    assert "on their way): 70Gi more have to become free" in text
    assert "charged: nothing, it waits" in text


def test_a_tenant_that_has_the_room_is_not_blamed() -> None:
    text = told(chargedBytes=10 * GIB, queue=[queued("job-0")])
    assert "place 1 in the queue, NoRoom: it asks for 80Gi, which is there; another of its" in text
    assert "to become free" not in text


def test_past_the_quota_its_excess_has_to_become_free_as_well() -> None:
    text = told(chargedBytes=128 * GIB, queue=[queued("job-0")])
    assert (
        "108Gi have to become free, 80Gi for it and 28Gi by which the tenant is past its quota"
    ) in text


def test_a_group_is_told_of_in_the_words_of_its_event() -> None:
    group = {"pods": 2, "missing": 0, "bytes": 160 * GIB}
    never = queued("job-0", Reason.NEVER_FITS) | {"group": group}
    assert (
        "LargerThanQuota: its group of 2 pods counts as 160Gi, which is more than the whole"
        " quota of"
        " 100Gi"
    ) in told(chargedBytes=0, queue=[never])
    some = queued("job-0", Reason.INCOMPLETE) | {"group": group | {"missing": 2}}
    assert "2 of the 4 pods of its group are there" in told(chargedBytes=0, queue=[some])


def test_what_is_left_and_held_for_others_is_not_left_for_it() -> None:
    row = queued("job-0", Reason.HELD) | {"bytes": 2 * GIB, "heldFor": "ml/old"}
    text = told(chargedBytes=98 * GIB, heldBytes=8 * GIB, queue=[row])
    assert "and 2Gi of 100Gi are left (98Gi charged, 0 reserved for pods on their way)" in text
    assert "held for ml/old, which has waited longer" in text
    assert "pods on their way), all of it held for pods that have waited longer" in text


def test_a_pod_on_its_way_is_not_told_to_wait() -> None:
    mine = {"podUID": "u", "namespace": "ml", "name": "job-0", "bytes": 80 * GIB}
    text = told(chargedBytes=0, reservations=[mine])
    assert "room is reserved for it; its gate will be opened now" in text
    assert "have the quota raised" not in text
    assert "20Gi of 100Gi are left (0 charged, 80Gi reserved for pods on their way)" in text


def test_one_far_behind_is_told_so() -> None:
    text = told(chargedBytes=0, queue=[queued(f"p{number}") for number in range(50)])
    assert "behind the first 50 of the queue" in text


def test_what_nobody_has_looked_at_is_not_called_full() -> None:
    text = told()
    assert "not in the queue yet: the leader has not looked at it" in text
    assert "what is charged of 100Gi is not counted yet" in text


@pytest.mark.parametrize("reason", sorted(NEXT_STEP))
def test_the_next_step_is_that_of_its_event(reason: Reason) -> None:
    about = known(chargedBytes=0, queue=[queued("job-0", reason)])
    assert last_step(about) == f"  next step: {NEXT_STEP[reason]}"


def test_a_pod_that_never_fits_is_not_told_to_wait() -> None:
    assert "wait" not in NEXT_STEP[Reason.NEVER_FITS]
    assert "wait" not in NEXT_STEP[Reason.INCOMPLETE]


def test_the_pod_that_room_is_held_for_has_its_name() -> None:
    row = queued("job-0", "HeldForAnother") | {"heldFor": "ml/big"}
    assert "held for ml/big, which has waited longer" in told(chargedBytes=0, queue=[row])
    nameless = told(chargedBytes=0, queue=[queued("job-0", Reason.HELD)])
    assert "held for pods that have waited longer" in nameless


def test_who_may_not_read_tenants_has_the_reason_from_the_latest_event() -> None:
    events = ({"reason": "NoRoom", "message": "m"}, {"reason": "LargerThanQuota", "message": "m"})
    about = replace(known(), tenants=None, events=(*events, {"reason": "Other", "message": "m"}))
    assert last_step(about) == f"  next step: {NEXT_STEP[Reason.NEVER_FITS]}"


def test_what_nobody_has_looked_at_is_no_lack_of_room() -> None:
    assert "if it stays so, the platform team looks whether a controller" in last_step(known())


def test_a_tenant_that_can_not_be_read_is_the_platform_teams() -> None:
    broken = replace(tenant(), spec=None, problem="no quota")
    about = replace(known(), tenants=(broken,))
    assert last_step(about) == f"  next step: {NEXT_STEP[Reason.UNREADABLE]}"


def test_a_pod_without_a_gpu_is_told_that_nobody_opens_the_gate_its_author_gave_it() -> None:
    lines = explain_pod(gated(container(gpus=None)), known())
    assert lines[1:] == [
        "  It asks for no GPU, so nobody is charged for it.",
        "  waits: at the gate gpumemory.dev/quota, which nobody opens. The operator gives it to"
        " pods that ask for a GPU and to no others: whoever wrote this pod gave it to it",
        "  next step: delete the pod and create it again without gpumemory.dev/quota in its"
        " spec.schedulingGates",
    ]
