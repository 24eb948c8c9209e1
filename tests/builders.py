"""Pods, policies, tenants and surroundings for tests, as raw as the API server would send them.

pod(container(gpus=2, memory="16Gi"), annotations={LIMIT: "8Gi"})
around(policy(limits={"default": "8Gi"}), tenant(limit="160Gi"))
admitted(pod(container()), around(policy()))      # the pod as it would be stored
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import jsonpatch

from gpumem_operator import names
from gpumem_operator.admission.review import review_pod
from gpumem_operator.admission.verdict import Verdict
from gpumem_operator.api.records import (
    NamespaceRecord,
    PolicyRecord,
    Surroundings,
    TenantRecord,
    namespace_record,
    policy_record,
    tenant_record,
    tenants_of,
)
from gpumem_operator.api.values import Values

Raw = dict[str, Any]

NAMESPACE = "ml"
OLD = "2026-01-01T00:00:00Z"
YOUNG = "2026-06-01T00:00:00Z"
GIB = 2**30
MIB = 2**20
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nZ3B1\n-----END CERTIFICATE-----\n"
"""Text of the form that values take; no certificate."""


def env(**values: str) -> list[Raw]:
    """Plain variables, in the order of the arguments."""
    return [{"name": name, "value": value} for name, value in values.items()]


def from_secret(name: str) -> Raw:
    """A variable whose value only the node knows."""
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}


def container(
    name: str = "train",
    *,
    gpus: int | str | None = 1,
    memory: str | None = None,
    env: Sequence[Mapping[str, Any]] | None = None,
    limits: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Raw:
    """A container of the author; `memory` is GPU memory, over all its GPUs."""
    amounts: Raw = dict(limits or {})
    if gpus is not None:
        amounts["nvidia.com/gpu"] = str(gpus)
    if memory is not None:
        amounts["nvidia.com/memory"] = memory
    built: Raw = {"name": name, "image": "registry.example/train:1", **fields}
    if amounts:
        built["resources"] = {"limits": amounts, "requests": dict(amounts)}
    if env is not None:
        built["env"] = [dict(entry) for entry in env]
    return built


def cpu_container(name: str = "web", **fields: Any) -> Raw:
    """A container that asks for no GPU."""
    return container(name, gpus=None, **fields)


def mig_container(
    name: str = "train", *, profile: str = "1g.10gb", slices: int = 1, **fields: Any
) -> Raw:
    """A container on slices of a card."""
    limits = {f"nvidia.com/mig-{profile}": str(slices), **fields.pop("limits", {})}
    return container(name, gpus=None, limits=limits, **fields)


def native_sidecar(name: str, **fields: Any) -> Raw:
    """An init container that keeps running."""
    return container(name, restartPolicy="Always", **fields)


def pod(
    *containers: Raw,
    init: Sequence[Raw] = (),
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Raw:
    """A pod in the namespace of the tests; without containers it has the usual GPU container."""
    metadata: Raw = {"name": "job-0", "namespace": NAMESPACE}
    if labels is not None:
        metadata["labels"] = dict(labels)
    if annotations is not None:
        metadata["annotations"] = dict(annotations)
    built: Raw = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    built["spec"] = {**spec, "containers": list(containers) or [container()]}
    if init:
        built["spec"]["initContainers"] = list(init)
    if status is not None:
        built["status"] = dict(status)
    return built


def policy(
    name: str = "research", *, created: str = OLD, namespace: str = NAMESPACE, **spec: Any
) -> PolicyRecord:
    """A readable policy; `spec` is the object's spec, in the words of its YAML."""
    record = broken_policy(name, created=created, namespace=namespace, **spec)
    assert record.problem is None, record.problem
    return record


def broken_policy(
    name: str = "research", *, created: str = OLD, namespace: str = NAMESPACE, **spec: Any
) -> PolicyRecord:
    """A policy whose spec may be unreadable."""
    metadata = {"name": name, "namespace": namespace, "creationTimestamp": created, "uid": name}
    return policy_record({"metadata": metadata, "spec": spec})


