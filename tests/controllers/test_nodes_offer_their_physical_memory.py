"""What a node offers of the memory resource, from its labels, and when its status is touched."""

from typing import Any

import pytest

from controllers.stored import node
from gpumem_operator.api.quantity import MIB
from gpumem_operator.ledger.node_memory import (
    FIELD_MANAGER,
    Offer,
    Unreadable,
    status_patch,
    wanted_offer,
)

RESOURCE = "nvidia.com/memory"


def owned(raw: dict[str, Any], amount: str, resource: str = RESOURCE) -> dict[str, Any]:
    """The node after we wrote to it."""
    status = {key: {**raw["status"][key], resource: amount} for key in ("capacity", "allocatable")}
    fields: dict[str, Any] = {f"f:{key}": {f"f:{resource}": {}} for key in status}
    entry = {"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": {"f:status": fields}}
    return {**raw, "metadata": {**raw["metadata"], "managedFields": [entry]}, "status": status}


@pytest.mark.parametrize(
    ("labels", "mib"),
    [
        pytest.param({"memory": "81559", "count": "8"}, 8 * 81559, id="eight whole cards"),
        pytest.param(
            {"memory": "15360", "count": "1", "nvidia.com/gpu.replicas": "10"},
            15360,
            id="one card, time-sliced ten times",
        ),
        pytest.param(
            {"memory": "4864", "count": "56", "nvidia.com/mig.strategy": "single"},
            56 * 4864,
            id="MIG slices of one size",
        ),
        pytest.param(
            {"memory": "0", "count": "0", "nvidia.com/mig.strategy": "single"},
            0,
            id="MIG slices that the strategy does not allow",
        ),
        pytest.param(
            {"memory": "40960", "count": "8", "nvidia.com/mig-1g.5gb.count": "7"},
            8 * 40960,
            id="MIG slices of several sizes",
        ),
    ],
)
def test_a_gpu_node_offers_memory_times_cards(labels: dict[str, str], mib: int) -> None:
    assert wanted_offer(node(**labels)["metadata"]["labels"]) == Offer(mib * MIB)


@pytest.mark.parametrize(
    "labels",
    [{}, {"count": "1"}],
    ids=["a node without GPUs", "a GPU that shares the host's memory"],
)
def test_a_node_without_memory_of_gpus_offers_nothing(labels: dict[str, str]) -> None:
    assert wanted_offer(node(**labels)["metadata"]["labels"]) == Offer(None)


@pytest.mark.parametrize(
    "labels",
    [
        {"memory": "80GiB", "count": "8"},
        {"memory": "81559", "count": ""},
        {"memory": "-1", "count": "8"},
        {"memory": "81559"},
        {"memory": "9" * 40, "count": "9"},
        {"memory": "\u0664", "count": "8"},
    ],
    ids=["a unit", "empty", "negative", "no count", "beyond a quantity", "foreign digits"],
)
def test_labels_that_make_no_sense_are_not_guessed_at(labels: dict[str, str]) -> None:
    found = wanted_offer(node(**labels)["metadata"]["labels"])
    assert isinstance(found, Unreadable)
    assert "nvidia.com/gpu." in found.reason or "more than a quantity" in found.reason


def test_capacity_and_allocatable_are_written_together_and_nothing_else() -> None:
    amount = {RESOURCE: str(8 * MIB)}
    assert status_patch(node(), Offer(8 * MIB), RESOURCE) == {
        "capacity": amount,
        "allocatable": amount,
    }


@pytest.mark.parametrize("amount", ["8388608", "8Mi"], ids=["bytes", "another form"])
def test_nothing_is_written_where_the_value_is_right(amount: str) -> None:
    assert status_patch(owned(node(), amount), Offer(8 * MIB), RESOURCE) is None


@pytest.mark.parametrize("place", ["capacity", "allocatable"])
@pytest.mark.parametrize("value", ["0", "7Mi", None], ids=["reset", "wrong", "gone"])
def test_a_value_that_somebody_changed_is_corrected(place: str, value: str | None) -> None:
    raw = owned(node(), "8Mi")
    raw["status"][place][RESOURCE] = value
    assert status_patch(raw, Offer(8 * MIB), RESOURCE) is not None


def test_a_node_that_is_no_gpu_node_any_more_loses_what_we_wrote() -> None:
    assert status_patch(owned(node(), "8Mi"), Offer(None), RESOURCE) == {}


def test_what_somebody_else_offers_is_not_taken_away() -> None:
    raw = node()
    raw["status"]["capacity"][RESOURCE] = "8Mi"
    assert status_patch(raw, Offer(None), RESOURCE) is None


def test_a_resource_that_was_renamed_is_offered_under_the_new_name_alone() -> None:
    raw = owned(node(), "8Mi", resource="example.com/memory")
    for place in raw["status"].values():
        place[RESOURCE] = "8Mi"
    patch = status_patch(raw, Offer(8 * MIB), RESOURCE)
    assert patch is not None
    assert set(patch["capacity"]) == {RESOURCE}
