"""What the product reads from a pod, as immutable facts.

Only fields that nobody can change after creation are read for anything that counts: resources,
environment, and the kind and order of containers. Our own containers are not among the facts, but
only init containers that ask for no GPU pass for ours: whoever gives such a name to another
container is counted like everybody else, and admission refuses the name.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal

from gpumem_operator import names
from gpumem_operator.api.managers import Manager
from gpumem_operator.api.quantity import GIB, QuantityError, parse_bytes
from gpumem_operator.api.violation import Violation

ContainerKind = Literal["containers", "initContainers", "ephemeralContainers"]
KINDS: Final[tuple[ContainerKind, ...]] = ("initContainers", "containers", "ephemeralContainers")

Source = Literal["Resource", "Annotation", "Profile", "Policy", "WholeGPU"]
"""Where a container's limit comes from, in the order in which it is looked for."""

MOST_GPUS: Final = 4096
"""In one container under one resource name. Larger counts are faults: no sum may leave int64."""
MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
"""The kubelet's picture of a static pod: it runs already, and no token may be added to it."""
NO_DEVICES: Final = frozenset({"void", "none"})
"""Values of NVIDIA_VISIBLE_DEVICES that give a container no GPU."""

_READ_ONLY_SOURCES: Final = frozenset({"configMap", "secret", "projected", "downwardAPI", "image"})
"""Kinds of volumes that kubelet mounts read-only whatever the mount says."""

_NODE_OS_LABEL: Final = "kubernetes.io/os"

_MIG_PROFILE: Final = re.compile(
    r"(\d+c\.)?\d+g\.0*([1-9]\d{0,5})gb(\.me|\.gfx)?(\.shared)?", re.ASCII
)


@dataclass(frozen=True)
class GpuRequest:
    """How many GPUs, or slices, a container asks for under one resource name."""

    resource: str
    count: int
    profile_bytes: int | None
    """Memory of one MIG slice, from the name of its profile; None for a card."""


@dataclass(frozen=True)
class ContainerFacts:
    """One container of a pod's spec."""

    kind: ContainerKind
    index: int
    """Position in its list in the raw pod, our own containers counted."""
    name: str
    native_sidecar: bool
    gpus: tuple[GpuRequest, ...]
    memory_bytes: int | None
    """The memory resource in its limits: the total over its GPUs. None where it has none."""
    memory_text: str
    """The same as its author wrote it."""
    gpu_count: int
    sees_devices: bool
    """Whether its NVIDIA_VISIBLE_DEVICES could give it GPUs that it does not ask for."""
    raw: Mapping[str, Any] = field(repr=False)
    memory_by_admission: bool = False
    """Whether its limits have the memory resource, and an earlier admission filled it in."""

    @property
    def profile_bytes(self) -> int | None:
        """Memory of the smallest of its MIG slices; None where one of its GPUs is a card."""
        sizes = [request.profile_bytes for request in self.gpus]
        known = [size for size in sizes if size is not None]
        return min(known) if known and len(known) == len(sizes) else None

    @property
    def path(self) -> str:
        return f"spec.{self.kind}[{self.name}]"

    @property
    def mounts(self) -> tuple[Mapping[str, Any], ...]:
        """Mounts of its author's volumes; those of ours are decided anew."""
        return tuple(
            mount
            for mount in self.raw.get("volumeMounts") or ()
            if mount.get("name") not in names.OUR_VOLUMES
        )


@dataclass(frozen=True)
class PodFacts:
    """One pod; `violations` are values that could not be read."""

    namespace: str
    name: str
    """Its name, or its generateName with a star: the name is not known yet at admission."""
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    containers: tuple[ContainerFacts, ...]
    host_pid: bool
    host_network: bool
    windows: bool
    mirror: bool
    """The picture of a static pod, which runs whatever is written here."""
    node_name: str
    share_process_namespace: bool | None
    read_only_volumes: frozenset[str]
    """Names of volumes in which nobody can make a folder."""
    violations: tuple[Violation, ...]
    pod_resources: bool = False
    """Whether spec.resources bounds what its containers request together."""
    as_root: bool = False
    """Whether its securityContext has all containers run as root that say nothing else."""
    shared_by_admission: bool = False
    """Whether an earlier admission had processes shared: the author said nothing about it."""
    managers: tuple[Manager, ...] = ()
    """Who else queues, places or limits it, as far as its author says the truth."""

    @property
    def gpu_containers(self) -> tuple[ContainerFacts, ...]:
        return tuple(container for container in self.containers if container.gpu_count)

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"


