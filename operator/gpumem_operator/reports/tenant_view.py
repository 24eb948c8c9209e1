"""A tenant as people are told of it, beside the pods that are charged to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpumem_operator.api.memberships import Memberships
from gpumem_operator.api.records import TenantRecord


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
    held_bytes: int | None = None
    """What pods ask for that have waited for long, as it is stored; None where it is not known."""


def tenant_view(
    record: TenantRecord,
    places: Memberships | None,
    *,
    status: Mapping[str, Any],
) -> TenantView:
    """From its record and stored status; `places` are None where they may not be read."""
    quota = record.spec.quota if record.spec else None
    return TenantView(
        name=record.name,
        namespaces=places.by_tenant.get(record.name) if places else None,
        limit_bytes=quota.limit_bytes if quota else None,
        whole_gpu_bytes=quota.whole_gpu_bytes if quota else None,
        on_exceeded=quota.on_exceeded if quota else None,
        shared=places.shared(record.name) if places else {},
        conditions=tuple(status.get("conditions") or ()),
        held_bytes=status.get("heldBytes"),
    )
