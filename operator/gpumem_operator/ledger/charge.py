"""What a pod is charged, in bytes of GPU memory.

A container: the memory resource as written; else its frozen limit x GPUs; else its MIG slices; else
the tenant's `wholeGPU` x GPUs. A pod: Kubernetes' own rule for effective requests. Two values stand
apart: 0 is charged nothing, None is not known (nothing declared, and no tenant says what a whole
GPU counts for).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.api.gates import is_gated
from gpumem_operator.api.pods import ContainerFacts, PodFacts, Source, env_value, gather
from gpumem_operator.api.quantity import LARGEST_BYTES, floor_to_mib, whole_number
from gpumem_operator.api.tenant import Quota
from gpumem_operator.api.values import Values

_FINISHED: Final = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True)
class Rates:
    """What a GPU counts for where the container does not say how much of it is taken."""

    whole_gpu_bytes: int | None = None
    """None without a tenant."""
    exclusive_resources: frozenset[str] = frozenset()
    """Resources whose GPUs are charged whole whatever was declared."""


UNKNOWN_RATES: Final = Rates()


@dataclass(frozen=True)
class ContainerCharge:
    """One GPU container of a pod."""

    name: str
    gpus: int
    limit_bytes: int | None
    """Per GPU; None where it may take whole cards."""
    source: Source
    charge_bytes: int | None
    exclusive: bool = False
    """Whether it is charged whole GPUs whatever it declares."""


@dataclass(frozen=True)
class PodCharge:
    """One pod; `charge_bytes` is None where no GPU container has a known charge."""

    charge_bytes: int | None
    containers: tuple[ContainerCharge, ...]

    @property
    def unknown(self) -> tuple[str, ...]:
        """Containers whose charge is not known: they are not in the sum."""
        return tuple(row.name for row in self.containers if row.charge_bytes is None)

    @property
    def undeclared(self) -> tuple[str, ...]:
        """Containers whose GPUs count whole, and would not if they declared what they need."""
        return tuple(
            row.name
            for row in self.containers
            if row.source == "WholeGPU" and row.gpus and not row.exclusive
        )


def rates_of(quota: Quota, values: Values) -> Rates:
    """What GPUs count for in a tenant with this quota."""
    whole = quota.exclusive_gpu == "Whole"
    return Rates(
        quota.whole_gpu_bytes, frozenset(values.exclusive_resources) if whole else frozenset()
    )


def charge_container(
    container: ContainerFacts, rates: Rates, *, frozen_bytes: int | None
) -> int | None:
    """Bytes that one container is charged; `frozen_bytes` is its limit per GPU, if it has one."""
    if container.memory_bytes is not None and not _exclusive(container, rates):
        return container.memory_bytes
    total = 0
    for gpu in container.gpus:
        per_gpu = frozen_bytes if frozen_bytes is not None else gpu.profile_bytes
        if gpu.resource in rates.exclusive_resources or per_gpu is None:
            per_gpu = rates.whole_gpu_bytes
        if per_gpu is None:
            return None
        total += per_gpu * gpu.count
    return total


def _exclusive(container: ContainerFacts, rates: Rates) -> bool:
    return any(gpu.resource in rates.exclusive_resources for gpu in container.gpus)


def charge_facts(
    facts: PodFacts, rates: Rates, *, limits: Mapping[str, tuple[Source, int | None]]
) -> PodCharge:
    """The charge of a pod; `limits` has source and limit per GPU of what is charged, by name."""
    rows: list[tuple[ContainerFacts, ContainerCharge]] = []
    for container in facts.containers:
        if container.name not in limits:
            continue
        source, limit = limits[container.name]
        frozen = None if source == "Profile" else limit
        amount = charge_container(container, rates, frozen_bytes=frozen)
        row = ContainerCharge(
            container.name,
            container.gpu_count,
            limit,
            source,
            amount,
            exclusive=_exclusive(container, rates),
        )
        rows.append((container, row))
    total = effective_bytes((container, row.charge_bytes) for container, row in rows)
    return PodCharge(total, tuple(row for _, row in rows))


def charge_pod(
    pod: Mapping[str, Any], values: Values, *, rates: Rates = UNKNOWN_RATES
) -> PodCharge:
    """The charge of a stored pod, from its resources and the declarations frozen in it.

    Memory without a GPU, which admission refuses, is charged in pods that slipped past it: the
    scheduler and a ResourceQuota count it too.
    """
    facts = gather(pod, values.memory_resource)
    limits = {
        container.name: stored_limit(container)
        for container in facts.containers
        if container.gpu_count or container.memory_bytes is not None
    }
    return charge_facts(facts, rates, limits=limits)


def undeclared_in(pod: Mapping[str, Any], values: Values) -> tuple[str, ...]:
    """Of a stored pod, containers whose GPUs count whole because they declare nothing.

    Without those on GPUs that a tenant may charge whole whatever is declared.
    """
    rates = Rates(exclusive_resources=frozenset(values.exclusive_resources))
    return charge_pod(pod, values, rates=rates).undeclared


def stored_limit(container: ContainerFacts) -> tuple[Source, int | None]:
    """Source and limit per GPU of a stored container, in bytes."""
    if container.memory_bytes is not None:
        gpus = container.gpu_count
        return "Resource", floor_to_mib(container.memory_bytes // gpus) if gpus else None
    frozen = whole_number(env_value(container.raw, names.LIMIT_BYTES_ENV) or "")
    if frozen is not None:
        annotated = env_value(container.raw, names.LIMIT_SOURCE_ENV) == "Annotation"
        return ("Annotation" if annotated else "Policy"), frozen
    profile = container.profile_bytes
    return ("WholeGPU", None) if profile is None else ("Profile", profile)


def effective_bytes(charges: Iterable[tuple[ContainerFacts, int | None]]) -> int | None:
    """The larger of what runs together and the largest init step, as Kubernetes counts requests.

    Native sidecars run from their place in the list of init containers on. Containers without a
    known charge are left out; None where none is known.
    """
    known = [(container, amount) for container, amount in charges if amount is not None]
    if not known:
        return None
    sidecars = 0
    largest_step = 0
    running = 0
    for container, amount in known:
        if container.kind == "containers":
            running += amount
        elif container.native_sidecar:
            sidecars += amount
        elif container.kind == "initContainers":
            largest_step = max(largest_step, sidecars + amount)
    return min(max(running + sidecars, largest_step), LARGEST_BYTES)


def is_charged(pod: Mapping[str, Any]) -> bool:
    """Whether a pod counts now: from creation until it has finished, terminating included.

    It does not count while it carries our gate; the gates of others do not matter.
    """
    return not has_finished(pod) and not is_gated(pod)


def has_finished(pod: Mapping[str, Any]) -> bool:
    """Whether the pod's phase says that none of its containers will run again."""
    return (pod.get("status") or {}).get("phase") in _FINISHED
