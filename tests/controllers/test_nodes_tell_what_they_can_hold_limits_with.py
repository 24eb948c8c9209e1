"""Labels of nodes that can hold limits, and the summary of all nodes that admission reads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpumem_operator import names
from gpumem_operator.api.quantity import MIB
from gpumem_operator.ledger.node_enforcers import (
    FIELD_MANAGER,
    MOST_KINDS,
    NodeSummary,
    labels_patch,
    summary,
    summary_in,
)

DRIVER, MPS = names.DRIVER_NODE_LABEL, names.MPS_NODE_LABEL


def node(*owned: str, **labels: str) -> dict[str, Any]:
    """A GPU node; labels in `owned` are ours."""
    fields: dict[str, Any] = {"f:metadata": {"f:labels": {f"f:{label}": {} for label in owned}}}
    entry = {"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": fields}
    every = {names.NODE_MODEL_LABEL: "NVIDIA-H200", names.NODE_MEMORY_LABEL: "143771"}
    every |= dict.fromkeys(owned, "true") | labels
    return {"metadata": {"name": "gpu", "labels": every, "managedFields": [entry]}}


H200 = {"model": "NVIDIA-H200", "totalBytes": 143771 * MIB}
SHARED = {names.NODE_SHARING_LABEL: "mps"}


@pytest.mark.parametrize(
    ("raw", "driver", "expected"),
    [
        pytest.param(node(), True, {DRIVER: "true"}, id="an agent says that the driver can"),
        pytest.param(node(DRIVER), True, None, id="and it is labelled"),
        pytest.param(node(DRIVER), False, {}, id="it says that the driver can not any more"),
        pytest.param(node(DRIVER), None, None, id="the agent is silent"),
        pytest.param(node(), None, None, id="there is no agent"),
        pytest.param(node(**SHARED), None, {MPS: "true"}, id="shared by MPS"),
        pytest.param(node(MPS, **SHARED), None, None, id="and it is labelled so"),
        pytest.param(node(MPS), None, {}, id="not shared any more"),
        pytest.param(node(**{DRIVER: "true"}), False, None, id="the platform team's own label"),
        pytest.param(node(DRIVER, **{DRIVER: "no"}), True, {DRIVER: "true"}, id="put right"),
        pytest.param(
            node(DRIVER, **SHARED), None, {DRIVER: "true", MPS: "true"}, id="what is ours is kept"
        ),
    ],
)
def test_a_node_s_labels_follow_the_evidence(
    raw: dict[str, Any], driver: bool | None, expected: dict[str, str] | None
) -> None:
    assert labels_patch(raw, driver) == expected


def test_the_summary_counts_nodes_by_kind_in_any_order() -> None:
    nodes = [node(DRIVER), node(), node(DRIVER), {"metadata": {"name": "cpu", "labels": {}}}]
    text = summary(nodes)
    assert text == summary(reversed(nodes))
    assert json.loads(text) == {
        "schemaVersion": 1,
        "enforcers": ["Driver"],
        "kinds": [
            {**H200, "enforcers": [], "nodes": 1},
            {**H200, "enforcers": ["Driver"], "nodes": 2},
        ],
        "leftOut": 0,
    }


def test_the_summary_is_bounded_and_forgets_no_enforcer() -> None:
    kinds = [node(**{names.NODE_MODEL_LABEL: f"model-{n:04}"}) for n in range(MOST_KINDS)]
    last = node(MPS, **{names.NODE_MODEL_LABEL: "z"})
    document = json.loads(summary([*kinds, last]))
    assert (len(document["kinds"]), document["leftOut"]) == (MOST_KINDS, 1)
    found = summary_in(json.dumps(document))
    assert found is not None
    assert found.enforcers == frozenset({"MPS"})


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schemaVersion": 2, "enforcers": []}'])
def test_what_is_no_summary_of_this_version_is_not_known(text: str) -> None:
    assert summary_in(text) is None


def test_no_gpu_node_is_something_else_than_not_known() -> None:
    assert summary_in(summary([])) == NodeSummary(frozenset(), {})


def test_admission_reads_the_largest_card_of_each_model_that_says_how_large_it_is() -> None:
    smaller, silent = {names.NODE_MEMORY_LABEL: "71000"}, {names.NODE_MEMORY_LABEL: "much"}
    nodes = [
        node(**smaller),
        node(),
        node(**smaller),
        node(**silent, **{names.NODE_MODEL_LABEL: "NVIDIA-GB10"}),
        node(**{names.NODE_MODEL_LABEL: "NVIDIA-L4", names.NODE_MEMORY_LABEL: "23034"}),
    ]
    found = summary_in(summary(nodes))
    assert found is not None
    assert found.cards == {"NVIDIA-H200": 143771 * MIB, "NVIDIA-L4": 23034 * MIB}