def tenant(
    name: str = "research",
    *,
    limit: str = "640Gi",
    whole: str = "80Gi",
    exceeded: str = "Queue",
    exclusive: str = "Declared",
    selects: Mapping[str, str] | None = None,
    default_policy: Mapping[str, Any] | None = None,
) -> TenantRecord:
    """A tenant; without `selects` every namespace belongs to it."""
    spec: Raw = {
        "namespaceSelector": {"matchLabels": dict(selects or {})},
        "quota": {
            "limit": limit,
            "wholeGPU": whole,
            "onExceeded": exceeded,
            "exclusiveGPU": exclusive,
        },
    }
    if default_policy is not None:
        spec["defaultPolicy"] = dict(default_policy)
    record = tenant_record({"metadata": {"name": name, "uid": name}, "spec": spec})
    assert record.problem is None, record.problem
    return record


def namespace(name: str = NAMESPACE, **labels: str) -> NamespaceRecord:
    return namespace_record({"metadata": {"name": name, "labels": labels}})


def around(
    *records: PolicyRecord | TenantRecord, namespace: NamespaceRecord | None = None
) -> Surroundings:
    """What decides about the pods of a namespace."""
    space = namespace or namespace_record({"metadata": {"name": NAMESPACE}})
    tenants = tuple(record for record in records if isinstance(record, TenantRecord))
    policies = tuple(record for record in records if isinstance(record, PolicyRecord))
    return Surroundings(space, policies, tenants_of(space, tenants))


DEFAULTS = Values()


def values(**fields: Any) -> Values:
    """Chart values, in the words of its YAML."""
    return Values.model_validate(fields)


def review(raw: Raw, *records: PolicyRecord | TenantRecord, values: Values = DEFAULTS) -> Verdict:
    """The verdict on a pod under these policies and tenants."""
    return review_pod(raw, around(*records), values)


def applied(raw: Raw, verdict: Verdict) -> Raw:
    """The pod after the operations; the one that was given stays as it is."""
    operations = deepcopy([dict(operation) for operation in verdict.operations])
    result: Raw = jsonpatch.apply_patch(raw, operations)
    return result


def admitted(raw: Raw, *records: PolicyRecord | TenantRecord, values: Values = DEFAULTS) -> Raw:
    """The pod as it would be stored; fails where it is refused."""
    verdict = review(raw, *records, values=values)
    assert verdict.refusal is None, verdict.refusal
    return applied(raw, verdict)


def refused(raw: Raw, *records: PolicyRecord | TenantRecord, values: Values = DEFAULTS) -> str:
    """Why the pod is refused; fails where it is not."""
    verdict = review(raw, *records, values=values)
    assert verdict.refusal is not None, "the pod was let through"
    assert verdict.operations == ()
    return verdict.refusal


def variables(raw: Raw, name: str = "train") -> dict[str, str | None]:
    """Variables of a container by name; None for a reference."""
    return {
        entry["name"]: None if entry.get("valueFrom") else entry.get("value", "")
        for entry in containers_of(raw)[name].get("env") or ()
    }


def containers_of(raw: Raw) -> dict[str, Raw]:
    """All containers of a pod by name, of every kind."""
    spec = raw["spec"]
    kinds = ("initContainers", "containers", "ephemeralContainers")
    return {one["name"]: one for kind in kinds for one in spec.get(kind) or ()}


def init_names(raw: Raw) -> list[str]:
    return [one["name"] for one in raw["spec"].get("initContainers") or ()]


def volume_names(raw: Raw) -> list[str]:
    return [one["name"] for one in raw["spec"].get("volumes") or ()]


def frozen(raw: Raw, name: str = "train") -> tuple[str | None, str | None]:
    """Source and limit in bytes that admission froze into a container."""
    found = variables(raw, name)
    return found.get(names.LIMIT_SOURCE_ENV), found.get(names.LIMIT_BYTES_ENV)


def gib(amount: float) -> str:
    """GiB as the plain bytes of a variable."""
    return str(int(amount * GIB))
