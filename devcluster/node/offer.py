"""What a device plugin offers, as data: its program and whoever starts it share this."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Offer:
    """What one plugin offers under one resource name."""

    resource: str
    devices: tuple[str, ...]
    """Names as the kubelet gets them; `UUID::3` is a replica of UUID."""
    environment: tuple[tuple[str, str], ...] = ()
    mounts: tuple[tuple[str, str, bool], ...] = ()
    """Path on the node, path in the container, whether it is read-only."""
    by_cdi: bool = False
    """Whether containers get their cards by the names that `devcluster.node.cdi` gives them."""

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> Self:
        """What `as_json` wrote."""
        raw: dict[str, Any] = json.loads(text)
        lists = {key: tuple(value) for key, value in raw.items() if isinstance(value, list)}
        return cls(**{**raw, **lists})
