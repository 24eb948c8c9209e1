"""A leader's API that keeps what it is told: statuses go back into the cache, as a watch would."""

from __future__ import annotations

from typing import Any

from controllers.stored import Raw
from gpumem_operator.controllers.table import Table
from gpumem_operator.kube.api import Api


class Recorder(Api):
    """Stores what is written, as the API server would send it back."""

    def __init__(self, table: Table[Any], raw: Raw) -> None:
        """`raw` is the one object whose status is written; its rows are in `table`."""
        self._table = table
        self._raw = raw
        self.statuses: list[Raw] = []
        self.events: list[Raw] = []

    async def request(self, method: str, path: str, **fields: Any) -> Raw:  # noqa: ARG002
        body = fields["body"]
        if method == "POST":
            self.events.append(body)
            return dict(body)
        self.statuses.append(body["status"])
        version = str(int(body["metadata"]["resourceVersion"]) + 1)
        metadata = self._raw["metadata"] | {"resourceVersion": version}
        # A status is merged, field by field.
        status = dict(self._raw.get("status") or {}) | body["status"]
        self._raw = self._raw | {"metadata": metadata, "status": status}
        self._table.see(self._raw)
        return self._raw


class Leads:
    """This process leads."""

    write_seconds = 10.0

    def check(self) -> None:
        """Always."""
