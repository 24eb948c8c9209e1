"""A tenant tells in which of its namespaces GPUs can be had without asking for them."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.stored import tenant, tenant_of
from gpumem_operator import names
from gpumem_operator.api.memberships import memberships
from gpumem_operator.api.records import NamespaceRecord
from gpumem_operator.ledger.tenant_status import tenant_status

NOW = "2026-03-01T12:00:00Z"
TEAM = {"team": "a"}
ISOLATED = {**TEAM, names.ISOLATE_LABEL: "true"}


def said(*labels: dict[str, str], limit: str = "80Gi") -> dict[str, Any]:
    one = tenant_of(tenant("a", limit=limit, selector={"matchLabels": TEAM}))
    places = memberships([NamespaceRecord(f"n{i}", given) for i, given in enumerate(labels)], [one])
    status = tenant_status(one, (), current={}, now=NOW, not_isolated=places.not_isolated(one.name))
    (found,) = [c for c in status["conditions"] if c["type"] == "NamespacesNotIsolated"]
    return dict(found)


@pytest.mark.parametrize("value", [None, "false", "", "True"])
def test_a_namespace_without_the_label_is_named_with_the_next_step(value: str | None) -> None:
    other = TEAM if value is None else {**TEAM, names.ISOLATE_LABEL: value}
    found = said(ISOLATED, other, {"team": "b"})
    assert (found["status"], found["reason"]) == ("True", "LabelMissing")
    assert found["message"].startswith("n1: containers that ask for no GPU may see those")
    assert found["message"].endswith("kubectl label namespace n1 gpumemory.dev/isolate=true")


def test_isolated_namespaces_are_nothing_to_tell_of() -> None:
    for found in (said(ISOLATED, ISOLATED), said()):
        assert (found["status"], found["reason"]) == ("False", "Isolated")


def test_many_are_counted() -> None:
    message = said(*[TEAM] * 8)["message"]
    assert "n0, n1, n2, n3, n4 and 3 more: " in message
    assert message.endswith("label namespace n0 n1 n2 n3 n4 gpumemory.dev/isolate=true")


def test_of_a_tenant_that_can_not_be_read_it_is_not_known() -> None:
    assert said(TEAM, limit="12 bananas")["status"] == "Unknown"
