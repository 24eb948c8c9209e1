"""A tenant as people are told of it, beside the pods that are charged to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class TenantView:
    """What is known without its pods."""

    name: str
    namespaces: tuple[str, ...] | None
    """None where its spec can not be read, so that nobody knows which it means."""
    limit_bytes: int | None
    whole_gpu_bytes: int | None
    on_exceeded: str | None
    shared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Its namespaces that are in other tenants too, with the names of these."""
    conditions: tuple[Mapping[str, Any], ...] = ()
    """As they are stored."""
