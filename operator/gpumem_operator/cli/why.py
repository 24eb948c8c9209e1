"""`kubectl gpumem why KIND/NAME`: all that is known about a pod, a workload's pods, a policy or a
tenant."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import typer

from gpumem_operator import names
from gpumem_operator.api.count import count
from gpumem_operator.api.records import (
    NamespaceRecord,
    namespace_record,
    policy_record,
    tenant_record,
)
from gpumem_operator.api.selector import LabelSelector
from gpumem_operator.cli import tenants
from gpumem_operator.cli.event_lines import event_line, is_refusal, refusals, time_of
from gpumem_operator.cli.explain import Known
from gpumem_operator.cli.leader import Release
from gpumem_operator.cli.leader_usage import Usage, usage_in
from gpumem_operator.cli.overuse_lines import recent_actions
from gpumem_operator.cli.rights import forbidden, may_not_read
from gpumem_operator.cli.stored_policy import policy_lines
from gpumem_operator.cli.target import Target
from gpumem_operator.cli.terminal import remark, say
from gpumem_operator.cli.why_document import event_rows, pod_document, policy_document
from gpumem_operator.cli.workload_line import workload_line
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
from gpumem_operator.ledger.node_enforcers import ENFORCER_LABELS
from gpumem_operator.reports.document import DOCUMENT_VERSION

_MOST_PODS: Final = 50
_NONE: Final = "there is none of this name. Look into another namespace with -n"
_NEITHER_POD_NOR_EVENT: Final = (
    "there is none now, and no event of an earlier one. Look into another namespace with -n. A pod"
    " that was refused is stored nowhere: whoever created it was told why"
)


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
    now = datetime.now(UTC)
    if target.kind == names.POLICY_KIND:
        story = await _tell_of_policy(api, namespace, target.name)
    else:
        story = await tell(api, release, namespace=namespace, target=target, now=now)
    if as_json:
        head = {"schemaVersion": DOCUMENT_VERSION, "time": f"{now:%Y-%m-%dT%H:%M:%SZ}"}
        document = head | dict(story.document) | {"note": "; ".join(story.notes) or None}
        typer.echo(json.dumps(document, indent=2))
        return
    for line in story.lines:
        say(line)
    for note in story.notes:
        remark(f"note: {note}")


async def tell(
    api: Api, release: Release, *, namespace: str, target: Target, now: datetime
) -> Story:
    """Everything that can be found out."""
    title = f"{target.kind} {namespace}/{target.name}"
    try:
        pods, subjects = await _pods(api, namespace, target)
    except NotFound:
        raise NotFound(title, _NONE, 404) from None
    except ApiError as error:
        if forbidden(error):
            what = f"{target.kind.lower()} {namespace}/{target.name}"
            raise may_not_read(what, error, namespace=namespace) from None
        raise
    known, notes = await _known(api, namespace)
    known = replace(known, now=now)
    events = [
        event
        for kind, name, uid in subjects
        for event in await _events(api, namespace, kind=kind, name=name, uid=uid)
    ]
    if not pods and not events and target.kind == "Pod":
        raise NotFound(f"pod {namespace}/{target.name}", _NEITHER_POD_NOR_EVENT, 404)
    refused = refusals(events)
    usage = await usage_in(api, release, namespace, notes) if pods else Usage({}, {})
    rows = []
    for pod in pods[:_MOST_PODS]:
        metadata = pod["metadata"]
        own = await _events(api, namespace, kind="Pod", name=metadata["name"], uid=metadata["uid"])
        about = replace(
            known,
            usage=usage.of(metadata["uid"]),
            others=tuple(usage.others.get(metadata["uid"], ())),
            events=tuple(_ours(own)),
        )
        nodes, unlabelled = await _nodes(api, pod)
        about = replace(about, unlabelled=unlabelled)
        rows.append(pod_document(pod, about, about_nodes=nodes, unasked=usage.unknown))
    lines = _head(title, target, rows, len(pods))
    lines += [one.line(now) for one in refused]
    lines += [line for row in rows for line in row["lines"]]
    if not pods:
        # What was refused is told above, once.
        others = sorted((one for one in events if not is_refusal(one)), key=time_of)
        lines += [f"  {event_line(one, now)}" for one in others]
    if len(pods) > _MOST_PODS:
        left = len(pods) - _MOST_PODS
        notes.append(f"{count(left, 'more pod')} {'is' if left == 1 else 'are'} not shown")
    document = {"pods": rows, "refused": [one.message for one in refused]}
    return Story(lines, document if pods else document | {"events": event_rows(events)}, notes)


def _head(title: str, target: Target, rows: Sequence[Mapping[str, Any]], number: int) -> list[str]:
    """A line about the whole, where it is not a pod that is told of by itself."""
    if target.kind == "Pod":
        return [] if rows else [f"pod {title.partition(' ')[2]} is gone. Its last events:"]
    return [workload_line(title, rows, number)]


async def _tell_of_policy(api: Api, namespace: str, name: str) -> Story:
    try:
        policy = await api.get(POLICIES.path(name, namespace=namespace))
    except NotFound:
        raise NotFound(f"policy {namespace}/{name}", _NONE, 404) from None
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
        actions=recent_actions((policies or {}).get("items") or ()),
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


async def _nodes(api: Api, pod: Mapping[str, Any]) -> tuple[list[str], str]:
    """What admission required of the node, and the label of it that no node has, if so."""
    label = (pod["metadata"].get("annotations") or {}).get(names.NODE_AFFINITY_ANNOTATION)
    if label not in ENFORCER_LABELS.values():
        return [], ""
    text = f"  nodes: admission lets it go only to those labelled {label}=true, which can hold its"
    query = {"labelSelector": f"{label}=true", "limit": "1"}
    try:
        found = (await api.get(NODES.path(), query=query)).get("items")
    except ApiError:
        unread = "whether there are any can not be said: nodes may not be read"
        return [f"{text} limit; {unread}"], ""
    waits = "" if found else "; no node has this label, so no node can take the pod"
    line = f"{text} limit (minimumEnforcer of its policy, or the chart's driverLimits){waits}"
    return [line], "" if found else str(label)


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
    """Events about GPU memory, the oldest first: ours, and the scheduler's."""
    return [
        event
        for event in sorted(events, key=time_of)
        if names.GROUP in str(event.get("message"))
        or (event.get("source") or {}).get("component", "").startswith("gpumem")
        or event.get("reason") in ("FailedScheduling", "Evicted")
    ]
