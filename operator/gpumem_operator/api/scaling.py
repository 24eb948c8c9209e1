"""Scaling targets of a policy: replicas follow GPU memory, in the words of the HPA (v2)."""

from typing import Annotated, Literal

from pydantic import Field

from gpumem_operator.api.model import Model, Name


class TargetRef(Model):
    """A workload of the same namespace that has a scale subresource."""

    api_version: Annotated[str, Field(min_length=1, max_length=316)] = "apps/v1"
    """API version of the workload. Default: apps/v1."""
    kind: Annotated[str, Field(min_length=1, max_length=63)]
    """Kind of the workload, such as Deployment. Required."""
    name: Name
    """Name of the workload. Required."""


class EngineSignal(Model):
    """A Prometheus metric of an inference server: what it needs, not what it preallocated."""

    metric_name: Annotated[str, Field(max_length=256, pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]*$")]
    """Name of the metric, for example vllm:kv_cache_usage_perc. Required."""
    port: Annotated[int, Field(ge=1, le=65535)]
    """Port of the pods that serves it. Required."""
    path: Annotated[str, Field(max_length=1024, pattern=r"^/")] = "/metrics"
    """Path that serves it. Default: /metrics."""
    target_value: Annotated[
        str, Field(max_length=32, pattern=r"^[0-9]*\.?[0-9]*[1-9][0-9]*\.?[0-9]*$")
    ]
    """Value per pod that scaling aims at, a positive decimal number as a string. Required."""


class ScalingPolicy(Model):
    """One bound on how fast replicas change."""

    type: Literal["Pods", "Percent"]
    """Whether value counts pods or percent of the present replicas. Required."""
    value: Annotated[int, Field(ge=1, le=1_000_000)]
    """Most that may change within periodSeconds. Required."""
    period_seconds: Annotated[int, Field(ge=1, le=1800)]
    """The window, in seconds. Required."""


class ScaleUpRules(Model):
    """How fast replicas may grow."""

    stabilization_seconds: Annotated[int, Field(ge=0, le=3600)] = 0
    """The lowest recommendation of so many seconds counts. Default: 0."""
    policies: Annotated[list[ScalingPolicy], Field(max_length=8)] = []
    """Bounds; the one that allows the larger change counts. Default: no bound."""


class ScaleDownRules(Model):
    """How fast replicas may shrink."""

    stabilization_seconds: Annotated[int, Field(ge=0, le=3600)] = 300
    """The highest recommendation of so many seconds counts. Default: 300."""
    policies: Annotated[list[ScalingPolicy], Field(max_length=8)] = []
    """Bounds; the one that allows the larger change counts. Default: no bound."""


class ScalingTarget(Model):
    """One workload whose replicas follow the GPU memory of its pods."""

    target_ref: TargetRef
    """The workload. Required."""
    min_replicas: Annotated[int, Field(ge=1, le=100_000)] = 1
    """Fewest replicas. Default: 1."""
    max_replicas: Annotated[int, Field(ge=1, le=100_000)]
    """Most replicas. Required."""
    metric: Literal["Used", "EngineSignal"] = "Used"
    """Used: measured GPU memory in percent of the limits. EngineSignal: a metric of the server,
    for servers that preallocate. Default: Used."""
    target_percent: Annotated[int, Field(ge=1, le=100)] = 80
    """Percent of the limits that Used aims at. Default: 80."""
    engine_signal: EngineSignal | None = None
    """Required where metric is EngineSignal. Absent: none."""
    scale_up: ScaleUpRules = ScaleUpRules()
    """How fast replicas may grow."""
    scale_down: ScaleDownRules = ScaleDownRules()
    """How fast replicas may shrink."""


class ScalingTargetStatus(Model):
    """What scaling did for one target."""

    target_ref: TargetRef
    """The workload."""
    current_replicas: int | None = None
    """Replicas that it has. Absent: it could not be read."""
    desired_replicas: int | None = None
    """Replicas that it should have. Absent: no decision yet."""
    current_percent: int | None = None
    """Used memory in percent of the limits. Absent: unknown."""
    reason: Annotated[str, Field(max_length=64)] = ""
    """One word for programs."""
    message: Annotated[str, Field(max_length=1024)] = ""
    """A sentence for people."""
