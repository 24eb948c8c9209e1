"""Declarations and the policy that decides -> the plan of one pod."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpumem_operator import names
from gpumem_operator.admission import marks
from gpumem_operator.admission.decider import Decider
from gpumem_operator.admission.declaration import Declaration, Declarations
from gpumem_operator.admission.plan import ContainerPlan, PodPlan
from gpumem_operator.admission.pod_settings import PodSettings
from gpumem_operator.api.pods import ContainerFacts, PodFacts
from gpumem_operator.api.quantity import format_bytes
from gpumem_operator.api.values import Values
from gpumem_operator.api.violation import Violation
from gpumem_operator.injection import (
    cupy,
    dataset_cache,
    driver,
    frozen,
    jax,
    mps,
    pytorch,
    run_volume,
    shim,
    sidecar,
    tensorflow,
)
from gpumem_operator.injection.environment import Environment, Resolved, Variables, resolve
from gpumem_operator.injection.target import Target


@dataclass(frozen=True)
class Planned:
    """A plan, and what came up while it was made."""

    plan: PodPlan
    warnings: tuple[str, ...]
    violations: tuple[Violation, ...]


def make_plan(
    facts: PodFacts, declarations: Declarations, *, decider: Decider, values: Values
) -> Planned:
    """The plan of a pod that a policy or a tenant decides for."""
    settings = PodSettings.of(facts, decider, values)
    containers: list[ContainerPlan] = []
    warnings: list[str] = list(settings.warnings)
    violations: list[Violation] = list(settings.violations)
    for container in facts.containers:
        if container.kind == "ephemeralContainers":
            continue
        row = declarations.of(container)
        planned = (
            _bystander(container) if row is None else _gpu_container(row, settings, decider, values)
        )
        containers.append(planned.plan)
        warnings.extend(f"container {container.name}: {text}" for text in planned.warnings)
        violations.extend(Violation(f"{container.path}.env", text) for text in planned.problems)
    warnings.extend(_hidden_python_paths(containers))
    plan = PodPlan(
        labels=marks.labels(decider),
        annotations=marks.annotations(declarations, decider),
        containers=tuple(containers),
        init_containers=_our_containers(facts, settings, values),
        volumes=_volumes(settings, decider, values),
        share_process_namespace=settings.share_process_namespace,
    )
    return Planned(plan, tuple(warnings), tuple(violations))


def _hidden_python_paths(containers: list[ContainerPlan]) -> list[str]:
    """One warning for the pod: kubectl shows at most 4096 characters of them in all."""
    hidden = [
        plan.container.name
        for plan in containers
        if names.PYTHON_PATH_ORIGIN_ENV in plan.environment.values
    ]
    if not hidden:
        return []
    return [
        f"PYTHONPATH is set for the shim in {_some(hidden)} and hides one that the image has: if "
        f"modules are missing, name it in spec.injection.imagePythonPath or in annotation "
        f"{names.PYTHON_PATH_ANNOTATION}"
    ]


def _some(containers: list[str]) -> str:
    first = ", ".join(containers[:2])
    return first if len(containers) <= 2 else f"{first} and {len(containers) - 2} more"


@dataclass(frozen=True)
class _PlannedContainer:
    plan: ContainerPlan
    warnings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def _bystander(container: ContainerFacts) -> _PlannedContainer:
    """A container without a GPU in a handled pod: only what pretends to be ours is taken away."""
    gone = frozen.reserved(Environment(container.raw))
    return _PlannedContainer(ContainerPlan(container, Resolved({}, gone, (), ())))


def _gpu_container(
    row: Declaration, settings: PodSettings, decider: Decider, values: Values
) -> _PlannedContainer:
    container = row.container
    environment = Environment(container.raw)
    filled = _memory_to_fill(row, decider, values)
    source = "Resource" if filled is not None else row.source
    parts = [frozen.variables(source, row.frozen_bytes, environment)]
    mounts: list[Mapping[str, Any]] = []
    if settings.shim or settings.sidecar:
        mounts.append(run_volume.mount())
    if decider.active and decider.spec is not None:
        target = Target(
            container=container,
            source=row.source,
            frozen_bytes=row.frozen_bytes,
            spec=decider.spec,
            image_python_path=settings.image_python_path,
            processes_per_gpu=settings.processes_per_gpu,
        )
        parts.extend(_framework_variables(target, environment, shimmed=settings.shim))
        if settings.shim and shim.applies(environment):
            mounts.extend(shim.mounts())
        if decider.spec.dataset_cache is not None:
            mounts.append(dataset_cache.mount(decider.spec.dataset_cache))
    elif decider.spec is None:
        parts.append(driver.variables())
    existing = decider.spec.injection.existing_env if decider.spec else "Keep"
    resolved = resolve(environment, parts, existing=existing)
    return _PlannedContainer(
        ContainerPlan(container, resolved, tuple(mounts), filled),
        (*resolved.warnings, *_unreadable_sources(container, resolved)),
        tuple(problem for part in parts for problem in part.problems),
    )


def _framework_variables(
    target: Target, environment: Environment, *, shimmed: bool
) -> list[Variables]:
    parts = [
        pytorch.variables(target, environment),
        tensorflow.variables(target, environment),
        jax.variables(target, environment),
        cupy.variables(target, environment),
        mps.variables(target, environment),
        driver.variables(),
    ]
    if shimmed:
        parts.append(shim.variables(target, environment))
    limit = target.frozen_bytes
    if limit is not None and limit >= target.spec.limits.min_bytes and target.cap_bytes is None:
        parts.append(_nothing_left(target))
    return parts


def _nothing_left(target: Target) -> Variables:
    process = format_bytes(target.process_bytes or 0)
    reserve = format_bytes(target.spec.limits.context_reserve_bytes)
    return Variables(
        problems=(
            f"the limit leaves {process} on a GPU for each of {target.processes_per_gpu} "
            f"processes, and {reserve} of it is reserved for the CUDA context: raise the limit or "
            f"lower {names.PROCESSES_PER_GPU_ANNOTATION}",
        )
    )


def _unreadable_sources(container: ContainerFacts, resolved: Resolved) -> tuple[str, ...]:
    if not container.raw.get("envFrom") or not resolved.added:
        return ()
    return (
        "envFrom can not be read at admission; these variables win over what it has: "
        + ", ".join(item for item in resolved.added if ":" not in item),
    )


def _memory_to_fill(row: Declaration, decider: Decider, values: Values) -> int | None:
    """The memory resource for a container that declared another way, where the chart wants it."""
    wanted = values.scheduling.fill_resource == "Enabled" and decider.active
    if not wanted or row.source == "Resource" or row.frozen_bytes is None:
        return None
    return row.total_bytes if row.container.gpu_count else None


def _our_containers(
    facts: PodFacts, settings: PodSettings, values: Values
) -> tuple[Mapping[str, Any], ...]:
    ours: list[Mapping[str, Any]] = []
    if settings.shim:
        ours.append(shim.init_container(values.sidecar))
    if settings.sidecar:
        interval = settings.interval_seconds
        ours.append(sidecar.sidecar_container(facts, values, interval_seconds=interval))
    return tuple(ours)


def _volumes(
    settings: PodSettings, decider: Decider, values: Values
) -> tuple[Mapping[str, Any], ...]:
    volumes: list[Mapping[str, Any]] = []
    if settings.shim:
        volumes.extend(shim.volumes())
    if settings.shim or settings.sidecar:
        volumes.append(run_volume.volume(values))
    if settings.sidecar:
        volumes.append(sidecar.token_volume())
    if decider.active and decider.spec is not None and decider.spec.dataset_cache is not None:
        volumes.append(dataset_cache.volume(decider.spec.dataset_cache))
    return tuple(volumes)
