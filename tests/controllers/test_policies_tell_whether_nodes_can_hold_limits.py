"""A policy whose minimumEnforcer no node has is usable, and says so with the numbers."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.stored import node, policies, policy
from gpumem_operator import names
from gpumem_operator.admission.policy_status import PolicySurroundings, policy_status
from gpumem_operator.api.values import Values
from gpumem_operator.ledger.node_enforcers import AbleNodes, able_nodes

NOW = "2026-03-01T12:00:00Z"
KIND = "MinimumEnforcerUnavailable"
MPS_OF_THREE = AbleNodes(3, {"MPS": 1})


def status(
    nodes: AbleNodes | None, *, current: Any = None, values: Values | None = None, **spec: Any
) -> dict[str, Any]:
    (record,) = policies(policy(**spec))
    around = PolicySurroundings((record,), (), nodes, values or Values())
    return policy_status(record, around, current=current or {}, now=NOW)


def told(nodes: AbleNodes | None, **rest: Any) -> tuple[str, str, str]:
    (one,) = [entry for entry in status(nodes, **rest)["conditions"] if entry["type"] == KIND]
    return one["status"], one["reason"], one["message"]


def asks(enforcer: str) -> dict[str, Any]:
    return {"enforcement": {"minimumEnforcer": enforcer}}


def test_what_no_node_can_is_said_with_numbers_and_the_policy_stays_ready() -> None:
    state, reason, text = told(MPS_OF_THREE, **asks("Driver"))
    assert (state, reason) == ("True", "NoNodeCan")
    assert text == (
        "0 of 3 GPU nodes can hold limits by Driver, as spec.enforcement.minimumEnforcer Driver"
        " asks: pods with a limit wait until a node is labelled gpumemory.dev/enforcer.driver=true."
        " Next step: chart value agent.enabled has each node's agent find out whether the driver"
        " can, or ask nodes for less (spec.enforcement.minimumEnforcer, or the chart's"
        " driverLimits)."
    )
    ready = status(MPS_OF_THREE, **asks("Driver"))["conditions"][0]
    assert (ready["type"], ready["status"]) == ("Ready", "True")


def test_one_node_is_enough() -> None:
    state, reason, text = told(MPS_OF_THREE, **asks("MPS"))
    assert (state, reason) == ("False", "NodesCan")
    assert text.startswith("1 of 3 GPU nodes can hold limits by MPS, as ")


def test_a_cluster_without_gpu_nodes_has_none_that_can() -> None:
    state, _, text = told(AbleNodes(0, {}), **asks("MPS"))
    assert (state, text[:15]) == ("True", "0 of 0 GPU node")


@pytest.mark.parametrize("spec", [{}, {**asks("Driver"), "mode": "Observe"}])
def test_a_policy_that_asks_nothing_of_nodes_says_that(spec: dict[str, Any]) -> None:
    assert told(AbleNodes(3, {}), **spec)[:2] == ("False", "NotRequired")


def test_the_charts_driver_limits_ask_for_every_policy() -> None:
    values = Values.model_validate({"driverLimits": "Enabled"})
    state, _, text = told(MPS_OF_THREE, values=values, **asks("MPS"))
    assert (state, "as the chart's driverLimits asks" in text) == ("True", True)


def test_a_spec_that_can_not_be_read_asks_for_something_unknown() -> None:
    assert told(MPS_OF_THREE, limits={"default": "8GB"})[:2] == ("Unknown", "InvalidSpec")


def test_a_new_leader_leaves_what_is_stored_until_it_has_counted_nodes() -> None:
    before = status(MPS_OF_THREE, **asks("Driver"))
    assert status(None, current=before, **asks("Driver")) == before


def test_nodes_are_counted_by_their_labels() -> None:
    nodes = [
        node("a", memory="81920", **{names.MPS_NODE_LABEL: "true"}),
        node("b", memory="81920", **{names.MPS_NODE_LABEL: "no"}),
        node("cpu"),
    ]
    assert able_nodes(nodes) == AbleNodes(2, {"MPS": 1})
