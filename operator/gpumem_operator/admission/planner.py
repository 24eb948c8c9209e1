"""Declarations and the policy that decides -> the plan of one pod."""

from collections.abc import Iterator, Mapping
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
from gpumem_operator.api.seal import Seal
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
    facts: PodFacts,
    declarations: Declarations,
    *,
    decider: Decider,
    values: Values,
    would: marks.Would | None = None,
    seal: Seal | None = None,
) -> Planned:
    """The plan of a pod that a policy or a tenant decides for."""
    sealing = frozen.Sealing(facts.namespace, seal)
    settings = PodSettings.of(facts, decider, values)
    parts: list[_PlannedContainer] = []
    warnings: list[str] = list(settings.warnings)
    violations: list[Violation] = list(settings.violations)
    for container in facts.containers:
        if container.kind == "ephemeralContainers":
            continue
        row = declarations.of(container)
        if row is None:
            part = _bystander(container)
        else:
            part = _gpu_container(row, settings, decider=decider, sealing=sealing)
        parts.append(part)
        warnings.extend(f"container {container.name}: {text}" for text in part.warnings)
        violations.extend(Violation(f"{container.path}.env", text) for text in part.problems)
    warnings.extend(_hidden_python_paths(parts))
    shimmed = any(part.shimmed for part in parts)
    plan = PodPlan(
        labels=marks.labels(decider),
        annotations=marks.annotations(declarations, decider, would),
        containers=tuple(part.plan for part in parts),
        init_containers=_our_containers(facts, settings, values, shimmed=shimmed),
        volumes=_volumes(settings, values, shimmed=shimmed),
        share_process_namespace=settings.share_process_namespace,
    )
    return Planned(plan, tuple(warnings), tuple(violations))


@dataclass(frozen=True)
class _PlannedContainer:
    plan: ContainerPlan
    warnings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    shimmed: bool = False


def _bystander(container: ContainerFacts) -> _PlannedContainer:
    """A container without a GPU in a handled pod: only what pretends to be ours is taken away."""
    environment = Environment(container.raw)
    parts = [Variables(removed=frozen.reserved(environment))]
    resolved = resolve(environment, parts, existing="Keep")
    return _PlannedContainer(ContainerPlan(container, resolved))


def _gpu_container(
    row: Declaration, settings: PodSettings, *, decider: Decider, sealing: frozen.Sealing
) -> _PlannedContainer:
    environment = Environment(row.container.raw)
    parts = [
        frozen.variables(
            row.container.name,
            row.source,
            frozen_bytes=row.frozen_bytes,
            environment=environment,
            sealing=sealing,
        )
    ]
    mounts: list[Mapping[str, Any]] = []
    warnings: list[str] = []
    shimmed = False
    if decider.active and decider.spec is not None:
        obstacle = shim.obstacle(row.container, environment, settings.read_only_volumes)
        shimmed = settings.shim and obstacle is None
        if settings.shim and obstacle is not None:
            warnings.append(obstacle)
        target = settings.target(row, decider.spec)
        parts.extend(_framework_variables(target, environment, shimmed=shimmed))
        mounts.extend(_mounts(row.container, settings, warnings, shimmed=shimmed))
    elif decider.spec is None:
        parts.append(driver.variables())
    existing = decider.spec.injection.existing_env if decider.spec else "Keep"
    resolved = resolve(environment, parts, existing=existing)
    filled = row.total_bytes if row.fills_resource else None
    return _PlannedContainer(
        ContainerPlan(row.container, resolved, tuple(mounts), filled),
        (*warnings, *resolved.warnings, *_unreadable_sources(row.container, resolved)),
        tuple(problem for part in parts for problem in part.problems),
        shimmed,
    )


def _mounts(
    container: ContainerFacts, settings: PodSettings, warnings: list[str], *, shimmed: bool
) -> Iterator[Mapping[str, Any]]:
    if shimmed:
        yield run_volume.mount()
        yield from shim.mounts()
    if (cache := settings.dataset_cache) is not None:
        obstacle = dataset_cache.obstacle(container, cache)
        if obstacle is None:
            yield dataset_cache.mount(cache)
        else:
            warnings.append(obstacle)


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
    ours = [item for item in resolved.added if ":" not in item]
    if not container.raw.get("envFrom") or not ours:
        return ()
    return (f"envFrom can not be read at admission, and these win over it: {', '.join(ours)}",)


def _hidden_python_paths(parts: list[_PlannedContainer]) -> list[str]:
    """One warning for the pod: kubectl shows at most 4096 characters of them in all."""
    hidden = [
        part.plan.container.name
        for part in parts
        if names.PYTHON_PATH_ORIGIN_ENV in part.plan.environment.values
    ]
    if not hidden:
        return []
    return [
        f"PYTHONPATH is set for the shim in {_some(hidden)}. If the image sets one too, it is "
        f"hidden: name it in injection.imagePythonPath or annotation {names.PYTHON_PATH_ANNOTATION}"
    ]


def _some(containers: list[str]) -> str:
    return containers[0] if len(containers) == 1 else f"{len(containers)} containers"


def _our_containers(
    facts: PodFacts, settings: PodSettings, values: Values, *, shimmed: bool
) -> tuple[Mapping[str, Any], ...]:
    ours: list[Mapping[str, Any]] = []
    if shimmed:
        ours.append(shim.init_container(values.sidecar))
    if settings.sidecar:
        interval = settings.interval_seconds
        ours.append(sidecar.sidecar_container(facts, values, interval_seconds=interval))
    return tuple(ours)


def _volumes(
    settings: PodSettings, values: Values, *, shimmed: bool
) -> tuple[Mapping[str, Any], ...]:
    volumes: list[Mapping[str, Any]] = []
    if shimmed:
        volumes.extend(shim.volumes())
    if shimmed or settings.sidecar:
        volumes.append(run_volume.volume(values))
    if settings.sidecar:
        volumes.append(sidecar.token_volume())
    if settings.dataset_cache is not None:
        volumes.append(dataset_cache.volume(settings.dataset_cache))
    return tuple(volumes)
