"""A pod of the cache as measurement sees it."""

from collections.abc import Mapping
from typing import Any

from gpumem_operator import names
from gpumem_operator.api.pods import KINDS, ContainerFacts, gather
from gpumem_operator.api.values import Values
from gpumem_operator.ledger.charge import stored_limit
from gpumem_operator.reports.measured import GpuContainer, MeasuredPod


def measured_pod(pod: Mapping[str, Any], values: Values) -> MeasuredPod:
    """From a slim pod (see `entries.slim_pod`)."""
    metadata, spec, status = pod["metadata"], pod["spec"], pod["status"]
    facts = gather(pod, values.memory_resource)
    every = [raw.get("name") or "" for kind in KINDS for raw in spec.get(kind) or ()]
    return MeasuredPod(
        uid=metadata.get("uid") or "",
        namespace=metadata.get("namespace") or "",
        name=metadata.get("name") or "",
        node=spec.get("nodeName") or "",
        policy=metadata["labels"].get(names.POLICY_LABEL, ""),
        containers=tuple(_gpu_container(one, values) for one in facts.gpu_containers),
        container_names=frozenset(every),
        container_ids=status.get("containerIDs") or {},
        started=has_started(pod),
        has_sidecar=names.SIDECAR_CONTAINER in every,
        shares_processes=bool(spec.get("shareProcessNamespace") or spec.get("hostPID")),
        created=metadata.get("creationTimestamp") or "",
    )


def has_started(pod: Mapping[str, Any]) -> bool:
    """Whether kubelet tells of containers, or that the pod runs; from a slim pod."""
    status = pod["status"]
    return status.get("phase") == "Running" or bool(status.get("containerIDs"))


def _gpu_container(container: ContainerFacts, values: Values) -> GpuContainer:
    source, limit = stored_limit(container)
    exclusive = frozenset(values.exclusive_resources)
    return GpuContainer(
        name=container.name,
        gpus=container.gpu_count,
        limit_bytes=None if source == "Profile" else limit,
        source=source,
        profile_bytes=container.profile_bytes,
        exclusive=all(request.resource in exclusive for request in container.gpus),
    )
