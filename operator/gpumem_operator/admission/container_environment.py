"""The variables of one container: its author's, and what the plan makes of them.

The outcome follows from nothing but the two arguments, and pods of one workload differ in their
names and seldom in their variables. So it is remembered: that halves what a plan costs.
"""

import marshal
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from gpumem_operator import names
from gpumem_operator.api.pods import Source
from gpumem_operator.api.quantity import format_bytes
from gpumem_operator.injection import (
    cupy,
    devices,
    driver,
    frozen,
    jax,
    mps,
    pytorch,
    shim,
    tensorflow,
)
from gpumem_operator.injection.environment import (
    EnvEntry,
    Environment,
    Resolved,
    Variables,
    edit,
    resolve,
)
from gpumem_operator.injection.target import Target

_REMEMBERED: Final = 128
"""Outcomes; with the next figure, some two MiB at most."""
_LONGEST_REMEMBERED: Final = 4096
"""Bytes of a container's variables. Longer ones are worked out each time."""


@dataclass(frozen=True)
class Declared:
    """What a GPU container declared, and who decides about it."""

    container: str
    source: Source
    frozen_bytes: int | None
    sealing: frozen.Sealing
    target: Target | None
    """None where the policy only observes, and where there is none."""
    frameworks: bool = True
    """Whether frameworks are told what they may take; somebody else limits the pod otherwise."""
    shim: bool = False
    """Whether the policy puts the shim into containers that can have it."""
    shim_obstacle: str | None = None
    """Why this one can not, whatever its variables are."""
    by_tenant: bool = False
    """Whether a tenant alone decides, without any policy."""
    filled_resource: str | None = None
    """The memory resource, where it is filled in."""


@dataclass(frozen=True)
class Outcome:
    """What becomes of the variables of one container."""

    entries: Sequence[EnvEntry] | None
    """All of them; None where the container has exactly these."""
    resolved: Resolved
    shimmed: bool = False
    warnings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """Reasons to refuse the pod."""


def work_out(
    entries: list[EnvEntry], declared: Declared | None, *, hides_devices: bool = False
) -> Outcome:
    """The outcome for these variables; `declared` is None for a container without a GPU.

    Such a container is kept away from all of them with `hides_devices`.
    """
    try:
        # The quickest exact picture of plain data: equal pictures are equal variables.
        picture = marshal.dumps(entries, 2)
    except ValueError:  # A file may hold what JSON does not have, such as a date.
        return _work_out(entries, declared, hides_devices=hides_devices)
    if len(picture) > _LONGEST_REMEMBERED:
        return _work_out(entries, declared, hides_devices=hides_devices)
    return remembered(picture, declared, hides_devices=hides_devices)


@lru_cache(maxsize=_REMEMBERED)
def remembered(picture: bytes, declared: Declared | None, *, hides_devices: bool) -> Outcome:
    """The outcome for the variables in a picture of `marshal`, version 2."""
    return _work_out(marshal.loads(picture), declared, hides_devices=hides_devices)


def _work_out(
    entries: Sequence[EnvEntry], declared: Declared | None, *, hides_devices: bool
) -> Outcome:
    environment = Environment(entries)
    if declared is None:
        return _bystander(entries, environment, hides_devices=hides_devices)
    parts = [
        frozen.variables(
            declared.container,
            declared.source,
            frozen_bytes=declared.frozen_bytes,
            environment=environment,
            sealing=declared.sealing,
        )
    ]
    if declared.filled_resource is not None:
        parts.append(Variables(added=(declared.filled_resource,)))
    warnings: tuple[str, ...] = ()
    shimmed = False
    target = declared.target
    if target is not None and declared.frameworks:
        if declared.shim:
            obstacle = shim.unreadable_path(environment) or declared.shim_obstacle
            shimmed = obstacle is None
            warnings = () if obstacle is None else (obstacle,)
        parts.extend(_framework_variables(target, environment, shimmed=shimmed))
    elif target is not None:
        # Another manager limits by the very same variables: its own stay, unless the platform
        # wants ours.
        if target.driver_limits:
            parts.append(driver.variables(target))
    elif declared.by_tenant:
        parts.append(driver.variables())
    existing = target.spec.injection.existing_env if target else "Keep"
    resolved = resolve(environment, parts, existing=existing)
    return Outcome(
        entries=_changed(entries, resolved),
        resolved=resolved,
        shimmed=shimmed,
        warnings=warnings,
        problems=tuple(problem for part in parts for problem in part.problems),
    )


def _bystander(
    entries: Sequence[EnvEntry], environment: Environment, *, hides_devices: bool
) -> Outcome:
    """A container without a GPU in a handled pod: what pretends to be ours is taken away."""
    parts = [Variables(removed=frozen.reserved(environment))]
    if hides_devices:
        parts.append(devices.hidden())
    resolved = resolve(environment, parts, existing="Keep")
    return Outcome(_changed(entries, resolved), resolved)


def _changed(entries: Sequence[EnvEntry], resolved: Resolved) -> Sequence[EnvEntry] | None:
    edited = edit(entries, resolved)
    return None if edited == entries else edited


def _framework_variables(
    target: Target, environment: Environment, *, shimmed: bool
) -> list[Variables]:
    parts = [
        pytorch.variables(target, environment),
        tensorflow.variables(target, environment),
        jax.variables(target, environment),
        cupy.variables(target, environment),
        mps.variables(target, environment),
        driver.variables(target),
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
