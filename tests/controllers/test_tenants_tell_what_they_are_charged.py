"""What the status of a tenant says."""

from typing import Any

from controllers.stored import tenant, tenant_of
from gpumem_operator.api.quantity import GIB
from gpumem_operator.ledger.charged_pod import ChargedPod
from gpumem_operator.ledger.tenant_status import tenant_status

NOW = "2026-03-01T12:00:00Z"


def status(*pods: ChargedPod, raw: dict[str, Any] | None = None) -> dict[str, Any]:
    return tenant_status(tenant_of(raw or tenant(limit="100Gi")), pods, current={}, now=NOW)


def condition(found: dict[str, Any], kind: str) -> dict[str, Any]:
    (one,) = [entry for entry in found["conditions"] if entry["type"] == kind]
    return dict(one)


def charged(gib: int | None, name: str = "p", namespace: str = "team") -> ChargedPod:
    return ChargedPod(namespace, name, None if gib is None else gib * GIB)


def test_a_tenant_that_selects_no_namespace_says_so_and_stays_ready() -> None:
    found = tenant_status(tenant_of(tenant()), (), current={}, now=NOW, namespaces=0)
    ready = condition(found, "Ready")
    assert (ready["status"], ready["reason"]) == ("True", "NoNamespaces")
    assert ready["message"].startswith("No namespace has the labels that spec.namespaceSelector")
    some = tenant_status(tenant_of(tenant()), (), current={}, now=NOW, namespaces=1)
    assert condition(some, "Ready")["reason"] == "Applied"


def test_charges_are_added_up() -> None:
    found = status(charged(40), charged(60))
    assert found["chargedBytes"] == 100 * GIB
    assert found["readable"]["charged"] == "100Gi"
    within = condition(found, "WithinQuota")
    assert (within["status"], within["reason"]) == ("True", "ChargesFit")
    assert within["message"] == "100Gi of 100Gi is charged."


def test_a_tenant_without_pods_is_charged_zero_and_not_nothing() -> None:
    assert status()["chargedBytes"] == 0


def test_more_than_the_quota_says_how_much_too_much() -> None:
    within = condition(status(charged(40), charged(61)), "WithinQuota")
    assert (within["status"], within["reason"]) == ("False", "QuotaExceeded")
    assert "101Gi" in within["message"]
    assert "1Gi too much. Nothing is evicted; new pods wait until" in within["message"]
    refusing = status(charged(101), raw=tenant(onExceeded="Reject"))
    message = condition(refusing, "WithinQuota")["message"]
    assert "1Gi too much. Nothing is evicted; new pods are refused until" in message


def test_a_charge_that_can_not_be_read_makes_the_answer_unknown_unless_it_is_no_anyway() -> None:
    within = condition(status(charged(40), charged(None, "odd")), "WithinQuota")
    assert (within["status"], within["reason"]) == ("Unknown", "ChargeUnknown")
    assert "team/odd" in within["message"]
    over = condition(status(charged(140), charged(None)), "WithinQuota")
    assert over["status"] == "False"


def test_a_spec_that_can_not_be_read_charges_an_unknown_amount() -> None:
    found = status(raw=tenant(limit="12 bananas"))
    assert found["chargedBytes"] is None
    assert found["readable"] is None
    assert found["usedBytes"] is None
    assert condition(found, "Ready")["reason"] == "InvalidSpec"
    assert condition(found, "WithinQuota")["status"] == "Unknown"


def test_the_ten_largest_pods_are_shown_in_a_stable_order() -> None:
    pods = [charged(size, f"p{size:02}") for size in range(12)]
    twins = [charged(11, "a", "other"), charged(11, "a")]
    top = status(*pods, *twins)["topPods"]
    assert len(top) == 10
    assert [(row["namespace"], row["name"]) for row in top[:3]] == [
        ("other", "a"),
        ("team", "a"),
        ("team", "p11"),
    ]
    assert top[0]["chargedBytes"] == 11 * GIB
