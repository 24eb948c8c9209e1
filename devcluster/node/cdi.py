"""Container Device Interface: what a container gets with each card, as a file for containerd.

A device plugin then hands out names alone, as NVIDIA's does with its toolkit in CDI mode.
Source: the specification of CDI (cncf-tags/container-device-interface, SPEC.md, version 0.6.0).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path("/run/cdi")
"""Where the node's containerd looks; the machine's own files are left out."""
KIND = "devcluster.gpumemory.dev/gpu"


@dataclass(frozen=True)
class Edits:
    """What is added to a container."""

    environment: tuple[tuple[str, str], ...] = ()
    mounts: tuple[tuple[str, str, bool], ...] = ()
    """Path on the node, path in the container, whether it is read-only."""
    device_nodes: tuple[str, ...] = ()
    """Paths, the same on both sides."""

    def as_raw(self) -> dict[str, Any]:
        """`containerEdits`. An empty one is none."""
        raw: dict[str, Any] = {}
        if self.environment:
            raw["env"] = ["=".join(pair) for pair in self.environment]
        if self.mounts:
            raw["mounts"] = [_mount(*mount) for mount in self.mounts]
        if self.device_nodes:
            raw["deviceNodes"] = [{"path": path} for path in self.device_nodes]
        return raw


def _mount(source: str, target: str, read_only: bool) -> dict[str, Any]:
    options = ["rbind", "rprivate", "nosuid", "ro" if read_only else "rw"]
    return {"hostPath": source, "containerPath": target, "options": options}


def specification(cards: Mapping[str, Edits], common: Edits) -> str:
    """A file of CDI (JSON): what each card brings, by its UUID, and what all of them do.

    containerd takes no card that brings nothing."""
    devices = [{"name": name, "containerEdits": edits.as_raw()} for name, edits in cards.items()]
    return json.dumps(
        {
            "cdiVersion": "0.6.0",
            "kind": KIND,
            "devices": devices,
            "containerEdits": common.as_raw(),
        },
        indent=2,
    )


def qualified(card: str) -> str:
    """The name by which a device plugin hands out a card."""
    return f"{KIND}={card}"
