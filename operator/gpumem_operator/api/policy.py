"""GPUMemoryPolicy: what a platform team says about the GPU pods of one namespace."""

import hashlib
import json
import posixpath
from functools import cached_property
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, Field

from gpumem_operator import names
from gpumem_operator.api.allocator_rules import ALLOCATOR_RULES, VERSION_IS_READABLE
from gpumem_operator.api.model import Bytes, Model, PositiveBytes
from gpumem_operator.api.quantity import GIB
from gpumem_operator.api.quantity_rules import compares
from gpumem_operator.api.rules import Rule, matching
from gpumem_operator.api.scaling import ScalingTargets
from gpumem_operator.api.selector import LabelSelector

AbsolutePath = Annotated[
    str,
    Field(max_length=4096),
    matching(r"^/[^:\x00]*$", "'{self}' is not an absolute path without a colon"),
]
SearchPath = Annotated[
    str, Field(max_length=4096), matching(r"^[^\x00]*$", "a path has no NUL character")
]
AllocatorConfig = Annotated[
    dict[str, Annotated[str, Field(min_length=1, max_length=256)]], Field(max_length=32)
]
MinVersion = Annotated[str, Field(max_length=8), VERSION_IS_READABLE]
Enabling = Literal["Enabled", "Disabled"]
Action = Literal["Reclaim", "Evict", "Delete", "Kill"]


def _listed_once(actions: list[str]) -> list[str]:
    for position, action in enumerate(actions):
        if action in actions[:position]:
            raise ValueError(f'Duplicate value: "{action}"')
    return actions


Actions = Annotated[
    list[Action],
    Field(max_length=4, json_schema_extra={"x-kubernetes-list-type": "set"}),
    # The API server says the same of a list of type "set".
    AfterValidator(_listed_once),
]


_FIELDS_ABOUT_PODS: Final = frozenset(
    {"mode", "limits", "frameworks", "injection", "monitoring", "dataset_cache"}
)
"""Parts of a spec that end up in a pod, as does enforcement.minimumEnforcer; the rest may change
without making a pod outdated."""


class Limits(Model):
    """How much memory a container may hold on each of its GPUs."""

    default_bytes: Annotated[PositiveBytes | None, Field(alias="default")] = None
    """Limit per GPU of a container that declares nothing. Absent: no limit is set on it."""
    min_bytes: Annotated[PositiveBytes, Field(alias="min")] = 2 * GIB
    """Least limit per GPU; a container that declares less is refused. Default: 2Gi."""
    max_bytes: Annotated[PositiveBytes | None, Field(alias="max")] = None
    """Largest limit per GPU; a container that declares more is refused. Absent: no upper bound."""
    context_reserve_bytes: Annotated[Bytes, Field(alias="contextReserve")] = 1 * GIB
    """Per process, kept for the CUDA context, workspaces and NCCL: the cap of a framework is the
    limit less this. Must be smaller than min; 0 keeps nothing. Default: 1Gi."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel=compares("self.contextReserve", "<", "self.min"),
            holds=lambda limits: limits.context_reserve_bytes < limits.min_bytes,
            sentence=(
                "contextReserve {contextReserve} must be smaller than min {min}"
                " (unless set they are 1Gi and 2Gi)"
            ),
        ),
        Rule(
            cel=f"!has(self.default) || {compares('self.min', '<=', 'self.default')}",
            holds=lambda limits: (
                limits.default_bytes is None or limits.min_bytes <= limits.default_bytes
            ),
            sentence="min {min} must not exceed default {default} (min is 2Gi unless set)",
        ),
        Rule(
            cel=f"!has(self.max) || {compares('self.min', '<=', 'self.max')}",
            holds=lambda limits: limits.max_bytes is None or limits.min_bytes <= limits.max_bytes,
            sentence="min {min} must not exceed max {max} (min is 2Gi unless set)",
        ),
        Rule(
            cel=(
                "!has(self.default) || !has(self.max)"
                f" || {compares('self.default', '<=', 'self.max')}"
            ),
            holds=lambda limits: (
                None in (limits.default_bytes, limits.max_bytes)
                or limits.default_bytes <= limits.max_bytes
            ),
            sentence="default {default} must not exceed max {max}",
        ),
    )


class PyTorch(Model):
    """Settings of PyTorch's CUDA caching allocator."""

    allocator_config: AllocatorConfig = {}
    """Keys and values of PYTORCH_CUDA_ALLOC_CONF, merged with the pod's own. Values are
    strings: quote numbers and True. Default: none set."""
    min_version: MinVersion = "2.0"
    """Oldest PyTorch that the pods may contain; keys newer than it are refused, because that
    PyTorch would fail on them. Default: "2.0"."""

    rules: ClassVar[tuple[Rule, ...]] = ALLOCATOR_RULES


