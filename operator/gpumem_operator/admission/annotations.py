"""Annotations under our prefix that mean nothing: almost always a typing error."""

from collections.abc import Iterator
from difflib import get_close_matches
from itertools import islice
from typing import Final

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
        names.RESERVE_ANNOTATION,
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
