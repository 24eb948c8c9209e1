"""What a node offers of the memory resource, from the labels of NVIDIA's GPU feature discovery.

`nvidia.com/gpu.memory` is MiB of one GPU and `nvidia.com/gpu.count` how many there are, so their
product is what the node has (docs/gpu-feature-discovery of NVIDIA/k8s-device-plugin, and
internal/lm/resource.go there):

- Time slicing and MPS show in `gpu.replicas`, not in `gpu.count`: the product stays physical.
- MIG strategy `single` overrides both labels with memory and number of the slices: the product is
  what the slices have together. Where the slices of a node differ, GFD writes 0 into both.
- MIG strategy `mixed` leaves both as the cards are. The product then counts memory that no slice
  has; a slice is still given out once only, by its own resource `nvidia.com/mig-...`.
- GPUs of several models on one node: GFD writes the labels of one model only, and so do we.
- A GPU that shares the host's memory has a count and no memory label: nothing is offered.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.api.quantity import LARGEST_BYTES, MIB, QuantityError, parse_bytes

FIELD_MANAGER: Final = "gpumem-node-memory"
"""Owner of what we wrote into a node's status: nothing else is ever taken away by us."""


@dataclass(frozen=True)
class Offer:
    """What the status of a node should contain of ours: one resource, or nothing (None)."""

    bytes: int | None


@dataclass(frozen=True)
class Unreadable:
    """The labels are there and make no sense: nothing is changed, and people are told."""

    reason: str


def wanted_offer(labels: Mapping[str, str]) -> Offer | Unreadable:
    """What a node with these labels offers."""
    memory = labels.get(names.NODE_MEMORY_LABEL)
    count = labels.get(names.NODE_COUNT_LABEL)
    if memory is None:
        # Only the count: memory shared with the host. Neither: not a GPU node, or not any more.
        return Offer(None)
    if count is None:
        return Unreadable(
            f"label {names.NODE_MEMORY_LABEL} is there without {names.NODE_COUNT_LABEL}"
        )
    for name, text in ((names.NODE_MEMORY_LABEL, memory), (names.NODE_COUNT_LABEL, count)):
        if not (text.isascii() and text.isdecimal()):
            return Unreadable(f"label {name} is {text!r}, and a whole number is expected")
    amount = int(memory) * MIB * int(count)
    if amount > LARGEST_BYTES:
        return Unreadable(f"{memory} MiB x {count} GPUs is more than a quantity can be")
    return Offer(amount)


def status_patch(
    node: Mapping[str, Any], offer: Offer, memory_resource: str
) -> dict[str, Any] | None:
    """The status to apply as FIELD_MANAGER, None where the node's is right already.

    It contains all that we want to own: the API server takes away what an earlier one contained,
    for example under another name of the resource, and nothing of anybody else.
    """
    status = node.get("status") or {}
    owned = _owned_resources(node)
    if offer.bytes is None:
        return {} if owned else None
    places = [status.get("capacity") or {}, status.get("allocatable") or {}]
    right = all(_amount(place.get(memory_resource)) == offer.bytes for place in places)
    if right and owned <= {memory_resource}:
        return None
    # In bytes: that is how the API server would store and show any other form as well.
    quantity = {memory_resource: str(offer.bytes)}
    return {"capacity": quantity, "allocatable": quantity}


def _amount(quantity: object) -> int | None:
    try:
        return parse_bytes(quantity)
    except QuantityError:
        return None


def _owned_resources(node: Mapping[str, Any]) -> set[str]:
    """Resources in the node's status that were written by us and by nobody since."""
    owned: set[str] = set()
    for entry in _our_entries((node.get("metadata") or {}).get("managedFields") or ()):
        fields = (entry.get("fieldsV1") or {}).get("f:status") or {}
        for place in ("f:capacity", "f:allocatable"):
            owned |= {key.removeprefix("f:") for key in fields.get(place) or () if key != "."}
    return owned


def _our_entries(entries: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    return (
        entry
        for entry in entries
        if entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply"
    )