class TensorFlow(Model):
    """Settings of TensorFlow."""

    mode: Literal["Limit", "Growth", "Default"] = "Limit"
    """Limit: the shim sets TensorFlow's memory limit of every visible GPU. Growth: memory is taken
    as needed, without a cap (TF_FORCE_GPU_ALLOW_GROWTH). Default: TensorFlow is left alone,
    without a cap. Default: Limit."""


class Jax(Model):
    """Settings of JAX."""

    preallocation: Literal["Disabled", "Enabled", "Default"] = "Disabled"
    """Whether JAX takes its share of the card at the first operation. Default leaves JAX alone.
    Default: Disabled."""


class Frameworks(Model):
    """Settings for each framework. They apply to GPU containers."""

    pytorch: PyTorch = PyTorch()
    """PyTorch. Default: nothing is set."""
    tensorflow: TensorFlow = TensorFlow()
    """TensorFlow. Default: mode Limit."""
    jax: Jax = Jax()
    """JAX. Default: no preallocation."""


class Injection(Model):
    """How settings are written into pods that have some of their own."""

    existing_env: Literal["Merge", "Keep", "Override"] = "Merge"
    """For variables that the pod sets itself. Merge: allocator keys that it did not set are added,
    its own win. Keep: its variables stay as they are. Override: ours replace them. A cap of the pod
    may always be lower than ours and never higher. Default: Merge."""
    shim: Enabling = "Enabled"
    """Whether the start-up shim is put into GPU containers. It caps the allocators of the
    frameworks that it knows, and tells per GPU what it set, or why there is no cap.
    Default: Enabled."""
    image_python_path: SearchPath = ""
    """What the images have in PYTHONPATH themselves: the shim's PYTHONPATH hides it, so it is
    appended. Default: empty."""
    server_args: Enabling = "Disabled"
    """Whether the share of the card that vLLM takes is lowered to the limit at its start, by the
    shim. A lower one of the program stays. Disabled, and for other inference servers: a warning at
    admission names the argument and its value. Default: Disabled."""


MOST_INTERVAL_SECONDS: Final = 60
"""The longest time between two samples, their way and a lost report are less than 90 s."""
OFTEN_ENOUGH: Final = Rule(
    cel=f"self <= {MOST_INTERVAL_SECONDS}",
    holds=lambda seconds: seconds <= MOST_INTERVAL_SECONDS,
    sentence=(
        "{self} s between two measurements are too many: numbers of more than 90 s are taken for"
        f" unknown, so write {MOST_INTERVAL_SECONDS} or less"
    ),
)
MonitoringMode = Literal["Sidecar", "NodeAgent", "None"]


class Monitoring(Model):
    """How use is measured."""

    mode: MonitoringMode | None = None
    """Sidecar: a native sidecar in each pod, beside the node's agent where there is one. NodeAgent:
    by the agent alone (chart value agent.enabled), with nothing added to the pod for it. None: the
    pod gets nothing to measure it. Absent: the chart's value monitoring.mode (Sidecar unless
    changed)."""
    interval_seconds: Annotated[int, Field(ge=1), OFTEN_ENOUGH] = 5
    """Seconds between two measurements, at most 60, because numbers of more than 90 s are taken for
    unknown. Default: 5."""


class Enforcement(Model):
    """What happens to a pod that holds more than its limit."""

    mode: Literal["Audit", "Warn", "Enforce"] = "Audit"
    """Audit: only recorded what would have been done. Warn: Events and conditions. Enforce: the
    actions. Default: Audit."""
    minimum_enforcer: Literal["None", "MPS", "Driver"] = "None"
    """Pods go only to nodes where at least this can hold their limits. Default: None."""
    warn_percent: Annotated[int, Field(ge=1, le=100)] = 90
    """Percent of the limit above which a pod is warned. Default: 90."""
    grace_period_seconds: Annotated[int, Field(ge=0, le=86400)] = 60
    """Seconds above the limit before the first action. Default: 60."""
    actions: Actions = ["Reclaim", "Evict"]
    """In this order. Reclaim: cached memory is given back. Evict: the eviction API, budgets are
    respected. Delete: like Evict, but ignores budgets after evictionTimeoutSeconds. Kill: the
    process is ended (only with monitoring.mode NodeAgent). Default: Reclaim, Evict."""
    eviction_timeout_seconds: Annotated[int, Field(ge=1, le=86400)] = 600
    """Seconds after which Delete no longer waits for a disruption budget. Also the longest time to
    end that a pod gets (30 at least), whatever its terminationGracePeriodSeconds. Default: 600."""


