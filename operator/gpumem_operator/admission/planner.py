"""Declarations and the policy that decides -> the plan of one pod."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpumem_operator.admission import marks
from gpumem_operator.admission.container_environment import Declared, work_out
from gpumem_operator.admission.decider import Decider
from gpumem_operator.admission.declaration import Declaration, Declarations
from gpumem_operator.admission.enforcer_needs import node_label
from gpumem_operator.admission.plan import ContainerPlan, PodPlan
from gpumem_operator.admission.pod_settings import PodSettings
from gpumem_operator.api.pods import ContainerFacts, PodFacts
from gpumem_operator.api.seal import Seal
from gpumem_operator.api.values import Values
from gpumem_operator.api.violation import Violation
from gpumem_operator.injection import dataset_cache, run_volume, servers, shim, sidecar
from gpumem_operator.injection.environment import Resolved
from gpumem_operator.injection.frozen import Sealing


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
    hides_devices: bool = False,
    seal: Seal | None = None,
    cards: servers.Cards | None = None,
) -> Planned:
    """The plan of a pod that a policy or a tenant decides for.

    With `hides_devices` no container without a GPU gets one from an envFrom. `cards` are those that
    the cluster is known to have.
    """
    sealing = Sealing(facts.namespace, seal)
    settings = PodSettings.of(facts, decider, values)
    rows = {(row.container.kind, row.container.index): row for row in declarations.rows}
    parts: list[_PlannedContainer] = []
    warnings: list[str] = list(settings.warnings)
    violations: list[Violation] = list(settings.violations)
    for container in facts.containers:
        if container.kind == "ephemeralContainers":
            continue
        row = rows.get((container.kind, container.index))
        if row is None:
            part = _bystander(container, hides_devices=hides_devices)
        else:
            part = _gpu_container(
                row,
                settings,
                decider=decider,
                memory_resource=values.memory_resource,
                sealing=sealing,
                cards=cards or {},
            )
        parts.append(part)
        warnings.extend(f"container {container.name}: {text}" for text in part.warnings)
        violations.extend(Violation(f"{container.path}.env", text) for text in part.problems)
    shimmed = any(part.shimmed for part in parts)
    label = node_label(declarations, decider, values)
    plan = PodPlan(
        labels=marks.labels(decider),
        annotations=marks.annotations(
            declarations, decider, would, others=marks.others(facts.managers, settings.limited_by)
        )
        | marks.node_affinity(label),
        containers=tuple(part.plan for part in parts),
        init_containers=_our_containers(facts, settings, values, shimmed=shimmed),
        volumes=_volumes(settings, values, shimmed=shimmed),
        share_process_namespace=settings.share_process_namespace,
        node_label=label,
    )
    return Planned(plan, tuple(warnings), tuple(violations))


@dataclass(frozen=True)
class _PlannedContainer:
    plan: ContainerPlan
    warnings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    shimmed: bool = False


def plan_without_gpus(facts: PodFacts, *, hides_devices: bool) -> PodPlan:
    """The plan of a pod that names GPU resources and asks for none: nothing of ours is in it."""
    parts = (
        _bystander(container, hides_devices=hides_devices)
        for container in facts.containers
        if container.kind != "ephemeralContainers"
    )
    return PodPlan(
        containers=tuple(part.plan for part in parts),
        share_process_namespace=False if facts.shared_by_admission else None,
    )


def _bystander(container: ContainerFacts, *, hides_devices: bool) -> _PlannedContainer:
    hidden = hides_devices and bool(container.raw.get("envFrom"))
    outcome = work_out(container.raw.get("env") or [], None, hides_devices=hidden)
    plan = ContainerPlan(
        container, outcome.entries, drops_memory_resource=container.memory_by_admission
    )
    return _PlannedContainer(plan, _unreadable_sources(container, outcome.resolved))


def _gpu_container(
    row: Declaration,
    settings: PodSettings,
    *,
    decider: Decider,
    memory_resource: str,
    sealing: Sealing,
    cards: servers.Cards,
) -> _PlannedContainer:
    container = row.container
    spec = decider.spec if decider.active else None
    declared = Declared(
        container=container.name,
        source=row.source,
        frozen_bytes=row.frozen_bytes,
        sealing=sealing,
        target=settings.target(row, spec) if spec is not None else None,
        shim=settings.shim,
        frameworks=not settings.limited_by,
        shim_obstacle=shim.read_only_mount(container, settings.read_only_volumes),
        by_tenant=decider.spec is None,
        filled_resource=memory_resource if row.fills_resource else None,
    )
    outcome = work_out(container.raw.get("env") or [], declared)
    warnings = list(outcome.warnings)
    if declared.target is not None:
        lowers = outcome.shimmed and declared.target.spec.injection.server_args == "Enabled"
        cap_bytes = declared.target.cap_bytes
        cards = _cards(container, cards)
        warnings.extend(servers.warnings(container.raw, cap_bytes, cards=cards, lowers=lowers))
    mounts: tuple[Mapping[str, Any], ...] = ()
    if spec is not None:
        mounts = tuple(_mounts(container, settings, warnings, shimmed=outcome.shimmed))
    warnings.extend(outcome.resolved.warnings)
    warnings.extend(_unreadable_sources(container, outcome.resolved))
    return _PlannedContainer(
        ContainerPlan(
            container,
            outcome.entries,
            mounts,
            memory_resource_bytes=row.total_bytes if row.fills_resource else None,
            drops_memory_resource=container.memory_by_admission,
        ),
        tuple(warnings),
        outcome.problems,
        shimmed=outcome.shimmed,
    )


def _cards(container: ContainerFacts, cards: servers.Cards) -> servers.Cards:
    """A container on a MIG slice sees the slice and no card."""
    slice_bytes = container.profile_bytes
    return cards if slice_bytes is None else {"its slice": slice_bytes}


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


def _unreadable_sources(container: ContainerFacts, resolved: Resolved) -> tuple[str, ...]:
    ours = [item for item in resolved.added if item in resolved.values]
    if not container.raw.get("envFrom") or not ours:
        return ()
    return (f"envFrom can not be read at admission, and these win over it: {', '.join(ours)}",)


def _our_containers(
    facts: PodFacts, settings: PodSettings, values: Values, *, shimmed: bool
) -> tuple[Mapping[str, Any], ...]:
    ours: list[Mapping[str, Any]] = []
    if shimmed:
        requests = not facts.pod_resources
        ours.append(shim.init_container(values.sidecar, requests=requests, as_root=facts.as_root))
    if settings.sidecar:
        ours.append(
            sidecar.sidecar_container(
                facts,
                values,
                interval_seconds=settings.interval_seconds,
                shares_processes=bool(settings.share_process_namespace),
            )
        )
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
