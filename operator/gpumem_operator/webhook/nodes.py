"""The cards of the nodes, and what holds limits there, as the controller last wrote it.

It only adds a warning, so nothing waits for it: until it is here, nothing is said.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpumem_operator.ledger.node_enforcers import SUMMARY_KEY, NodeSummary, summary_in

Tell = Callable[[NodeSummary | None], None]


class NodesCopy:
    """Gives each version of the one ConfigMap to `tell`."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def replace(self, objects: Sequence[Mapping[str, Any]]) -> None:
        if not objects:
            self._tell(None)
        for raw in objects:
            self.put(raw)

    def put(self, raw: Mapping[str, Any]) -> None:
        self._tell(summary_in((raw.get("data") or {}).get(SUMMARY_KEY) or ""))

    def drop(self, raw: Mapping[str, Any]) -> None:  # noqa: ARG002 (part of the protocol)
        self._tell(None)
