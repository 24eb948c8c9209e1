"""Scaling targets of a policy: replicas follow GPU memory, in the words of the HPA (v2)."""

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from gpumem_operator.api.model import Model, Name
from gpumem_operator.api.rules import Rule, matching

MetricName = Annotated[
    str,
    Field(max_length=256),
    matching(r"^[a-zA-Z_:][a-zA-Z0-9_:]*$", "'{self}' is not the name of a Prometheus metric"),
]
UrlPath = Annotated[
    str, Field(max_length=1024), matching(r"^/[!-~]*$", "'{self}' is not a path such as /metrics")
]
PositiveNumber = Annotated[
    str,
    Field(max_length=32),
    matching(
        r"^(0*[1-9][0-9]*([.][0-9]+)?|0*[.]0*[1-9][0-9]*)$",
        "'{self}' is not a positive decimal number such as 0.8",
    ),
]


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

    metric_name: MetricName
    """Name of the metric, for example vllm:kv_cache_usage_perc. Required."""
    port: Annotated[int, Field(ge=1, le=65535)]
    """Port of the pods that serves it. Required."""
    path: UrlPath = "/metrics"
    """Path that serves it. Default: /metrics."""
    target_value: PositiveNumber
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
    """The metric of the server: required where metric is EngineSignal. Absent: none."""
    scale_up: ScaleUpRules = ScaleUpRules()
    """How fast replicas may grow. Default: at once, without a bound."""
    scale_down: ScaleDownRules = ScaleDownRules()
    """How fast replicas may shrink. Default: after 300 seconds, without a bound."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.minReplicas <= self.maxReplicas",
            holds=lambda target: target.min_replicas <= target.max_replicas,
            sentence="minReplicas {minReplicas} must not exceed maxReplicas {maxReplicas}",
        ),
        Rule(
            cel="self.metric != 'EngineSignal' || has(self.engineSignal)",
            holds=lambda target: target.metric != "EngineSignal" or target.engine_signal,
            sentence="metric EngineSignal needs engineSignal: metricName, port, targetValue",
        ),
        Rule(
            cel="self.metric == 'EngineSignal' || !has(self.engineSignal)",
            holds=lambda target: target.metric == "EngineSignal" or not target.engine_signal,
            sentence="engineSignal is read only with metric EngineSignal, and metric is {metric}",
        ),
    )


def _have_different_targets(targets: list[ScalingTarget]) -> bool:
    references = [target.target_ref for target in targets]
    return all(references.count(reference) == 1 for reference in references)


_DIFFERENT_TARGETS: Final = Rule(
    cel="self.all(a, self.exists_one(b, b.targetRef == a.targetRef))",
    holds=_have_different_targets,
    sentence="two entries have the same targetRef: one entry scales a workload",
)

ScalingTargets = Annotated[list[ScalingTarget], Field(max_length=16), _DIFFERENT_TARGETS]


Time = Annotated[str, Field(json_schema_extra={"format": "date-time"}, max_length=64)]


class PastRecommendation(Model):
    """A number of replicas that was recommended and no longer is."""

    until: Time
    """When it was last the recommendation."""
    replicas: int
    """The number."""


class ScalingChange(Model):
    """A change of replicas that was made."""

    time: Time
    """When."""
    from_replicas: int
    """Replicas before."""
    to_replicas: int
    """Replicas after."""
    message: Annotated[str, Field(max_length=1024)] = ""
    """Why, in a sentence for people."""


PastRecommendations = Annotated[list[PastRecommendation], Field(max_length=24)]


class ScalingTargetStatus(Model):
    """What scaling did for one target. The next leader goes on from what is written here."""

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
    recommended_replicas: int | None = None
    """The latest recommendation, before stabilization, pace and room. Absent: none yet."""
    recent_highest: PastRecommendations = []
    """Recommendations of the scaleDown window above all later ones, oldest first: they keep
    replicas from shrinking."""
    recent_lowest: PastRecommendations = []
    """Recommendations of the scaleUp window below all later ones, oldest first: they keep replicas
    from growing."""
    changes: Annotated[list[ScalingChange], Field(max_length=20)] = []
    """Changes of the last half hour, oldest first; the last one stays until the next."""
