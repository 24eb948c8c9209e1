"""Policies, tenants and namespaces as they were read from an API server or a file.

An object whose spec can not be read is kept with the reason: a policy that the operator does not
understand must not look like a policy that is not there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from gpumem_operator.api.lowered_bounds import within_bounds
from gpumem_operator.api.policy import NAME_FITS_LABEL, PolicySpec
from gpumem_operator.api.tenant import TenantSpec

NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"
"""Set by the API server on every namespace."""


@dataclass(frozen=True)
class PolicyRecord:
    """One GPUMemoryPolicy; exactly one of `spec` and `problem` is set."""

    namespace: str
    name: str
    uid: str
    created: str
    """creationTimestamp: RFC 3339 in UTC, so that text order is time order. Empty in files."""
    generation: int
    spec: PolicySpec | None
    problem: str | None
    read_as: tuple[str, ...] = ()
    """Sentences on values that are read as others than were written."""


@dataclass(frozen=True)
class TenantRecord:
    """One GPUMemoryTenant; exactly one of `spec` and `problem` is set."""

    name: str
    uid: str
    generation: int
    spec: TenantSpec | None
    problem: str | None
    read_as: tuple[str, ...] = ()
    """Sentences on values that are read as others than were written."""


@dataclass(frozen=True)
class NamespaceRecord:
    """One namespace with its labels."""

    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True)
class Surroundings:
    """What decides about the pods of one namespace, apart from the pods themselves."""

    namespace: NamespaceRecord
    policies: tuple[PolicyRecord, ...]
    """Policies of this namespace, in any order."""
    tenants: tuple[TenantRecord, ...]
    """Tenants that this namespace belongs to, by name, and those that can not be read."""


def policy_record(raw: Mapping[str, Any], *, strict: bool = False) -> PolicyRecord:
    """The record of a policy object; `strict` refuses what kubectl and the API server do."""
    metadata = raw.get("metadata") or {}
    spec: PolicySpec | None = None
    problem = None
    written: Any = raw.get("spec")
    read_as: tuple[str, ...] = ()
    if not strict:
        written, read_as = within_bounds(written, at="spec")
    try:
        spec = PolicySpec.model_validate(written, extra="forbid" if strict else "ignore")
    except ValidationError as error:
        problem = describe_validation_error(error, at="spec")
    name = metadata.get("name") or ""
    if (fault := NAME_FITS_LABEL.problem(name)) is not None:
        spec, problem = None, "; ".join(filter(None, (f"metadata.name: {fault}", problem)))
    return PolicyRecord(
        namespace=metadata.get("namespace") or "default",
        name=name,
        uid=metadata.get("uid") or "",
        created=_as_written(metadata.get("creationTimestamp")),
        generation=metadata.get("generation") or 0,
        spec=spec,
        problem=problem,
        read_as=read_as,
    )


def tenant_record(raw: Mapping[str, Any], *, strict: bool = False) -> TenantRecord:
    """The record of a tenant object; `strict` refuses what kubectl and the API server do."""
    metadata = raw.get("metadata") or {}
    spec: TenantSpec | None = None
    problem = None
    written: Any = raw.get("spec")
    read_as: tuple[str, ...] = ()
    if not strict and isinstance(written, Mapping):
        default, read_as = within_bounds(written.get("defaultPolicy"), at="spec.defaultPolicy")
        written = {**written, "defaultPolicy": default}
    try:
        spec = TenantSpec.model_validate(written, extra="forbid" if strict else "ignore")
    except ValidationError as error:
        problem = describe_validation_error(error, at="spec")
    return TenantRecord(
        name=metadata.get("name") or "",
        uid=metadata.get("uid") or "",
        generation=metadata.get("generation") or 0,
        spec=spec,
        problem=problem,
        read_as=read_as,
    )


def namespace_record(raw: Mapping[str, Any]) -> NamespaceRecord:
    """The record of a namespace object, with the label that the API server adds."""
    metadata = raw.get("metadata") or {}
    name = metadata.get("name") or ""
    return NamespaceRecord(
        name=name, labels={**(metadata.get("labels") or {}), NAMESPACE_NAME_LABEL: name}
    )


def tenants_of(
    namespace: NamespaceRecord, tenants: tuple[TenantRecord, ...]
) -> tuple[TenantRecord, ...]:
    """The tenants that the namespace belongs to, in name order.

    A tenant that can not be read might select the namespace, so it is among them.
    """
    chosen = [
        tenant
        for tenant in tenants
        if tenant.spec is None or tenant.spec.namespace_selector.matches(namespace.labels)
    ]
    return tuple(sorted(chosen, key=lambda tenant: tenant.name))


def _as_written(time: object) -> str:
    """The text of a time: a YAML file that does not quote it has a datetime there."""
    if isinstance(time, datetime):
        return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return str(time) if time else ""


def describe_validation_error(error: ValidationError, *, at: str) -> str:
    """Every fault with its path, in one line: `spec.limits.min: '8GB' is not a quantity...`."""
    faults = []
    for fault in error.errors(include_url=False, include_context=False):
        path = ".".join(str(part) for part in (at, *fault["loc"]))
        text = fault["msg"].removeprefix("Value error, ")
        if fault["type"] == "extra_forbidden":
            text = "unknown field"
        elif fault["type"] == "missing" or fault["input"] is None:
            text = "is required"
        faults.append(f"{path}: {text}")
    return "; ".join(faults)
