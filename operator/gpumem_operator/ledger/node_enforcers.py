"""What nodes can hold limits with: their labels, and the summary that admission reads.

Driver   the node's agent found that the driver can limit containers
MPS      GPU feature discovery says that the node's GPUs are shared by MPS

A label is written by the controller, because an agent that may write nodes could write all of them.
It belongs to a field manager of its own: what the platform team set is neither changed nor taken
away. Where no agent is heard, a node's label stays as it is: its driver does not change because the
agent is silent.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.api.quantity import MIB

FIELD_MANAGER: Final = "gpumem-node-enforcers"
ENFORCER_LABELS: Final = {"Driver": names.DRIVER_NODE_LABEL, "MPS": names.MPS_NODE_LABEL}
MOST_KINDS: Final = 256
SUMMARY_KEY: Final = "nodes.json"
SUMMARY_VERSION: Final = 1


@dataclass(frozen=True)
class AbleNodes:
    """How many nodes can hold limits, of how many that have GPUs."""

    gpu_nodes: int
    able: Mapping[str, int]
    """By enforcer; one that no node has is absent."""


def able_nodes(nodes: Iterable[Mapping[str, Any]]) -> AbleNodes:
    """Counts as the summary for admission does: a node is known by its labels."""
    kinds = [kind for node in nodes if (kind := _kind(node["metadata"]["labels"])) is not None]
    return AbleNodes(len(kinds), dict(Counter(who for *_, able in kinds for who in able)))


def labels_patch(node: Mapping[str, Any], driver_limits: bool | None) -> dict[str, str] | None:
    """The labels to apply as FIELD_MANAGER, all that it owns; None where they are right already.

    `driver_limits` is what a fresh report of the node's agent says; None where there is none.
    """
    owned = _owned(node)
    driver = names.DRIVER_NODE_LABEL in owned if driver_limits is None else driver_limits
    mps = node["metadata"]["labels"].get(names.NODE_SHARING_LABEL) == "mps"
    wanted = {names.DRIVER_NODE_LABEL: driver, names.MPS_NODE_LABEL: mps}
    ours = {label: "true" for label, is_able in wanted.items() if is_able}
    labels = node["metadata"]["labels"]
    right = ours.keys() == owned and all(labels.get(label) == "true" for label in ours)
    return None if right else ours


def _owned(node: Mapping[str, Any]) -> frozenset[str]:
    owned: set[str] = set()
    for entry in node["metadata"].get("managedFields") or ():
        if entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply":
            fields = (entry.get("fieldsV1") or {}).get("f:metadata") or {}
            owned |= {key.removeprefix("f:") for key in fields.get("f:labels") or ()}
    return frozenset(owned & {*ENFORCER_LABELS.values()})


def summary(nodes: Iterable[Mapping[str, Any]]) -> str:
    """GPU nodes by kind, as JSON: the same for the same nodes in any order."""
    kinds = Counter(_kind(node["metadata"]["labels"]) for node in nodes)
    kinds.pop(None, None)
    ordered = sorted((kind, count) for kind, count in kinds.items() if kind is not None)
    rows = [
        {"model": model, "totalBytes": total or None, "enforcers": list(enforcers), "nodes": count}
        for (model, total, enforcers), count in ordered[:MOST_KINDS]
    ]
    document = {
        "schemaVersion": SUMMARY_VERSION,
        # Also of kinds that are left out: whether something can be had at all must not be cut.
        "enforcers": sorted({who for (_, _, enforcers), _ in ordered for who in enforcers}),
        "kinds": rows,
        "leftOut": max(len(ordered) - MOST_KINDS, 0),
    }
    return json.dumps(document, indent=1)


@dataclass(frozen=True)
class NodeSummary:
    """What admission needs to know of the cluster's nodes."""

    enforcers: frozenset[str] = frozenset()
    """What any of them can hold limits with."""
    cards: Mapping[str, int] = field(default_factory=dict)
    """Bytes of one GPU by its model, of the largest where they differ."""


def summary_in(text: str) -> NodeSummary | None:
    """What `summary` wrote; None where it is none of this version."""
    try:
        document = json.loads(text)
    except ValueError:
        return None
    if not isinstance(document, dict) or document.get("schemaVersion") != SUMMARY_VERSION:
        return None
    cards: dict[str, int] = {}
    for kind in document.get("kinds") or ():
        model, total = kind.get("model"), kind.get("totalBytes")
        if model and total:
            cards[model] = max(total, cards.get(model, 0))
    return NodeSummary(frozenset(document.get("enforcers") or ()), cards)


def _kind(labels: Mapping[str, str]) -> tuple[str, int, tuple[str, ...]] | None:
    model, memory = labels.get(names.NODE_MODEL_LABEL), labels.get(names.NODE_MEMORY_LABEL) or ""
    able = tuple(who for who, label in ENFORCER_LABELS.items() if labels.get(label) == "true")
    if model is None and not memory and not able:
        return None
    total = int(memory) * MIB if memory.isascii() and memory.isdecimal() else 0
    return model or "", total, able
