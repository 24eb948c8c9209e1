"""Pod templates in objects of kinds that are not known, wherever they are.

A training job, a cluster of a framework, a set of jobs: each has a definition of its own, and all
of them hold pod templates with a number of replicas somewhere above. The product of these numbers
is right for Kubeflow's jobs, JobSet, KubeRay, Volcano and LeaderWorkerSet; since nobody can know it
of every kind, the command says how it counted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Final, TypeGuard

from gpumem_operator import names
from gpumem_operator.api.pods import is_gpu_resource

LARGEST_COUNT: Final = 2**31 - 1
"""Kubernetes counts pods in 32 bits."""
_ARGO_GROUP: Final = "argoproj.io/"
_ANONYMOUS: Final = frozenset({"spec", "template"})


@dataclass(frozen=True)
class Template:
    """One pod template inside an object."""

    path: tuple[str, ...]
    """Where it is: keys, and of lists the name of the entry or its number."""
    pod: Mapping[str, Any] = field(default_factory=dict)
    factors: tuple[tuple[str, int], ...] = ()
    """Fields above it that say how many, from the outside in."""
    doubts: tuple[str, ...] = ()
    """Fields above it that might say how many, and could not be used."""

    @property
    def count(self) -> int:
        return prod(number for _, number in self.factors)

    @property
    def part(self) -> str:
        """What tells it from the object's other templates: `Worker`; empty for `spec.template`."""
        telling = [part for part in self.path if part not in _ANONYMOUS]
        return telling[-1] if telling else ""

    @property
    def reckoning(self) -> str:
        """How it was counted: `8 x (replicas 2, parallelism 4)`."""
        factors = [f"{name} {number}" for name, number in self.factors]
        reasons = [*(factors or ["no replicas beside it"]), *self.doubts]
        return f"{self.count} x ({', '.join(reasons)})"


@dataclass
class Search:
    """Everything in an object that has to do with pods."""

    raw: Mapping[str, Any]
    templates: list[Template] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    """Paths of GPU limits that are in no template: what they belong to is not counted."""

    def __post_init__(self) -> None:
        self._argo = str(self.raw.get("apiVersion")).startswith(_ARGO_GROUP)
        for key, value in self.raw.items():
            if key not in ("metadata", "status"):
                self._visit(value, Template((key,)))

    def _visit(self, value: Any, here: Template) -> None:
        if isinstance(value, list):
            for index, item in enumerate(value):
                part = _name_of(item) or f"{here.path[-1]}[{index}]"
                self._visit(item, replace(here, path=(*here.path[:-1], part)))
        if not isinstance(value, Mapping):
            return
        pod = value if _is_template(value, here.path[-1]) else self._argo_pod(value)
        if pod is not None:
            self.templates.append(replace(here, pod=pod))
            return
        if here.path[-1] == "limits" and any(_is_ours(resource) for resource in value):
            self.strays.append(".".join(here.path))
        for key, inner in value.items():
            self._visit(inner, _inside(here, value, key))

    def _argo_pod(self, value: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The pod of a step of an Argo Workflow, whose one container is called `main`."""
        container = value.get("container") or value.get("script")
        several = value.get("containerSet")
        if not self._argo:
            return None
        if isinstance(container, Mapping):
            plain = {key: inner for key, inner in container.items() if key != "source"}
            containers = [{**plain, "name": "main"}]
        elif isinstance(several, Mapping) and isinstance(several.get("containers"), list):
            containers = several["containers"]
        else:
            return None
        sidecars = value.get("sidecars")
        spec = {"containers": containers + (sidecars if isinstance(sidecars, list) else [])}
        spec |= {key: value[key] for key in ("initContainers", "volumes") if key in value}
        return {"metadata": value.get("metadata"), "spec": spec}


def _name_of(item: Any) -> str | None:
    """How an entry of a list calls itself; whole objects in a list do it in their metadata."""
    if not isinstance(item, Mapping):
        return None
    metadata = item.get("metadata")
    inner = metadata.get("name") if isinstance(metadata, Mapping) else None
    called = (item.get("name"), item.get("groupName"), inner)
    return next((name for name in called if isinstance(name, str) and name), None)


def _is_template(value: Mapping[str, Any], key: str) -> bool:
    spec = value.get("spec")
    if not isinstance(spec, Mapping) or "containers" not in spec:
        return False
    containers = spec["containers"]
    listed = isinstance(containers, list) and any(isinstance(one, Mapping) for one in containers)
    return listed or key == "template"


def _is_ours(resource: str) -> bool:
    return is_gpu_resource(resource) or resource == names.MEMORY_RESOURCE


def _inside(here: Template, value: Mapping[str, Any], key: str) -> Template:
    factors, doubts = list(here.factors), list(here.doubts)
    for name, number in _counts(value, key):
        if is_count(number):
            factors.append((name, number))
        else:
            doubts.append(f"{name} {number!r:.40} is no number of pods")
    largest = value.get("maxReplicas")
    if is_count(largest) and largest != value.get("replicas"):
        doubts.append(f"maxReplicas {largest}")
    return Template((*here.path, key), {}, tuple(factors), tuple(doubts))


def _counts(value: Mapping[str, Any], key: str) -> Iterator[tuple[str, Any]]:
    """Fields of a mapping that say how often what is below `key` runs at once."""
    for name in ("replicas", "numOfHosts"):
        if value.get(name) is not None:
            yield name, value[name]
    if key == "template":
        stated = ((name, value.get(name)) for name in ("parallelism", "completions"))
        whole = [(number, name) for name, number in stated if is_count(number)]
        yield from ((name, number) for number, name in sorted(whole)[:1])
    size = value.get("size")
    if key == "workerTemplate" and is_count(size):
        # A group of a LeaderWorkerSet: the leader is one of `size`, with a template of its own
        # or with that of the workers.
        led = value.get("leaderTemplate") is not None
        yield ("size less the leader", max(size - 1, 0)) if led else ("size", size)


def is_count(value: Any) -> TypeGuard[int]:
    """Whether the value is a number of pods as Kubernetes takes it."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and 0 <= value <= LARGEST_COUNT
