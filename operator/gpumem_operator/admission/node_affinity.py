"""Pods whose limit something must hold go only to nodes where it can be had.

    our expression   {key: gpumemory.dev/enforcer.driver, operator: In, values: ["true"]}

It is added to every term of the author's required node affinity, because terms are alternatives. An
annotation says which one was added, so that a pod that is created again under another policy loses
it, and an author's own expression stays.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gpumem_operator import names

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_LABELS: Final = frozenset({names.DRIVER_NODE_LABEL, names.MPS_NODE_LABEL})

Term = Mapping[str, Any]


def affinity_with(
    affinity: Mapping[str, Any] | None, *, added_before: str | None, label: str | None
) -> dict[str, Any] | None:
    """The pod's affinity with the node label required; None for no affinity at all.

    `added_before` is the label that an earlier admission added, `label` the one that is wanted now.
    """
    found = dict(affinity or {})
    node = dict(found.pop("nodeAffinity", None) or {})
    required = node.pop(_REQUIRED, None)
    terms: list[Term] = list((required or {}).get("nodeSelectorTerms") or ())
    if added_before in _LABELS:
        ours = _expression(added_before)
        terms = [left for term in terms if (left := _without(term, ours)) is not None]
    if label is not None:
        terms = _all_with(terms, _expression(label))
    if terms:
        node[_REQUIRED] = {**(required or {}), "nodeSelectorTerms": terms}
    if node:
        found["nodeAffinity"] = node
    return found or None


def _expression(label: str | None) -> Mapping[str, Any]:
    return {"key": label, "operator": "In", "values": ["true"]}


def _without(term: Term, ours: Mapping[str, Any]) -> Term | None:
    """The term without the last expression like ours; None where nothing else was in it."""
    expressions = list(term.get("matchExpressions") or ())
    if ours not in expressions:
        return term
    expressions.reverse()
    expressions.remove(ours)
    expressions.reverse()
    left = {key: value for key, value in term.items() if key != "matchExpressions"}
    if expressions:
        left["matchExpressions"] = expressions
    return left or None


def _all_with(terms: Sequence[Term], ours: Mapping[str, Any]) -> list[Term]:
    if not terms:
        return [{"matchExpressions": [ours]}]
    # An empty term matches no node: with something in it, it would match some.
    return [
        {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), ours]}
        if term.get("matchExpressions") or term.get("matchFields")
        else term
        for term in terms
    ]