def gather(pod: Mapping[str, Any], memory_resource: str, *, namespace: str = "") -> PodFacts:
    """The facts of a raw pod; `namespace` for pods that do not name theirs yet."""
    metadata = pod.get("metadata") or {}
    spec = pod.get("spec") or {}
    violations: list[Violation] = []
    containers = tuple(
        _container(kind, index, raw, memory_resource, violations)
        for kind, index, raw in _each_container(spec)
        if not is_ours(kind, raw, memory_resource)
    )
    return PodFacts(
        namespace=metadata.get("namespace") or namespace,
        name=metadata.get("name") or f"{metadata.get('generateName') or ''}*",
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        containers=containers,
        host_pid=bool(spec.get("hostPID")),
        host_network=bool(spec.get("hostNetwork")),
        windows=_is_windows(spec),
        mirror=MIRROR_ANNOTATION in (metadata.get("annotations") or {}),
        node_name=spec.get("nodeName") or "",
        share_process_namespace=spec.get("shareProcessNamespace"),
        read_only_volumes=frozenset(
            volume.get("name") or ""
            for volume in spec.get("volumes") or ()
            if _is_read_only(volume)
        ),
        violations=tuple(violations),
        pod_resources=any((spec.get("resources") or {}).values()),
        as_root=(spec.get("securityContext") or {}).get("runAsUser") == 0,
    )


def is_gpu_pod(pod: Mapping[str, Any], memory_resource: str) -> bool:
    """Whether any container has a limit for a GPU or the memory resource, or could see devices.

    The chart's matchConditions say the same in CEL; a test compares the two.
    """
    return any(
        _asks_for_gpu(raw, memory_resource) for _, _, raw in _each_container(pod.get("spec") or {})
    )


def asks_for_gpus(pod: Mapping[str, Any], memory_resource: str) -> bool:
    """Whether a GPU pod asks for anything: `nvidia.com/gpu: 0` is a GPU resource, and no GPU."""
    return any(
        container.gpu_count or container.memory_bytes is not None or container.sees_devices
        for container in gather(pod, memory_resource).containers
    )


def is_ours(kind: str, raw: Mapping[str, Any], memory_resource: str) -> bool:
    """Whether a container has one of our names where ours stand, and takes nothing that counts."""
    name = raw.get("name")
    if kind != "initContainers" or name not in names.OUR_CONTAINERS:
        return False
    # With the value sidecar.toolkitNVML the sidecar's environment names devices, and still it asks
    # for none. Whoever gives a container of his own that name gets it replaced.
    sees = _sees_devices(raw.get("env") or ()) and name != names.SIDECAR_CONTAINER
    return not sees and not _has_gpu_limit(raw, memory_resource)


def _asks_for_gpu(raw: Mapping[str, Any], memory_resource: str) -> bool:
    return _has_gpu_limit(raw, memory_resource) or _sees_devices(raw.get("env") or ())


def _has_gpu_limit(raw: Mapping[str, Any], memory_resource: str) -> bool:
    limits = (raw.get("resources") or {}).get("limits") or ()
    return any(is_gpu_resource(key) or key == memory_resource for key in limits)


def is_handled(pod: Mapping[str, Any]) -> bool:
    """Whether a declaration is frozen into any container of the pod.

    Whether admission wrote it is for the seal to say (`api/seal.py`), before this is asked.
    Ephemeral containers do not count: they are added later, by whoever may, and get none.
    """
    return any(
        entry.get("name") == names.LIMIT_SOURCE_ENV
        for kind, _, raw in _each_container(pod.get("spec") or {})
        if kind != "ephemeralContainers"
        for entry in raw.get("env") or ()
    )


