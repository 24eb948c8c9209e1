"""What a kubelet would say of a container that it runs, for pods that have none."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def container_status(container: Mapping[str, Any]) -> dict[str, Any]:
    """Of one that runs and is ready."""
    return _status(container) | {"ready": True, "started": True, "state": {"running": _since()}}


def finished_status(container: Mapping[str, Any]) -> dict[str, Any]:
    """Of an init container that did its work."""
    terminated = {"exitCode": 0, "reason": "Completed"}
    return _status(container) | {"ready": True, "state": {"terminated": terminated}}


def _status(container: Mapping[str, Any]) -> dict[str, Any]:
    named = {key: container[key] for key in ("name", "image")}
    return named | {"imageID": "", "restartCount": 0}


def _since() -> dict[str, str]:
    return {"startedAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
