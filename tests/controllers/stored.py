"""Raw objects as the API server would send them, with only what a test is about."""

from typing import Any

from gpumem_operator import names
from gpumem_operator.api.pods import env_value
from gpumem_operator.api.records import (
    PolicyRecord,
    TenantRecord,
    policy_record,
    tenant_record,
)
from gpumem_operator.api.seal import Seal

Raw = dict[str, Any]


def pod(
    name: str = "train-0",
    *,
    namespace: str = "team",
    gpus: int | None = 1,
    memory: str | None = None,
    source: str | None = None,
    limit_bytes: int | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    phase: str = "Pending",
    gates: tuple[str, ...] = (),
) -> Raw:
    """A pod of one container; `source` makes it look handled by admission."""
    limits = {names.GPU_RESOURCE: gpus, names.MEMORY_RESOURCE: memory}
    env = {names.LIMIT_SOURCE_ENV: source, names.LIMIT_BYTES_ENV: limit_bytes}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": namespace,
            "name": name,
            "uid": f"uid-of-{namespace}-{name}",
            "resourceVersion": "1",
            "labels": labels or {},
            "annotations": annotations or {},
        },
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "example/train",
                    "resources": {
                        "limits": {key: str(value) for key, value in limits.items() if value}
                    },
                    "env": [
                        {"name": key, "value": str(value)}
                        for key, value in env.items()
                        if value is not None
                    ],
                }
            ],
            "schedulingGates": [{"name": gate} for gate in gates],
        },
        "status": {"phase": phase},
    }


def sealed(raw: Raw, seal: Seal) -> Raw:
    """The pod with its declarations as admission would have written them."""
    for container in raw["spec"]["containers"]:
        source = env_value(container, names.LIMIT_SOURCE_ENV)
        if source is not None:
            value = seal.of(
                raw["metadata"]["namespace"],
                container["name"],
                source=source,
                limit_bytes=env_value(container, names.LIMIT_BYTES_ENV),
            )
            container["env"].append({"name": names.SEAL_ENV, "value": value})
    return raw


def managed_pod(name: str, *, policy: str, fingerprint: str = "", **rest: Any) -> Raw:
    """A pod as admission leaves it."""
    return pod(
        name,
        source=rest.pop("source", "Policy"),
        labels={names.MANAGED_LABEL: "true", names.POLICY_LABEL: policy, **rest.pop("labels", {})},
        annotations={names.POLICY_HASH_ANNOTATION: fingerprint},
        **rest,
    )


def policy(
    name: str = "training", *, namespace: str = "team", generation: int = 1, **spec: Any
) -> Raw:
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.POLICY_KIND,
        "metadata": {
            "namespace": namespace,
            "name": name,
            "uid": f"uid-of-{name}",
            "resourceVersion": "1",
            "generation": generation,
            "creationTimestamp": "2026-03-01T00:00:00Z",
        },
        "spec": spec,
    }


def tenant(
    name: str = "research",
    *,
    limit: str = "100Gi",
    whole: str = "80Gi",
    selector: Raw | None = None,
    **quota: Any,
) -> Raw:
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.TENANT_KIND,
        "metadata": {"name": name, "uid": f"uid-of-{name}", "resourceVersion": "1"},
        "spec": {
            "namespaceSelector": selector or {},
            "quota": {"limit": limit, "wholeGPU": whole, **quota},
        },
    }


def node(name: str = "gpu-1", **labels: str) -> Raw:
    """A node; `memory` and `count` are short for the labels of GPU feature discovery."""
    long = {"memory": names.NODE_MEMORY_LABEL, "count": names.NODE_COUNT_LABEL}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-of-{name}",
            "resourceVersion": "1",
            "labels": {long.get(key, key): value for key, value in labels.items()},
        },
        "status": {"capacity": {"cpu": "8"}, "allocatable": {"cpu": "8"}},
    }


def policies(*raws: Raw) -> tuple[PolicyRecord, ...]:
    return tuple(policy_record(raw) for raw in raws)


def tenant_of(raw: Raw) -> TenantRecord:
    return tenant_record(raw)
