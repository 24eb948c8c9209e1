"""`kubectl gpumem why KIND/NAME`: everything that is known about a pod, or a workload's pods."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import typer

from gpumem_operator import names
from gpumem_operator.api.records import (
    NamespaceRecord,
    namespace_record,
    policy_record,
    tenant_record,
)
from gpumem_operator.api.selector import LabelSelector
from gpumem_operator.cli.explain import Known, explain_pod, refusals
from gpumem_operator.cli.leader import Release, ask, why_not_asked
from gpumem_operator.kube.api import Api
from gpumem_operator.kube.errors import ApiError, NotFound
from gpumem_operator.kube.resources import (
    EVENTS,
    NAMESPACES,
    PODS,
    POLICIES,
    TENANTS,
    Resource,
)

_MOST_PODS: Final = 50
_APPS: Final = {"deployment": "deploy", "replicaset": "rs", "statefulset": "sts", "daemonset": "ds"}
KINDS: Final = "deployment/train, replicaset/..., statefulset/..., daemonset/..., job/..."


class Target(NamedTuple):
    """What is asked about."""

    kind: str
    """As events name it, for example ReplicaSet."""
    resource: Resource
    name: str


_PASCAL: Final = {
    "pod": "Pod",
    "job": "Job",
    "deployment": "Deployment",
    "replicaset": "ReplicaSet",
    "statefulset": "StatefulSet",
    "daemonset": "DaemonSet",
}


def target_of(text: str) -> Target | None:
    """From KIND/NAME as kubectl takes it; None for anything else."""
    kind, slash, name = text.partition("/")
    kind = kind.lower()
    long = {"po": "pod", **{short: kind for kind, short in _APPS.items()}}
    kind = long.get(kind, kind if kind in _PASCAL else kind.removesuffix("s"))
    if not slash or not name or kind not in _PASCAL:
        return None
    group = "" if kind == "pod" else "batch" if kind == "job" else "apps"
    return Target(_PASCAL[kind], Resource(group, "v1", f"{kind}s"), name)


class Story(NamedTuple):
    """What is printed."""

    lines: list[str]
    notes: list[str]


async def run(api: Api, release: Release, *, namespace: str, target: Target, as_json: bool) -> None:
    """Print what is known. Raises ApiError where not even the pods may be read."""
    story = await tell(api, release, namespace=namespace, target=target)
    if as_json:
        typer.echo(json.dumps({"lines": story.lines, "notes": story.notes}, indent=2))
        return
    for line in story.lines:
        typer.echo(line)
    for note in story.notes:
        typer.echo(f"note: {note}", err=True)


async def tell(api: Api, release: Release, *, namespace: str, target: Target) -> Story:
    """Everything that can be found out."""
    pods, subjects = await _pods(api, namespace, target)
    known, notes = await _known(api, namespace)
    events = [
        event
        for kind, name in subjects
        for event in await _events(api, namespace, kind=kind, name=name)
    ]
    lines = []
    if not pods:
        lines.append(f"{target.kind} {namespace}/{target.name} has no pod now.")
    lines += [f"refused: {message}" for message in refusals(events)]
    if not pods and not events and target.kind == "Pod":
        lines.append(
            "  A pod that was refused is stored nowhere: whoever created it was told why. There are"
            " no events of it either."
        )
    usage = await _usage(api, release, namespace, notes) if pods else None
    for pod in pods[:_MOST_PODS]:
        metadata = pod["metadata"]
        own = await _events(api, namespace, kind="Pod", name=metadata["name"])
        row = None if usage is None else usage.get(metadata["uid"], {})
        lines += explain_pod(pod, replace(known, usage=row, events=tuple(_ours(own))))
    if not pods:
        lines += [f"  event: {one.get('reason')}: {one.get('message')}" for one in events]
    if len(pods) > _MOST_PODS:
        notes.append(f"{len(pods) - _MOST_PODS} more pods are not shown")
    return Story(lines, notes)


async def _pods(
    api: Api, namespace: str, target: Target
) -> tuple[list[Any], list[tuple[str, str]]]:
    """The target's pods, and whose events tell about pods that are not there."""
    path = target.resource.path(target.name, namespace=namespace)
    subjects = [(target.kind, target.name)]
    try:
        found = await api.get(path)
    except NotFound:
        if target.kind != "Pod":
            raise
        return [], subjects
    if target.kind == "Pod":
        return [found], subjects
    selector = LabelSelector.model_validate(
        (found.get("spec") or {}).get("selector") or {}, extra="ignore"
    )
    listed = (await api.get(PODS.path(namespace=namespace))).get("items") or []
    pods = [pod for pod in listed if selector.matches(pod["metadata"].get("labels") or {})]
    if target.kind == "Deployment":
        # Its pods are created, and refused, in the name of its ReplicaSets.
        sets = Resource("apps", "v1", "replicasets")
        for one in (await api.get(sets.path(namespace=namespace))).get("items") or ():
            owners = one["metadata"].get("ownerReferences") or ()
            if any(owner.get("uid") == found["metadata"]["uid"] for owner in owners):
                subjects.append(("ReplicaSet", one["metadata"]["name"]))
    return pods, subjects


async def _known(api: Api, namespace: str) -> tuple[Known, list[str]]:
    """What decides about the pods of the namespace, as far as it may be read."""
    notes: list[str] = []
    policies = await _try(api, POLICIES.path(namespace=namespace), "policies", notes)
    tenants = await _try(api, TENANTS.path(), "tenants", notes)
    space = await _try(api, NAMESPACES.path(namespace), "the namespace's labels", notes)
    known = Known(
        policies=tuple(policy_record(raw) for raw in (policies or {}).get("items") or ()),
        namespace=namespace_record(space) if space else NamespaceRecord(namespace, {}),
        tenants=None
        if tenants is None
        else tuple(tenant_record(raw) for raw in tenants.get("items") or ()),
    )
    return known, notes


async def _try(api: Api, path: str, what: str, notes: list[str]) -> Mapping[str, Any] | None:
    try:
        return await api.get(path)
    except ApiError as error:
        notes.append(f"{what} could not be read: {error}")
        return None


async def _usage(
    api: Api, release: Release, namespace: str, notes: list[str]
) -> Mapping[str, Any] | None:
    """The leader's rows of the namespace by pod uid; None where it did not answer."""
    try:
        document = await ask(api, release, namespace=namespace)
    except ApiError as error:
        notes.append(why_not_asked(error, release))
        return None
    return {row["uid"]: row for row in document["pods"]}


async def _events(api: Api, namespace: str, *, kind: str, name: str) -> Sequence[Mapping[str, Any]]:
    query = {"fieldSelector": f"involvedObject.kind={kind},involvedObject.name={name}"}
    try:
        found = await api.get(EVENTS.path(namespace=namespace), query=query)
    except ApiError:
        return ()
    return found.get("items") or ()


def _ours(events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Events about GPU memory: ours, and the scheduler's."""
    return [
        event
        for event in events
        if names.GROUP in str(event.get("message"))
        or (event.get("source") or {}).get("component", "").startswith("gpumem")
        or event.get("reason") in ("FailedScheduling", "Evicted")
    ]