def ephemeral_names(pod: Mapping[str, Any]) -> frozenset[str]:
    """Names of the ephemeral containers of a stored pod, which can not change any more."""
    stored = (pod.get("spec") or {}).get("ephemeralContainers") or ()
    return frozenset(raw.get("name") or "" for raw in stored)


def is_gpu_resource(resource: str) -> bool:
    """Whether containers get GPUs or slices of GPUs under this resource name."""
    return resource in (names.GPU_RESOURCE, names.SHARED_GPU_RESOURCE) or resource.startswith(
        names.MIG_RESOURCE_PREFIX
    )


@lru_cache(maxsize=256)
def profile_bytes(resource: str) -> int | None:
    """Memory of one MIG slice: `nvidia.com/mig-1g.10gb` has 10Gi. None for anything else."""
    if not resource.startswith(names.MIG_RESOURCE_PREFIX):
        return None
    match = _MIG_PROFILE.fullmatch(resource.removeprefix(names.MIG_RESOURCE_PREFIX))
    return int(match[2]) * GIB if match else None


def env_value(raw_container: Mapping[str, Any], name: str) -> str | None:
    """The value of a variable, the last one where it is repeated; None without a plain value."""
    value = None
    for entry in raw_container.get("env") or ():
        if entry.get("name") == name:
            value = None if entry.get("valueFrom") else str(entry.get("value") or "")
    return value


def _each_container(spec: Mapping[str, Any]) -> Iterator[tuple[ContainerKind, int, Any]]:
    for kind in KINDS:
        for index, raw in enumerate(spec.get(kind) or ()):
            yield kind, index, raw


def _container(
    kind: ContainerKind,
    index: int,
    raw: Mapping[str, Any],
    memory_resource: str,
    violations: list[Violation],
) -> ContainerFacts:
    name = raw.get("name") or ""
    limits = (raw.get("resources") or {}).get("limits") or {}
    gpus: list[GpuRequest] = []
    memory: int | None = None
    for resource, quantity in limits.items():
        gpu = is_gpu_resource(resource)
        if not gpu and resource != memory_resource:
            continue
        try:
            amount = parse_bytes(quantity)
        except QuantityError as error:
            path = f'spec.{kind}[{name}].resources.limits["{resource}"]'
            violations.append(Violation(path, str(error)))
            continue
        if not gpu:
            memory = amount
        elif amount:
            if amount > MOST_GPUS:
                text = f"{amount} GPUs are more than a node can have ({MOST_GPUS})"
                violations.append(
                    Violation(f'spec.{kind}[{name}].resources.limits["{resource}"]', text)
                )
            gpus.append(GpuRequest(resource, min(amount, MOST_GPUS), profile_bytes(resource)))
    return ContainerFacts(
        kind=kind,
        index=index,
        name=name,
        native_sidecar=kind == "initContainers" and raw.get("restartPolicy") == "Always",
        gpus=tuple(gpus),
        memory_bytes=memory,
        memory_text=str(limits.get(memory_resource, "")),
        gpu_count=sum(request.count for request in gpus),
        sees_devices=_sees_devices(raw.get("env") or ()),
        raw=raw,
    )


def _is_windows(spec: Mapping[str, Any]) -> bool:
    """By the system that it says it is for, else by the nodes that it chooses."""
    said = (spec.get("os") or {}).get("name")
    return (said or (spec.get("nodeSelector") or {}).get(_NODE_OS_LABEL)) == "windows"


def _is_read_only(volume: Mapping[str, Any]) -> bool:
    if not _READ_ONLY_SOURCES.isdisjoint(volume):
        return True
    return any(isinstance(source, dict) and source.get("readOnly") for source in volume.values())


def _sees_devices(env: Iterable[Mapping[str, Any]]) -> bool:
    # A reference has no value, and an empty value is stored as none: both may give devices. A loop,
    # because this runs for every variable of every pod.
    for entry in env:
        if (
            entry.get("name") == names.VISIBLE_DEVICES_ENV
            and (entry.get("value") or "") not in NO_DEVICES
        ):
            return True
    return False
