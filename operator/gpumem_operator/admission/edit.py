"""A plan and a raw pod -> the operations of a JSON patch.

Each field that a plan can touch is computed and compared on its own: that costs a hundredth of a
diff over the whole pod, and a pod that is right already gets no operation at all.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.admission.node_affinity import affinity_with
from gpumem_operator.admission.plan import ContainerPlan, PodPlan
from gpumem_operator.admission.verdict import Operation
from gpumem_operator.api.quantity import format_bytes
from gpumem_operator.injection.container import USER_FIELDS
from gpumem_operator.injection.paths import is_within

_KEPT_PATHS: Final = frozenset({names.SHIM_PATH, names.RUN_PATH})
"""Where we mount something, nothing of the author's may lie over it or in it."""
_STALE_LABELS: Final = (names.MANAGED_LABEL, names.POLICY_LABEL, names.RESERVE_LABEL)
_STALE_ANNOTATIONS: Final = (
    names.SUMMARY_ANNOTATION,
    names.POLICY_HASH_ANNOTATION,
    names.NODE_AFFINITY_ANNOTATION,
    names.FENCE_ANNOTATION,
)


def operations(pod: Mapping[str, Any], plan: PodPlan, memory_resource: str) -> list[Operation]:
    """What has to change so that the pod is as the plan says; empty where it is already."""
    spec = pod.get("spec") or {}
    return [
        *_metadata(pod.get("metadata"), plan),
        *_containers(plan, memory_resource),
        *_init_containers(spec, plan, memory_resource),
        *_volumes(spec, plan),
        *_share_process_namespace(spec, plan),
        *_affinity(pod, plan),
        *_gate(spec, plan),
    ]


def _metadata(present: Mapping[str, Any] | None, plan: PodPlan) -> Iterator[Operation]:
    if present is None:
        yield _add("/metadata", {})
    metadata = present or {}
    labels, annotations = metadata.get("labels"), metadata.get("annotations")
    yield from _map("/metadata/labels", labels, plan.labels, _STALE_LABELS)
    yield from _map("/metadata/annotations", annotations, plan.annotations, _STALE_ANNOTATIONS)


def _map(
    path: str,
    present: Mapping[str, str] | None,
    wanted: Mapping[str, str],
    stale: Sequence[str],
) -> Iterator[Operation]:
    """Sets keys one by one; those in `stale` go unless they are wanted."""
    if present is None:
        if wanted:
            yield _add(path, dict(wanted))
        return
    for key, value in wanted.items():
        if present.get(key) != value:
            yield _add(f"{path}/{_escape(key)}", value)
    for key in stale:
        if key in present and key not in wanted:
            yield {"op": "remove", "path": f"{path}/{_escape(key)}"}


def _containers(plan: PodPlan, memory_resource: str) -> Iterator[Operation]:
    for container in plan.containers:
        if container.container.kind != "containers":
            continue
        raw = container.container.raw
        path = f"/spec/containers/{container.container.index}"
        for key, value in changed_fields(raw, container, memory_resource).items():
            yield _add(f"{path}/{key}", value)


def _init_containers(
    spec: Mapping[str, Any], plan: PodPlan, memory_resource: str
) -> Iterator[Operation]:
    """The whole list where anything in it changes: ours come first, whatever was there."""
    present: Sequence[Mapping[str, Any]] = spec.get("initContainers") or []
    by_name = {raw.get("name"): raw for raw in present}
    wanted = [_as_admitted(ours, by_name.get(ours["name"])) for ours in plan.init_containers]
    for container in plan.containers:
        if container.container.kind == "initContainers":
            raw = container.container.raw
            change = changed_fields(raw, container, memory_resource)
            wanted.append({**raw, **change} if change else raw)
    if wanted != list(present):
        yield _add("/spec/initContainers", wanted)


