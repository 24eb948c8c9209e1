"""Files with Kubernetes objects -> what the offline commands need, or one line about what is wrong.

Checked as kubectl and the API server would: unknown fields of our kinds, wrong types and unreadable
quantities are errors of the file. Kinds that have nothing to do with GPU pods are passed over.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml
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
from gpumem_operator.cli.shapes import MetadataShape, PodShape
from gpumem_operator.cli.workloads import Workload, workload_of

Record = TypeVar("Record", PolicyRecord, TenantRecord)


class DocumentError(Exception):
    """A file that can not be used; the text is one line with file, document, field and value."""


@dataclass(frozen=True)
class Documents:
    """Everything that the files contain and that decides about pods."""

    policies: tuple[PolicyRecord, ...] = ()
    tenants: tuple[TenantRecord, ...] = ()
    namespaces: tuple[NamespaceRecord, ...] = ()
    workloads: tuple[Workload, ...] = ()


_GROUP_KINDS: Final = {names.POLICY_KIND, names.TENANT_KIND}


def read_documents(files: Iterable[Path]) -> Documents:
    """Reads all files. Raises DocumentError at the first thing that can not be read."""
    policies: list[PolicyRecord] = []
    tenants: list[TenantRecord] = []
    namespaces: list[NamespaceRecord] = []
    workloads: list[Workload] = []
    for place, raw in _objects(files):
        kind = raw.get("kind")
        _check_metadata(raw, place)
        if kind in _GROUP_KINDS and raw.get("apiVersion") != names.API_VERSION:
            raise DocumentError(
                f"{place}: apiVersion: {raw.get('apiVersion')!r} is not {names.API_VERSION}"
            )
        if kind == names.POLICY_KIND:
            policies.append(_readable(policy_record(raw, strict=True), place))
        elif kind == names.TENANT_KIND:
            tenants.append(_readable(tenant_record(raw, strict=True), place))
        elif kind == "Namespace":
            namespaces.append(namespace_record(raw))
        elif (workload := workload_of(raw)) is not None:
            _check_pod(workload.pod, place)
            workloads.append(workload)
    return Documents(tuple(policies), tuple(tenants), tuple(namespaces), tuple(workloads))


def _objects(files: Iterable[Path]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for file in files:
        for number, document in enumerate(_documents(file), start=1):
            if document is None:
                continue
            for raw in _unfolded(document):
                place = f"{file}: document {number}"
                if not isinstance(raw, Mapping) or not isinstance(raw.get("kind"), str):
                    shown = repr(raw)[:60]
                    raise DocumentError(f"{place}: kind: {shown} is not a Kubernetes object")
                yield f"{place} ({_title(raw)})", raw


def _documents(file: Path) -> list[Any]:
    try:
        with file.open(encoding="utf-8") as stream:
            return list(yaml.safe_load_all(stream))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise DocumentError(f"{file}: line {line}: not YAML: {error.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DocumentError(f"{file}: not YAML: {' '.join(str(error).split())}") from None
    except OSError as error:
        raise DocumentError(f"{file}: can not be read: {error.strerror}") from None
    except RecursionError:
        raise DocumentError(f"{file}: not YAML: nested too deeply") from None


def _unfolded(document: Any) -> Iterable[Any]:
    if isinstance(document, Mapping) and document.get("kind") == "List":
        return document.get("items") or ()
    return (document,)


def _title(raw: Mapping[str, Any]) -> str:
    metadata = raw.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return f"{raw['kind']} {name}" if name else str(raw["kind"])


def _check_metadata(raw: Mapping[str, Any], place: str) -> None:
    try:
        MetadataShape.model_validate(raw.get("metadata") or {})
    except ValidationError as error:
        raise DocumentError(f"{place}: {_with_values(error, at='metadata')}") from None


def _check_pod(pod: Mapping[str, Any], place: str) -> None:
    try:
        PodShape.model_validate(pod)
    except ValidationError as error:
        raise DocumentError(f"{place}: {_with_values(error, at='pod')}") from None


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