_OUR_PATHS: Final = [posixpath.dirname(names.SHIM_PATH), names.RUN_PATH, names.TOKEN_PATH]


def _is_apart_from_ours(path: str) -> bool:
    plain = path != "/" and "//" not in path and "/../" not in f"{path}/"
    return plain and not any(
        f"{path}/".startswith(f"{ours}/") or f"{ours}/".startswith(f"{path}/")
        for ours in _OUR_PATHS
    )


class DatasetCache(Model):
    """A tmpfs for a data set, in every GPU container; its use counts in the memory limit of the
    container (not in GPU memory)."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel=(
                f"!{_OUR_PATHS}.exists(p, (self.mountPath + '/').startsWith(p + '/')"
                " || (p + '/').startsWith(self.mountPath + '/'))"
                " && self.mountPath != '/' && !self.mountPath.contains('//')"
                " && !(self.mountPath + '/').contains('/../')"
            ),
            holds=lambda cache: _is_apart_from_ours(cache.mount_path),
            sentence="mountPath {mountPath} overlaps a folder that the operator mounts"
            f" ({', '.join(_OUR_PATHS)}) or is not a plain path: choose another, such as /mnt/data",
        ),
    )

    mount_path: AbsolutePath
    """Where it is mounted. Required."""
    size_limit_bytes: Annotated[PositiveBytes, Field(alias="sizeLimit")]
    """Most that it may hold. Required."""


class DefaultPolicySpec(Model):
    """What a policy says about a pod, without the choice of pods: a tenant's defaultPolicy."""

    mode: Literal["Active", "Observe"] = "Active"
    """Active: everything below is applied. Observe: pods are only labelled and measured, nothing
    is limited or refused. Default: Active."""
    limits: Limits = Limits()
    """Memory per GPU. Default: nothing for containers that declare nothing, at least 2Gi for
    those that do."""
    frameworks: Frameworks = Frameworks()
    """Settings for each framework. Default: those of its fields."""
    injection: Injection = Injection()
    """How settings are written into pods. Default: Merge, with the shim."""
    monitoring: Monitoring = Monitoring()
    """How use is measured. Default: as the chart says, every 5 seconds."""
    enforcement: Enforcement = Enforcement()
    """What happens to a pod that holds more than its limit. Default: mode Audit."""
    dataset_cache: DatasetCache | None = None
    """A tmpfs for a data set. Absent: none."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            # The chart's default mode may change later: what ends processes is written down.
            cel=(
                "!('Kill' in self.enforcement.actions)"
                " || (has(self.monitoring.mode) && self.monitoring.mode == 'NodeAgent')"
            ),
            holds=lambda spec: (
                "Kill" not in spec.enforcement.actions or spec.monitoring.mode == "NodeAgent"
            ),
            sentence=(
                "enforcement.actions has Kill, which only the node agent can do: "
                "write monitoring.mode NodeAgent or leave Kill out"
            ),
        ),
    )

    def __hash__(self) -> int:
        # Equal specs say the same about pods. The models' own hash would stumble over their maps.
        return hash(self.pod_fingerprint)

    @cached_property
    def pod_fingerprint(self) -> str:
        """Fingerprint of what this says about pods: specs with the same one inject the same."""
        # Without defaults: a field that a later version adds must not make every pod outdated.
        told = self.model_dump(
            mode="json", by_alias=True, include=set(_FIELDS_ABOUT_PODS), exclude_defaults=True
        )
        if self.enforcement.minimum_enforcer != "None":
            told["minimumEnforcer"] = self.enforcement.minimum_enforcer
        text = json.dumps(told, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class PolicySpec(DefaultPolicySpec):
    """What the platform team wants for the GPU pods that the selector chooses."""

    selector: LabelSelector = LabelSelector()
    """Which GPU pods of the namespace. Absent: all of them."""
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 0
    """One policy decides for a pod: the highest priority, then the oldest, then the first by name.
    Default: 0."""
    scaling: ScalingTargets = []
    """Workloads whose replicas follow GPU memory. Default: none."""


NAME_FITS_LABEL: Final = Rule(
    cel="self.metadata.name.size() <= 63",
    holds=lambda name: len(name) <= 63,
    sentence="the name of a policy has at most 63 characters, because pods carry it in a label",
)
"""About metadata.name: it stands at the root of the CRD, and in the reading of a policy."""
