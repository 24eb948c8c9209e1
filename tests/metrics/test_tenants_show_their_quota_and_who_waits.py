"""Series about tenants: what is not known has none."""

from __future__ import annotations

from dataclasses import replace

from prometheus_client import CollectorRegistry

from gpumem_operator.metrics.tenants import TenantsCollector, TenantView

GIB = 2**30
VISION = TenantView(
    name="vision",
    quota_bytes=160 * GIB,
    charged_bytes=120 * GIB,
    reserved_bytes=8 * GIB,
    queued_bytes=48 * GIB,
    waiting_since=(1_700_000_060.0, 1_700_000_000.0),
)
UNREADABLE = TenantView(
    name="speech",
    quota_bytes=None,
    charged_bytes=None,
    reserved_bytes=0,
    queued_bytes=None,
    waiting_since=None,
)


def shown(*views: TenantView) -> dict[tuple[str, str], float]:
    registry = CollectorRegistry()
    registry.register(TenantsCollector(lambda: views))
    return {
        (sample.name.removeprefix("gpumem_tenant_"), sample.labels["tenant"]): sample.value
        for family in registry.collect()
        for sample in family.samples
    }


def test_a_tenant_shows_its_quota_what_is_taken_of_it_and_who_waits() -> None:
    assert shown(VISION) == {
        ("quota_bytes", "vision"): 160 * GIB,
        ("charged_bytes", "vision"): 120 * GIB,
        ("reserved_bytes", "vision"): 8 * GIB,
        ("queued_bytes", "vision"): 48 * GIB,
        ("waiting_pods", "vision"): 2,
        ("oldest_waiting_timestamp_seconds", "vision"): 1_700_000_000,
    }


def test_what_is_not_known_has_no_series() -> None:
    assert shown(UNREADABLE) == {("reserved_bytes", "speech"): 0}


def test_that_nobody_waits_is_known() -> None:
    idle = replace(VISION, waiting_since=())
    assert shown(idle)["waiting_pods", "vision"] == 0
    assert ("oldest_waiting_timestamp_seconds", "vision") not in shown(idle)
