"""What the series about tenants are made of."""

from controllers.stored import Raw, managed_pod, tenant
from controllers.team_cache import team_cache
from gpumem_operator import names
from gpumem_operator.api.quantity import GIB
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.tenant_views import tenant_views
from gpumem_operator.metrics.tenants import TenantView


def view(*pods: Raw, **status: object) -> TenantView:
    [found] = tenant_views(team_cache(*pods, **status), Values())
    return found


def waits(name: str) -> Raw:
    return managed_pod(name, policy="training", limit_bytes=8 * GIB, gates=(names.QUOTA_GATE,))


def test_charge_and_reservations_are_those_that_are_stored() -> None:
    reserved = {"podUID": "u", "namespace": "team", "name": "next", "bytes": 2 * GIB}
    seen = view(chargedBytes=8 * GIB, queuedBytes=0, reservations=[reserved])
    assert (seen.charged_bytes, seen.reserved_bytes, seen.queued_bytes) == (8 * GIB, 2 * GIB, 0)


def test_pods_with_our_gate_wait_and_others_do_not() -> None:
    runs = managed_pod("runs", policy="training", limit_bytes=8 * GIB)
    assert len(view(waits("one"), waits("two"), runs).waiting_since or ()) == 2


def test_what_was_not_counted_yet_is_not_known() -> None:
    seen = view(waits("one"))
    assert (seen.charged_bytes, seen.queued_bytes) == (None, None)


def test_whom_pods_wait_for_is_not_known_while_a_tenant_can_not_be_read() -> None:
    broken = {**tenant("broken"), "spec": {"quota": "none"}}
    cache = team_cache(waits("one"))
    cache.tenants.see(broken)
    assert [seen.waiting_since for seen in tenant_views(cache, Values())] == [None, None]
    idle = team_cache()
    idle.tenants.see(broken)
    assert [seen.waiting_since for seen in tenant_views(idle, Values())] == [(), ()]