def _as_admitted(ours: Mapping[str, Any], present: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Our container, with what the API server's own admission decides for all containers.

    AlwaysPullImages refuses any other policy in the end, and a LimitRange fills in storage. Where
    the user is left to the cluster, OpenShift writes the one of the namespace into each container.
    """
    if present is None:
        return ours
    resources = {
        kind: {**amounts, **_storage((present.get("resources") or {}).get(kind))}
        for kind, amounts in ours["resources"].items()
    }
    pulled = present.get("imagePullPolicy") == "Always"
    policy = "Always" if pulled else ours["imagePullPolicy"]
    context = {**_user(present.get("securityContext")), **ours["securityContext"]}
    return {
        **ours,
        "resources": resources,
        "imagePullPolicy": policy,
        "securityContext": context,
    }


def _user(context: Mapping[str, Any] | None) -> dict[str, Any]:
    return {key: value for key, value in (context or {}).items() if key in USER_FIELDS and value}


def _storage(amounts: Mapping[str, Any] | None) -> dict[str, Any]:
    return {key: value for key, value in (amounts or {}).items() if key == "ephemeral-storage"}


def changed_fields(
    raw: Mapping[str, Any], plan: ContainerPlan, memory_resource: str
) -> dict[str, Any]:
    """Fields of one container that differ from the plan, with the values that they get."""
    changed: dict[str, Any] = {}
    if plan.env is not None:
        changed["env"] = plan.env
    mounts = raw.get("volumeMounts") or []
    mounted = _mounts(mounts, plan.mounts)
    if mounted != mounts:
        changed["volumeMounts"] = mounted
    if plan.memory_resource_bytes is not None or plan.drops_memory_resource:
        resources = _filled(raw, memory_resource, plan.memory_resource_bytes)
        if resources != raw.get("resources"):
            changed["resources"] = resources
    return changed


def _mounts(
    present: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Ours stay where they are if they are right; anything else in our paths goes."""
    paths = _KEPT_PATHS & {mount["mountPath"] for mount in wanted}
    kept = [
        mount
        for mount in present
        if mount in wanted
        or not (
            mount.get("name") in names.OUR_VOLUMES
            or any(is_within(mount.get("mountPath") or "", path) for path in paths)
        )
    ]
    return kept + [mount for mount in wanted if mount not in kept]


def _filled(raw: Mapping[str, Any], memory_resource: str, amount: int | None) -> dict[str, Any]:
    """The resources with this much of the memory resource; without it where there is no amount."""
    resources = dict(raw.get("resources") or {})
    for kind in ("limits", "requests"):
        amounts = dict(resources.get(kind) or {})
        if amount is None:
            amounts.pop(memory_resource, None)
        else:
            amounts[memory_resource] = format_bytes(amount)
        if amounts or kind in resources:
            resources[kind] = amounts
    return resources


def _volumes(spec: Mapping[str, Any], plan: PodPlan) -> Iterator[Operation]:
    present: Sequence[Mapping[str, Any]] = spec.get("volumes") or []
    ours = {volume["name"]: volume for volume in plan.volumes}
    kept = [
        volume
        for volume in present
        if volume.get("name") not in names.OUR_VOLUMES or ours.get(volume["name"]) == volume
    ]
    missing = [volume for volume in plan.volumes if volume not in kept]
    if len(kept) != len(present):
        yield _add("/spec/volumes", [*kept, *missing])
    elif missing and not present:
        yield _add("/spec/volumes", missing)
    else:
        yield from (_add("/spec/volumes/-", volume) for volume in missing)


def _share_process_namespace(spec: Mapping[str, Any], plan: PodPlan) -> Iterator[Operation]:
    present = spec.get("shareProcessNamespace")
    if plan.share_process_namespace and not present:
        yield _add("/spec/shareProcessNamespace", True)
    elif plan.share_process_namespace is False and present:
        yield {"op": "remove", "path": "/spec/shareProcessNamespace"}


def _affinity(pod: Mapping[str, Any], plan: PodPlan) -> Iterator[Operation]:
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    before = annotations.get(names.NODE_AFFINITY_ANNOTATION)
    if plan.node_label is None and before is None:
        return
    present = (pod.get("spec") or {}).get("affinity") or None
    wanted = affinity_with(present, added_before=before, label=plan.node_label)
    if wanted is None and present is not None:
        yield {"op": "remove", "path": "/spec/affinity"}
    elif wanted != present:
        yield _add("/spec/affinity", wanted)


def _gate(spec: Mapping[str, Any], plan: PodPlan) -> Iterator[Operation]:
    gates: Sequence[Mapping[str, Any]] = spec.get("schedulingGates") or []
    ours = [place for place, gate in enumerate(gates) if gate.get("name") == names.QUOTA_GATE]
    if plan.waits and not ours:
        gate = {"name": names.QUOTA_GATE}
        path = "/spec/schedulingGates"
        yield _add(f"{path}/-", gate) if gates else _add(path, [gate])
    elif not plan.waits:
        for place in reversed(ours):
            yield {"op": "remove", "path": f"/spec/schedulingGates/{place}"}


def _add(path: str, value: Any) -> Operation:
    """`add` replaces a member that is there already."""
    return {"op": "add", "path": path, "value": value}


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
