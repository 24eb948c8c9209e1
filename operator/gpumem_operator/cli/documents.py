"""Objects in files -> what the offline commands need, or one line about what is wrong.

Checked as kubectl and the API server would: unknown fields of our kinds, wrong types and unreadable
quantities are errors of the file. Objects that have nothing to do with pods are passed over.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from gpumem_operator import names
from gpumem_operator.api.records import (
    NamespaceRecord,
    PolicyRecord,
    TenantRecord,
    describe_validation_error,
    namespace_record,
    policy_record,
    tenant_record,
)
from gpumem_operator.cli.fields import nearest
from gpumem_operator.cli.remarks import Remark
from gpumem_operator.cli.shapes import MetadataShape, PodShape
from gpumem_operator.cli.sources import DocumentError, Source, objects
from gpumem_operator.cli.workloads import (
    WORKLOADS,
    Workload,
    WorkloadError,
    find_workloads,
    is_foreign,
    name_of,
    namespace_of,
)

Record = TypeVar("Record", PolicyRecord, TenantRecord)

_GROUP_KINDS: Final = (names.POLICY_KIND, names.TENANT_KIND)
_NATIVE_KINDS: Final = WORKLOADS | {"Pod", "Namespace"}
_CLUSTER_SCOPED: Final = frozenset({"Namespace", names.TENANT_KIND})


@dataclass
class Documents:
    """Everything that the files contain and that decides about pods."""

    policies: list[PolicyRecord] = field(default_factory=list)
    tenants: list[TenantRecord] = field(default_factory=list)
    namespaces: list[NamespaceRecord] = field(default_factory=list)
    workloads: list[Workload] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    """What is doubtful about the files, whoever decides."""


def read_documents(sources: Iterable[Source]) -> Documents:
    """Reads all files. Raises DocumentError at the first thing that can not be read."""
    documents = Documents()
    seen: set[tuple[str, str]] = set()
    for place, raw in objects(sources):
        _check_kind(raw, place)
        _check_metadata(raw, place)
        identity = (raw["kind"], _title(raw))
        if identity in seen and (raw.get("metadata") or {}).get("name"):
            text = f"{raw['kind']} {identity[1]} is in the files more than once: each one counts"
            documents.remarks.append(Remark(text))
        seen.add(identity)
        _add(documents, raw, place)
    if not documents.workloads:
        documents.remarks.append(Remark("these files hold no pod and nothing that creates pods"))
    return documents


def _title(raw: Mapping[str, Any]) -> str:
    scoped = raw["kind"] in _CLUSTER_SCOPED
    return name_of(raw) if scoped else f"{namespace_of(raw)}/{name_of(raw)}"


def _add(documents: Documents, raw: Mapping[str, Any], place: str) -> None:
    kind = raw["kind"]
    if kind == names.POLICY_KIND:
        documents.policies.append(_readable(policy_record(raw, strict=True), place))
    elif kind == names.TENANT_KIND:
        documents.tenants.append(_readable(tenant_record(raw, strict=True), place))
    elif kind == "Namespace" and not is_foreign(raw):
        documents.namespaces.append(namespace_record(raw))
    else:
        _add_workloads(documents, raw, place)


def _add_workloads(documents: Documents, raw: Mapping[str, Any], place: str) -> None:
    try:
        found = find_workloads(raw)
    except WorkloadError as error:
        raise DocumentError(f"{place}: {error}") from None
    documents.remarks.extend(Remark(text, _title(raw)) for text in found.warnings)
    for workload in found.workloads:
        fault = _fault_of_pod(workload.pod)
        if fault is None:
            documents.workloads.append(workload)
        elif workload.known or "{{" not in fault:
            raise DocumentError(f"{place}: {fault}")
        else:
            # A field that the kind's own controller fills in, as Argo does, is no mistake.
            text = f"its template can not be read before it is filled in ({fault}): not counted"
            documents.remarks.append(Remark(text, workload.title))


def _check_kind(raw: Mapping[str, Any], place: str) -> None:
    """Kinds that would be passed over, and whose author means one that is read."""
    kind, version = raw["kind"], raw.get("apiVersion")
    if kind in _GROUP_KINDS:
        if version != names.API_VERSION:
            raise DocumentError(f"{place}: apiVersion: {version!r:.60} is not {names.API_VERSION}")
        return
    ours = isinstance(version, str) and version.partition("/")[0] == names.GROUP
    near = nearest(kind, _GROUP_KINDS, cutoff=0.6 if ours else 1)
    if ours or near:
        known = f"did you mean {near}?" if near else f"it has {' and '.join(_GROUP_KINDS)}"
        raise DocumentError(f"{place}: kind: {kind!r:.60} is no kind of {names.GROUP}: {known}")
    native = nearest(kind, _NATIVE_KINDS, cutoff=1)
    if native not in (None, kind) and not is_foreign(raw):
        raise DocumentError(f"{place}: kind: {kind!r:.60} is not known: did you mean {native}?")


def _check_metadata(raw: Mapping[str, Any], place: str) -> None:
    try:
        MetadataShape.model_validate(raw.get("metadata") or {})
    except ValidationError as error:
        raise DocumentError(f"{place}: {_with_values(error, at='metadata')}") from None


def _fault_of_pod(pod: Mapping[str, Any]) -> str | None:
    try:
        PodShape.model_validate(pod)
    except ValidationError as error:
        return _with_values(error, at="pod")
    return None


def _with_values(error: ValidationError, *, at: str) -> str:
    """The faults; a value that the sentence does not name is added behind it."""
    text = describe_validation_error(error, at=at)
    fault = error.errors(include_url=False, include_context=False)[0]
    shown = repr(fault["input"])[:60]
    named = shown in text or fault["type"] in ("missing", "value_error")
    return text if named else f"{text} (it is {shown})"


def _readable(record: Record, place: str) -> Record:
    if record.problem is not None:
        raise DocumentError(f"{place}: {record.problem}")
    return record
