"""`kubectl gpumem why pod/x` of a pod that waits at its tenant's quota."""

from typing import Any

from builders import GIB, around, pod, tenant
from gpumem_operator import names
from gpumem_operator.cli.explain import Known, explain_pod


def told(**status: Any) -> str:
    raw = pod(schedulingGates=[{"name": names.QUOTA_GATE}], status={"phase": "Pending"})
    raw["metadata"]["uid"] = "u"
    known = Known(
        (),
        around().namespace,
        tenants=(tenant(limit="100Gi"),),
        tenant_statuses={"research": status},
    )
    return "\n".join(explain_pod(raw, known))


def queued(name: str, reason: str = "NoRoom") -> dict[str, Any]:
    return {"namespace": "ml", "name": name, "bytes": 80 * GIB, "reason": reason}


def test_its_place_the_room_and_who_holds_it() -> None:
    holder = {"namespace": "ml", "name": "big", "chargedBytes": 90 * GIB}
    text = told(chargedBytes=90 * GIB, queue=[queued("other"), queued("job-0")], topPods=[holder])
    assert "tenant research: place 2 in the queue, NoRoom: there is not enough room for it" in text
    assert (
        "10Gi of 100Gi are left (90Gi charged, 0 reserved for pods on their way). Most is charged"
        " to ml/big 90Gi"
    ) in text
    assert "room for it: it asks for 80Gi, 70Gi too little" in text
    assert "charged: nothing, it waits" in text


def test_a_tenant_that_has_the_room_is_not_blamed() -> None:
    text = told(chargedBytes=10 * GIB, queue=[queued("job-0")])
    assert "place 1 in the queue, NoRoom: it asks for 80Gi, which is there; its group" in text
    assert "too little" not in text


def test_a_pod_on_its_way_is_not_told_to_wait() -> None:
    mine = {"podUID": "u", "namespace": "ml", "name": "job-0", "bytes": 80 * GIB}
    text = told(chargedBytes=0, reservations=[mine])
    assert "room is reserved for it; its gate will be opened now" in text
    assert "20Gi of 100Gi are left (0 charged, 80Gi reserved for pods on their way)" in text


def test_one_far_behind_is_told_so() -> None:
    text = told(chargedBytes=0, queue=[queued(f"p{number}") for number in range(50)])
    assert "behind the first 50 of the queue" in text


def test_what_nobody_has_looked_at_is_not_called_full() -> None:
    text = told()
    assert "not in the queue yet: the leader has not looked at it" in text
    assert "what is charged of 100Gi is not counted yet" in text
