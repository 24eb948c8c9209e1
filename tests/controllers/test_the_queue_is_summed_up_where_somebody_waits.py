"""Sums of tenants cost time that grows with the cluster, at each change of a pod."""

from typing import Any

from controllers.stored import Raw, managed_pod, sealed
from controllers.team_cache import SEAL, team_cache
from gpumem_operator import names
from gpumem_operator.api.quantity import GIB
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.queue_picture import Picture, picture_of

WAITS = (names.QUOTA_GATE,)
COUNTED: Any = {"queuedBytes": 0, "observedGeneration": 0}


def picture(*pods: Raw, recount: frozenset[str] = frozenset(), **status: Any) -> Picture:
    return picture_of(team_cache(*pods, **status), Values(), recount=recount)


def a_pod(name: str, **fields: Any) -> Raw:
    return managed_pod(name, policy="training", limit_bytes=8 * GIB, **fields)


def test_a_tenant_that_nobody_waits_for_is_left_out() -> None:
    found = picture(a_pod("runs"), **COUNTED)
    assert (found.accounts, found.waiting) == ((), ())


def test_a_tenant_whose_queue_was_never_counted_is_counted_once() -> None:
    [account] = picture(a_pod("runs")).accounts
    assert account.charged_bytes == 8 * GIB


def test_one_whose_spec_changed_is_counted_again() -> None:
    assert picture(a_pod("runs"), **COUNTED | {"observedGeneration": 7}).accounts


def test_one_that_refuses_is_counted_whenever_a_pod_of_it_changed() -> None:
    assert picture(a_pod("runs"), recount=frozenset({"research"}), **COUNTED).accounts


def test_one_that_a_pod_waits_for_is_summed_up() -> None:
    found = picture(a_pod("runs"), a_pod("waits", gates=WAITS), **COUNTED)
    [account] = found.accounts
    assert account.charged_bytes == 8 * GIB
    assert [pod.name for pod in found.waiting] == ["waits"]


def test_so_is_one_with_room_reserved_and_one_whose_queue_is_over() -> None:
    reserved = {"podUID": "gone", "namespace": "team", "name": "gone", "bytes": GIB}
    assert picture(**COUNTED, reservations=[reserved]).accounts
    row = {"namespace": "team", "name": "gone", "bytes": GIB, "reason": "NoRoom"}
    assert picture(**COUNTED, queue=[row]).accounts


def test_a_pod_whose_gate_was_opened_waits_no_more() -> None:
    cache = Cache(Values(), own_namespace="gpumem-system")
    cache.seal = SEAL
    waits = sealed(a_pod("waits", gates=WAITS), SEAL)
    cache.pods.see(waits)
    assert [row.uid for row in cache.gated_pods()] == [waits["metadata"]["uid"]]

    opened = {**waits, "metadata": {**waits["metadata"], "resourceVersion": "2"}}
    cache.pods.see({**opened, "spec": {**waits["spec"], "schedulingGates": []}})
    assert cache.gated_pods() == []


def test_room_is_kept_as_long_as_the_tenant_does_not_charge_the_pod() -> None:
    """The watch of namespaces may be behind that of pods."""
    stray = {**a_pod("stray"), "metadata": {**a_pod("stray")["metadata"], "namespace": "new"}}
    uid = stray["metadata"]["uid"]
    reserved = {"podUID": uid, "namespace": "new", "name": "stray", "bytes": 8 * GIB}
    found = picture(stray, reservations=[reserved], **COUNTED)
    assert (found.seen, found.opened) == (frozenset({uid}), frozenset())
    assert found.stray == {uid: "new"}

    uid = a_pod("known")["metadata"]["uid"]
    reserved = {"podUID": uid, "namespace": "team", "name": "known", "bytes": 8 * GIB}
    found = picture(a_pod("known"), reservations=[reserved], **COUNTED)
    assert (found.seen, found.opened) == (frozenset({uid}), frozenset({uid}))
    [account] = found.accounts
    assert account.charged_bytes == 8 * GIB


def test_a_pod_that_is_being_deleted_waits_for_nothing_and_keeps_no_room() -> None:
    """A finalizer may keep it for long, and no scheduler takes it."""
    ends = a_pod("ends", gates=WAITS)
    ends["metadata"]["deletionTimestamp"] = "2026-03-01T00:00:00Z"
    uid = ends["metadata"]["uid"]
    reserved = {"podUID": uid, "namespace": "team", "name": "ends", "bytes": 8 * GIB}
    found = picture(ends, reservations=[reserved], **COUNTED)
    assert found.waiting == ()
    assert uid in found.opened
    [account] = found.accounts
    assert account.charged_bytes == 0
