"""How much GPU memory each container declares, and what is wrong with the declarations.

Order: the memory resource (a total over the container's GPUs), an annotation (per GPU), the MIG
profile, the policy's default, a whole GPU.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from gpumem_operator import names
from gpumem_operator.api.count import count, named
from gpumem_operator.api.pods import ContainerFacts, PodFacts, Source
from gpumem_operator.api.policy import Limits
from gpumem_operator.api.quantity import (
    MIB,
    QuantityError,
    floor_to_mib,
    format_bytes,
    parse_bytes,
    whole_number,
)
from gpumem_operator.api.violation import Violation


@dataclass(frozen=True)
class Declaration:
    """What one container declares."""

    container: ContainerFacts
    source: Source
    limit_bytes: int | None
    """Per GPU, in whole MiB; None for WholeGPU."""
    place: str = ""
    """Path of the field that declares it; empty where the author declared nothing."""
    filled_from: Source | None = None
    """What was declared, where the memory resource is written into the container for it."""

    @property
    def frozen_bytes(self) -> int | None:
        """What is written into the container: a profile and a whole GPU speak for themselves."""
        return self.limit_bytes if self.source in ("Resource", "Annotation", "Policy") else None

    @property
    def fills_resource(self) -> bool:
        """Whether the memory resource is written into the container, which declared otherwise."""
        return self.filled_from is not None

    @property
    def total_bytes(self) -> int | None:
        """Over all GPUs of the container."""
        return None if self.limit_bytes is None else self.limit_bytes * self.container.gpu_count


@dataclass(frozen=True)
class Annotated:
    """A limit per GPU from an annotation of the pod."""

    amount_bytes: int
    place: str


@dataclass(frozen=True)
class Declarations:
    """What a pod declares. A container that can see no GPU has no row."""

    rows: tuple[Declaration, ...]
    violations: tuple[Violation, ...]
    """Faults of the declarations themselves, whatever a policy says."""
    out_of_bounds: tuple[Violation, ...]
    """Declarations that the policy's min or max does not allow."""

    def as_resources(self) -> "Declarations":
        """The same with every limit on GPUs as a memory resource: its source from now on."""
        rows = tuple(
            replace(row, source="Resource", filled_from=row.source)
            if row.source in ("Annotation", "Policy") and row.container.gpu_count
            else row
            for row in self.rows
        )
        return replace(self, rows=rows)


def declare(
    facts: PodFacts,
    memory_resource: str,
    *,
    limits: Limits | None,
    exclusive_resources: frozenset[str] = frozenset(),
) -> Declarations:
    """Declarations of all containers that can see GPUs; `limits` is None without a policy.

    Containers with faulty declarations have a row as well, as if the fault were not there: in
    mode Observe the pod is let through with warnings.
    """
    annotated, violations = _annotations(facts)
    out_of_bounds: list[Violation] = []
    rows: list[Declaration] = []
    for container in facts.containers:
        limit = annotated.get(container.name)
        if container.memory_bytes is not None and not container.gpu_count:
            violations.append(_memory_without_gpu(container, memory_resource))
        if not (container.gpu_count or container.sees_devices):
            continue
        row = _written(container, limit, memory_resource)
        if row is None:
            row = _implied(container, limits, exclusive_resources=exclusive_resources)
        else:
            violations.extend(_disagreement(row, limit))
            violations.extend(_no_amount(row))
            violations.extend(_more_than_profile(row))
            if limits is not None:
                out_of_bounds.extend(_out_of_bounds(row, limits))
        rows.append(row)
    return Declarations(tuple(rows), (*facts.violations, *violations), tuple(out_of_bounds))


