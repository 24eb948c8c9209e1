"""`kubectl gpumem why KIND/NAME`: all that is known about a pod, a workload's pods, a policy or a
tenant."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
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
from gpumem_operator.cli import tenants
from gpumem_operator.cli.explain import Known, refusals
from gpumem_operator.cli.leader import Release
from gpumem_operator.cli.leader_usage import usage_in
from gpumem_operator.cli.rights import forbidden, may_not_read
from gpumem_operator.cli.stored_policy import policy_lines
from gpumem_operator.cli.terminal import remark, say
from gpumem_operator.cli.why_document import event_rows, pod_document, policy_document
from gpumem_operator.kube.api import Api
from gpumem_operator.kube.errors import ApiError, NotFound
from gpumem_operator.kube.resources import (
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    POLICIES,
    TENANTS,
    Resource,
)

_MOST_PODS: Final = 50
_NEITHER_POD_NOR_EVENT: Final = (
    "there is none now, and no event of an earlier one. Look into another namespace with -n. A pod"
    " that was refused is stored nowhere: whoever created it was told why"
)
_APPS: Final = {"deployment": "deploy", "replicaset": "rs", "statefulset": "sts", "daemonset": "ds"}
_OBJECTS: Final = {
    **dict.fromkeys(("gmp", "policy", "policies"), names.POLICY_KIND),
    **dict.fromkeys((names.POLICY_KIND.lower(), names.POLICY_PLURAL), names.POLICY_KIND),
    **dict.fromkeys(("gmt", "tenant", "tenants"), names.TENANT_KIND),
    **dict.fromkeys((names.TENANT_KIND.lower(), names.TENANT_PLURAL), names.TENANT_KIND),
}
"""Our own kinds, as kubectl and as people name them."""


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
    if slash and name and (ours := _OBJECTS.get(kind)):
        return Target(ours, POLICIES if ours == names.POLICY_KIND else TENANTS, name)
    long = {"po": "pod", **{short: kind for kind, short in _APPS.items()}}
    kind = long.get(kind, kind if kind in _PASCAL else kind.removesuffix("s"))
    if not slash or not name or kind not in _PASCAL:
        return None
    group = "" if kind == "pod" else "batch" if kind == "job" else "apps"
    return Target(_PASCAL[kind], Resource(group, "v1", f"{kind}s"), name)


def misunderstood(text: str) -> str:
    """Why `text` is no target, and what was probably meant."""
    kind, slash, name = text.partition("/")
    if not slash or not name:
        return f"{text!r} names no kind: give KIND/NAME, like pod/{kind or 'train-0'}"
    known = (*_PASCAL, *_OBJECTS)
    near = get_close_matches(kind.lower(), known, n=1, cutoff=0.7)
    hint = f": did you mean {near[0]}/{name}?" if near else ""
    return f"kind {kind} is not known here{hint or f': known are {_KINDS}'}"


_KINDS: Final = f"{', '.join(_PASCAL)}, gmp (policy) and gmt (tenant)"


class Story(NamedTuple):
    """What is printed."""

    lines: list[str]
    document: Mapping[str, Any]
    """The same for programs, without the notes."""
    notes: list[str]


async def run(api: Api, release: Release, *, namespace: str, target: Target, as_json: bool) -> None:
    """Print what is known. Raises ApiError where not even the pods may be read."""
    if target.kind == names.TENANT_KIND:
        await tenants.run(api, release, tenant=target.name, watch=False, as_json=as_json)
        return
    if target.kind == names.POLICY_KIND:
        story = await _tell_of_policy(api, namespace, target.name)
    else:
        story = await tell(api, release, namespace=namespace, target=target)
    if as_json:
        document = dict(story.document) | {"note": "; ".join(story.notes) or None}
        typer.echo(json.dumps(document, indent=2))
        return
    for line in story.lines:
        say(line)
    for note in story.notes:
        remark(f"note: {note}")


async def tell(api: Api, release: Release, *, namespace: str, target: Target) -> Story:
    """Everything that can be found out."""
    try:
        pods, subjects = await _pods(api, namespace, target)
    except ApiError as error:
        if forbidden(error):
            what = f"{target.kind.lower()} {namespace}/{target.name}"
            raise may_not_read(what, error, namespace=namespace) from None
        raise
    known, notes = await _known(api, namespace)
    events = [
        event
        for kind, name, uid in subjects
        for event in await _events(api, namespace, kind=kind, name=name, uid=uid)
    ]
    if not pods and not events and target.kind == "Pod":
        raise NotFound(f"pod {namespace}/{target.name}", _NEITHER_POD_NOR_EVENT, 404)
    refused = refusals(events)
    usage = await usage_in(api, release, namespace, notes) if pods else None
    rows = []
    for pod in pods[:_MOST_PODS]:
        metadata = pod["metadata"]
        own = await _events(api, namespace, kind="Pod", name=metadata["name"], uid=metadata["uid"])
        about = replace(
            known,
            usage=None if usage is None else usage.pods.get(metadata["uid"], {}),
            others=tuple(usage.others.get(metadata["uid"], ())) if usage else (),
            events=tuple(_ours(own)),
        )
        rows.append(pod_document(pod, about, about_nodes=await _nodes(api, pod)))
    lines = [] if pods else [f"{target.kind} {namespace}/{target.name} has no pod now."]
    lines += [f"refused: {message}" for message in refused]
    lines += [line for row in rows for line in row["lines"]]
    if not pods:
        lines += [f"  event: {one.get('reason')}: {one.get('message')}" for one in events]
    if len(pods) > _MOST_PODS:
        notes.append(f"{len(pods) - _MOST_PODS} more pods are not shown")
    document = {"pods": rows, "refused": refused}
    return Story(lines, document if pods else document | {"events": event_rows(events)}, notes)


async def _tell_of_policy(api: Api, namespace: str, name: str) -> Story:
    try:
        policy = await api.get(POLICIES.path(name, namespace=namespace))
    except ApiError as error:
        if forbidden(error):
            raise may_not_read(f"policy {namespace}/{name}", error, namespace=namespace) from None
        raise
    lines = policy_lines(policy)
    return Story(lines, {"policies": [policy_document(policy, lines)]}, [])


async def _pods(
    api: Api, namespace: str, target: Target
) -> tuple[list[Any], list[tuple[str, str, str]]]:
    """The target's pods, and whose events tell about pods that are not there."""
    path = target.resource.path(target.name, namespace=namespace)
    try:
        found = await api.get(path)
    except NotFound:
        if target.kind != "Pod":
            raise
        return [], [(target.kind, target.name, "")]
    subjects = [(target.kind, target.name, found["metadata"]["uid"])]
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
                subjects.append(("ReplicaSet", one["metadata"]["name"], one["metadata"]["uid"]))
    return pods, subjects


