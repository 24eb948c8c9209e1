"""GPUs by the names that senders give them: no more names than there can be GPUs.

A name becomes the label of series, and whoever writes a pod's report or its shim's files can invent
new ones for each report. So a sidecar gets only so many in its life, and what an agent passes on
from shims has the name of a card that it sees itself. Everything else is on a GPU without a name.
"""

import re
from collections.abc import Collection
from typing import Final

MOST_OF_POD: Final = 32
"""Names that a pod's sender may use: twice the cards of the largest nodes."""
_CLAIMED: Final = re.compile(r"(GPU|MIG)-[A-Za-z0-9/-]+")


class PodNames:
    """Of one pod, for as long as its sender is known."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def takes(self, gpu: str, *, claimed: bool) -> bool:
        """Whether this name may be shown; `claimed`: a shim alone says so."""
        if gpu in self._taken:
            return True
        if len(self._taken) >= MOST_OF_POD or (claimed and not _CLAIMED.fullmatch(gpu)):
            return False
        self._taken.add(gpu)
        return True


class NodeNames:
    """Of one node, as its agent sees it."""

    def __init__(self, listed: Collection[str]) -> None:
        self._listed = listed

    def takes(self, gpu: str, *, claimed: bool) -> bool:
        """Whether this name may be shown; `claimed`: a shim alone says so."""
        return not claimed or gpu in self._listed


Names = PodNames | NodeNames