def _written(
    container: ContainerFacts, annotated: Annotated | None, memory_resource: str
) -> Declaration | None:
    """What the author declared: `min`, `max` and the profile judge it."""
    if container.memory_bytes is not None and container.gpu_count:
        per_gpu = floor_to_mib(container.memory_bytes // container.gpu_count)
        return Declaration(container, "Resource", per_gpu, _place(container, memory_resource))
    if annotated is not None:
        limit = floor_to_mib(annotated.amount_bytes)
        return Declaration(container, "Annotation", limit, annotated.place)
    return None


def _implied(
    container: ContainerFacts, limits: Limits | None, *, exclusive_resources: frozenset[str]
) -> Declaration:
    if container.profile_bytes is not None:
        return Declaration(container, "Profile", container.profile_bytes)
    default = limits.default_bytes if limits else None
    # A container on a whole card and on a shared one beside it needs the limit for the latter.
    shared = any(gpu.resource not in exclusive_resources for gpu in container.gpus)
    if default is not None and (shared or not container.gpus):
        return Declaration(container, "Policy", floor_to_mib(default))
    return Declaration(container, "WholeGPU", None)


_MOST_FAULTS: Final = 20


def _annotations(facts: PodFacts) -> tuple[dict[str, Annotated], list[Violation]]:
    """Limits by container, from the pod's annotations; the container's own one wins."""
    limits: dict[str, Annotated] = {}
    violations: list[Violation] = []
    prefix = names.container_limit_annotation("")
    able = {c.name: c for c in facts.containers if c.gpu_count or c.sees_devices}
    for key in sorted(facts.annotations, key=len):
        if key != names.LIMIT_ANNOTATION and not key.startswith(prefix):
            continue
        if len(violations) > _MOST_FAULTS:
            # A pod may carry thousands of them, and a refusal shows ten.
            break
        path = f'metadata.annotations["{key}"]'
        try:
            amount = parse_bytes(facts.annotations[key])
        except QuantityError as error:
            violations.append(Violation(path, str(error)))
            continue
        if amount < MIB:
            hint = _unit_hint(facts.annotations[key])
            text = f"{_with_unit(amount)} per GPU, less than 1Mi: {hint}"
            violations.append(Violation(path, text))
            continue
        if key == names.LIMIT_ANNOTATION:
            if not able:
                violations.append(Violation(path, "no container of the pod asks for a GPU"))
            limits = {name: Annotated(amount, f"{path} for container {name}") for name in able}
        elif key.removeprefix(prefix) in able:
            limits[key.removeprefix(prefix)] = Annotated(amount, path)
        else:
            violations.append(Violation(path, _no_such_container(facts, key.removeprefix(prefix))))
    return limits, violations


def _no_such_container(facts: PodFacts, name: str) -> str:
    if any(container.name == name for container in facts.containers):
        return f"container {name!r} asks for no GPU, so there is nothing to limit"
    known = named([container.name for container in facts.containers], most=10) or "none"
    # A key has 63 characters behind the slash, of which `limit.` takes six.
    longest = names.LONGEST_ANNOTATION_NAME - len("limit.")
    return (
        f"the pod has no container {name!r} (it has: {known}); a container whose name is longer "
        f"than {longest} characters can only be limited by resources or by {names.LIMIT_ANNOTATION}"
    )


def _memory_without_gpu(container: ContainerFacts, memory_resource: str) -> Violation:
    return Violation(
        _place(container, memory_resource),
        f"{container.memory_text} of GPU memory without a GPU: add nvidia.com/gpu (or a MIG "
        "resource) to the limits of the same container, or remove the memory",
    )


def _disagreement(row: Declaration, annotated: Annotated | None) -> Iterator[Violation]:
    if annotated is not None and floor_to_mib(annotated.amount_bytes) != row.limit_bytes:
        yield Violation(
            row.place,
            f"{_words(row)}, but the pod's annotation says "
            f"{format_bytes(annotated.amount_bytes)} per GPU: keep one of them",
        )


def _no_amount(row: Declaration) -> Iterator[Violation]:
    """Drivers count in MiB; a declaration of less would be charged nothing and limit nothing."""
    if (row.limit_bytes or 0) < MIB:
        yield Violation(
            row.place,
            f"{_words(row)}, less than 1Mi: {_unit_hint(row.container.memory_text)}",
        )


def _unit_hint(written: str) -> str:
    """People who know another system write 8 for GiB or 8192 for MiB."""
    amount = whole_number(str(written))  # a file may have a number where the API has text
    if not amount:
        return "declare more, or remove the declaration"
    unit = "Gi" if amount < 1024 else "Mi"
    return f"an amount without a unit is in bytes; did you mean {amount}{unit}?"


def _out_of_bounds(row: Declaration, limits: Limits) -> Iterator[Violation]:
    limit = row.limit_bytes or 0
    if limit < MIB:
        return
    if limit < floor_to_mib(limits.min_bytes):
        bound = f"less than the least limit per GPU, {format_bytes(limits.min_bytes)}"
        hint = _did_you_mean_a_total(row, limits)
        yield Violation(row.place, f"{_words(row)}, {bound}{hint}")
    elif limits.max_bytes is not None and limit > limits.max_bytes:
        bound = f"more than the largest limit per GPU, {format_bytes(limits.max_bytes)}"
        hint = _did_you_mean_per_gpu(row, limits) or _at_most(row, limits.max_bytes)
        yield Violation(row.place, f"{_words(row)}, {bound}{hint}")


def _more_than_profile(row: Declaration) -> Iterator[Violation]:
    profile = row.container.profile_bytes
    if profile is not None and (row.limit_bytes or 0) > profile:
        yield Violation(
            row.place,
            f"{_words(row)}, more than a slice of {_smallest_slice(row.container)} has, "
            f"{format_bytes(profile)}",
        )


def _smallest_slice(container: ContainerFacts) -> str:
    return min(container.gpus, key=lambda request: request.profile_bytes or 0).resource


def _place(container: ContainerFacts, memory_resource: str) -> str:
    return f'{container.path}.resources.limits["{memory_resource}"]'


def _words(row: Declaration) -> str:
    if row.source == "Resource" and row.container.memory_bytes is not None:
        return _both_forms(row.container.memory_bytes, row.container.gpu_count)
    return f"{format_bytes(row.limit_bytes or 0)} per GPU"


def _both_forms(total: int, gpus: int) -> str:
    share = total // gpus
    per_gpu = _with_unit(floor_to_mib(share) or share)
    return f"{_with_unit(total)} over {count(gpus, 'GPU')} = {per_gpu} per GPU"


def _with_unit(amount: int) -> str:
    """Beside a number of GPUs, a bare number could be of anything."""
    text = format_bytes(amount)
    return count(amount, "byte") if text.isdecimal() and amount else text


def _did_you_mean_a_total(row: Declaration, limits: Limits) -> str:
    """People write the amount per GPU where the total belongs; with one GPU both are the same."""
    gpus = row.container.gpu_count
    if row.source != "Resource" or gpus < 2:
        return ""
    written = row.container.memory_bytes or 0
    if _allowed(written, limits):
        advice = f"did you mean {format_bytes(written * gpus)}?"
    else:
        advice = f"it takes at least {format_bytes(limits.min_bytes * gpus)}"
    return f"; the resource is the total over all GPUs: {advice}"


def _did_you_mean_per_gpu(row: Declaration, limits: Limits) -> str:
    """The other way round: the total where the amount per GPU belongs."""
    gpus = row.container.gpu_count
    written = row.limit_bytes or 0
    if row.source != "Annotation" or gpus < 2 or not _allowed(written // gpus, limits):
        return ""
    return f"; the annotation is per GPU: did you mean {format_bytes(written // gpus)}?"


def _at_most(row: Declaration, per_gpu: int) -> str:
    """In the form in which it is declared."""
    gpus = row.container.gpu_count
    if row.source == "Resource" and gpus > 1:
        return f": declare at most {format_bytes(per_gpu * gpus)} over {gpus} GPUs"
    return f": declare at most {format_bytes(per_gpu)}"


def _allowed(per_gpu: int, limits: Limits) -> bool:
    return limits.min_bytes <= per_gpu and (limits.max_bytes is None or per_gpu <= limits.max_bytes)
