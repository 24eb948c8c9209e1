"""What `GET /v1/tenants` answers: sums over the pods of each tenant, null for what is not known."""

from __future__ import annotations

from typing import Any

from gpumem_operator.reports.pictures import Amount
from gpumem_operator.reports.snapshot import PodView, Snapshot, view_of
from gpumem_operator.reports.tenant_view import TenantView
from gpumem_operator.reports.tenants_document import tenants_document
from gpumem_operator.reports.uses import GpuUse, PodUse
from report_builders import GIB, GPU, measured

NOW = "2026-03-01T12:00:00Z"
UNREADABLE = TenantView("odd", None, None, None, None)


def tenant(name: str = "research", **fields: Any) -> TenantView:
    return TenantView(name, ("team",), 100 * GIB, 80 * GIB, "Queue", **fields)


def view(
    name: str, charges: dict[str, int | None], used: int | None, *, queued: Any = None
) -> PodView:
    amount = Amount(used, None if used is not None else "Silent")
    use = PodUse(measured(name), (GpuUse("main", GPU, amount),), "Sidecar")
    return view_of(use, declared_bytes=8 * GIB, charges=charges, queued=queued or {})


def document(*views: PodView, tenants: Any = None, tenant_name: str = "") -> Any:
    pods = {one.use.pod.uid: one for one in views}
    snapshot = Snapshot(pods, tenants=tenants or (tenant(),))
    return tenants_document(snapshot, now=NOW, tenant=tenant_name)


def test_sums_are_of_what_is_known_and_the_rest_is_counted() -> None:
    [row] = document(
        view("a", {"research": 8 * GIB}, 3 * GIB),
        view("b", {"research": 20 * GIB}, None),
        view("c", {"research": None}, 2 * GIB),
        view("d", {"other": 50 * GIB}, 50 * GIB),
    )["tenants"]
    assert (row["chargedBytes"], row["chargedPods"], row["unknownCharges"]) == (28 * GIB, 3, 1)
    assert (row["usedBytes"], row["unknownPods"]) == (5 * GIB, 1)
    assert [pod["name"] for pod in row["topPods"]] == ["name-of-b", "name-of-a", "name-of-c"]
    assert row["topPods"][0]["usedBytes"] is None


def test_where_nothing_is_known_no_number_is_given() -> None:
    [row] = document(view("a", {"research": 8 * GIB}, None))["tenants"]
    assert row["usedBytes"] is None
    [row] = document()["tenants"]
    assert (row["usedBytes"], row["chargedBytes"], row["topPods"]) == (0, 0, [])


def test_a_pod_that_waits_is_queued_and_not_charged() -> None:
    waits = view("w", {"research": 0}, None, queued={"research": 16 * GIB})
    [row] = document(waits)["tenants"]
    assert (row["queuedPods"], row["queuedBytes"]) == (1, 16 * GIB)
    assert (row["chargedPods"], row["chargedBytes"], row["topPods"]) == (0, 0, [])
    assert row["unknownPods"] == 0


def test_a_pod_in_two_tenants_counts_in_each() -> None:
    both = view("a", {"research": 8 * GIB, "all": 8 * GIB}, GIB)
    rows = document(both, tenants=(tenant("all"), tenant()))["tenants"]
    assert [(row["name"], row["chargedBytes"]) for row in rows] == [
        ("all", 8 * GIB),
        ("research", 8 * GIB),
    ]


def test_a_tenant_that_can_not_be_read_has_no_sums() -> None:
    [row] = document(tenants=(UNREADABLE,))["tenants"]
    assert row["namespaces"] is None
    assert {row[key] for key in ("limitBytes", "chargedBytes", "usedBytes", "queuedBytes")} == {
        None
    }


def test_one_tenant_comes_with_its_pods_the_largest_first() -> None:
    found = document(
        view("a", {"research": 8 * GIB}, GIB),
        view("b", {"research": 0}, None, queued={"research": 16 * GIB}),
        view("c", {"other": 8 * GIB}, GIB),
        tenants=(tenant("other"), tenant()),
        tenant_name="research",
    )
    assert [row["name"] for row in found["tenants"]] == ["research"]
    assert [pod["name"] for pod in found["pods"]] == ["name-of-b", "name-of-a"]
    assert found["pods"][0]["queued"] == [{"tenant": "research", "queuedBytes": 16 * GIB}]
    assert "pods" not in document(view("a", {"research": 8 * GIB}, GIB))
