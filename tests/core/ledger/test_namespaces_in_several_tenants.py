"""A namespace in several tenants is charged to each of them, and each says so by name."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from controllers.stored import tenant, tenant_of
from gpumem_operator.api.memberships import memberships
from gpumem_operator.api.records import NamespaceRecord
from gpumem_operator.ledger.tenant_status import tenant_status

NOW = "2026-03-01T12:00:00Z"


def selecting(name: str, **labels: str) -> Any:
    return tenant_of(tenant(name, selector={"matchLabels": labels}))


def ready(shared: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    status = tenant_status(tenant_of(tenant("all")), (), current={}, now=NOW, shared=shared)
    (one,) = [entry for entry in status["conditions"] if entry["type"] == "Ready"]
    return dict(one)


labels = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2)


@given(st.lists(labels, max_size=5), st.lists(labels, max_size=4))
def test_sharing_is_mutual_and_nobody_shares_with_itself(
    namespaces: list[dict[str, str]], selectors: list[dict[str, str]]
) -> None:
    tenants = [selecting(f"t{number}", **wanted) for number, wanted in enumerate(selectors)]
    places = memberships(
        [NamespaceRecord(f"n{number}", given) for number, given in enumerate(namespaces)], tenants
    )
    pairs = {
        (one.name, namespace, other)
        for one in tenants
        for namespace, others in places.shared(one.name).items()
        for other in others
    }
    assert pairs == {(other, namespace, one) for one, namespace, other in pairs}
    assert all(one != other for one, _, other in pairs)
    for name, found in places.by_tenant.items():
        assert all(name in {one.name for one in places.by_namespace[place]} for place in found)


def test_a_tenant_that_can_not_be_read_shares_nothing_that_is_known() -> None:
    odd = tenant_of(tenant("odd", limit="12 bananas"))
    places = memberships([NamespaceRecord("n", {"a": "x"})], [selecting("fine", a="x"), odd])
    assert places.by_tenant == {"fine": ("n",)}
    assert places.shared("fine") == {}
    assert places.shared("odd") == {}


def test_ready_names_the_others_and_stays_true() -> None:
    assert ready({})["reason"] == "Applied"
    found = ready({"ml": ("research", "vision"), "ci": ("build",)})
    assert (found["status"], found["reason"]) == ("True", "SharedNamespaces")
    assert found["message"].endswith(
        "Pods of 2 of its namespaces are charged to other tenants as well: ci is also in build; ml"
        " is also in research, vision."
    )


def test_a_long_list_is_cut_and_counted() -> None:
    many = {f"n{number}": tuple(f"t{other}" for other in range(5)) for number in range(5)}
    message = ready(many)["message"]
    assert "n0 is also in t0, t1, t2 and 2 more; n1" in message
    assert message.endswith("n2 is also in t0, t1, t2 and 2 more and 2 more.")
