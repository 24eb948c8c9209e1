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

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> Self:
        """What `as_json` wrote."""
        raw: dict[str, Any] = json.loads(text)
        return cls(raw["resource"], tuple(raw["devices"]))