async def _known(api: Api, namespace: str) -> tuple[Known, list[str]]:
    """What decides about the pods of the namespace, as far as it may be read."""
    notes: list[str] = []
    hidden: list[str] = []
    policies = await _try(api, POLICIES.path(namespace=namespace), "policies", notes, hidden)
    quotas = await _try(api, TENANTS.path(), "tenants", notes, hidden)
    space = await _try(api, NAMESPACES.path(namespace), "the namespace's labels", notes, hidden)
    if hidden:
        notes.append(
            f"you may not read {' and '.join(hidden)}, so what follows from them is not shown: have"
            " ClusterRole view bound by a ClusterRoleBinding"
        )
    known = Known(
        policies=tuple(policy_record(raw) for raw in (policies or {}).get("items") or ()),
        namespace=namespace_record(space) if space else NamespaceRecord(namespace, {}),
        tenants=None
        if quotas is None
        else tuple(tenant_record(raw) for raw in quotas.get("items") or ()),
        tenant_statuses={
            raw["metadata"]["name"]: raw.get("status") or {}
            for raw in (quotas or {}).get("items") or ()
        },
    )
    return known, notes


async def _try(
    api: Api, path: str, what: str, notes: list[str], hidden: list[str]
) -> Mapping[str, Any] | None:
    """None with a note where it failed; `hidden` gets what may not be read."""
    try:
        return await api.get(path)
    except ApiError as error:
        if forbidden(error):
            hidden.append(what)
        else:
            notes.append(f"{what} could not be read: {error}")
        return None


async def _nodes(api: Api, pod: Mapping[str, Any]) -> list[str]:
    """What admission required of the node, and whether any node has it."""
    label = (pod["metadata"].get("annotations") or {}).get(names.NODE_AFFINITY_ANNOTATION)
    if not label:
        return []
    text = f"  nodes: admission lets it go only to those labelled {label}=true, which can hold its"
    query = {"labelSelector": f"{label}=true", "limit": "1"}
    try:
        found = (await api.get(NODES.path(), query=query)).get("items")
    except ApiError:
        return [f"{text} limit; whether there are any can not be said: nodes may not be read"]
    waits = "" if found else "; no node has this label, so no node can take the pod"
    return [f"{text} limit (minimumEnforcer of its policy, or the chart's driverLimits){waits}"]


async def _events(
    api: Api, namespace: str, *, kind: str, name: str, uid: str
) -> Sequence[Mapping[str, Any]]:
    """Of this very object, and not of an earlier one of the name, where `uid` is known."""
    selector = f"involvedObject.kind={kind},involvedObject.name={name}"
    query = {"fieldSelector": f"{selector},involvedObject.uid={uid}" if uid else selector}
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
