"""Annotations under our prefix that mean nothing, or nothing where they stand."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.api.pods import PodFacts

_FROM_AUTHORS: Final = (
    names.LIMIT_ANNOTATION,
    names.PYTHON_PATH_ANNOTATION,
    names.PROCESSES_PER_GPU_ANNOTATION,
    names.GROUP_SIZE_ANNOTATION,
)
_OURS: Final = frozenset(
    {
        names.SUMMARY_ANNOTATION,
        names.POLICY_HASH_ANNOTATION,
        names.NODE_AFFINITY_ANNOTATION,
        names.FENCE_ANNOTATION,
    }
)


_SHOWN: Final = 5


def _means_nothing(key: str) -> bool:
    return (
        key.startswith(f"{names.GROUP}/")
        and key not in _OURS
        and key not in _FROM_AUTHORS
        and not key.startswith(names.container_limit_annotation(""))
    )


def unknown_annotations(facts: PodFacts) -> Iterator[str]:
    """A sentence for each of them; an unknown one is kept, and does nothing."""
    for key in islice(filter(_means_nothing, facts.annotations), _SHOWN):
        near = get_close_matches(key.lower(), _FROM_AUTHORS, n=1, cutoff=0.8)
        hint = f": did you mean {near[0]}?" if near else f"; known are {', '.join(_FROM_AUTHORS)}"
        yield f"annotation {key} means nothing{hint}"


def group_of_nobody(pod: Mapping[str, Any], facts: PodFacts) -> Iterator[str]:
    """A sentence about the size of a group on a pod that no controller makes: it waits alone."""
    if facts.annotations.get(names.GROUP_SIZE_ANNOTATION) in (None, "1"):
        return
    owners = (pod.get("metadata") or {}).get("ownerReferences") or ()
    if not any(owner.get("controller") for owner in owners):
        yield (
            f"annotation {names.GROUP_SIZE_ANNOTATION} means nothing here: a group is the pods of"
            " one controller, and this pod has none; create them by a Job, for example"
        )
