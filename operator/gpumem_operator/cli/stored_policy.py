"""A policy for people, from its stored object: what it asks for and how its pods do. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from gpumem_operator.api.count import count
from gpumem_operator.api.quantity import show_bytes
from gpumem_operator.api.records import PolicyRecord, policy_record
from gpumem_operator.cli.overuse_lines import MOST_ACTIONS, action_line, enforcement_in_words

Row = Mapping[str, Any]


def policy_lines(raw: Row) -> list[str]:
    """Lines for people, the first is a title."""
    record, status = policy_record(raw), raw.get("status") or {}
    return [
        f"policy {raw['metadata']['namespace']}/{record.name}",
        *_spec(record),
        *_pods(status),
        *_actions(raw),
        *_scaling(record, status),
        *(
            f"  {one['type']}: {one['status']} ({one['reason']}): {one['message']}"
            for one in status.get("conditions") or ()
        ),
    ]


def _spec(record: PolicyRecord) -> Iterator[str]:
    spec = record.spec
    if spec is None:
        yield f"  spec: it can not be read: {record.problem}"
        return
    labels = ", ".join(f"{key}={value}" for key, value in spec.selector.match_labels.items())
    more = len(spec.selector.match_expressions)
    parts = [*([labels] if labels else []), *([count(more, "expression")] if more else [])]
    yield f"  selects: {' and '.join(parts) or 'every GPU pod of its namespace'}"
    yield f"  mode: {spec.mode}; priority {spec.priority}"
    limits = spec.limits
    bounds = [("default", limits.default_bytes), ("min", limits.min_bytes)]
    bounds += [("max", limits.max_bytes), ("context reserve", limits.context_reserve_bytes)]
    shown = [f"{word} {_amount(amount, absent='none')}" for word, amount in bounds]
    yield f"  limits per GPU: {', '.join(shown)}"
    yield f"  overuse: {enforcement_in_words(spec)}"
    least = spec.enforcement.minimum_enforcer
    asks = "no" if least == "None" else f"at least {least}"
    yield f"  asks nodes for something that holds limits: {asks} (enforcement.minimumEnforcer)"


def _pods(status: Row) -> Iterator[str]:
    pods, memory = status.get("pods"), status.get("memory")
    if pods is None or memory is None:
        yield "  pods: not counted yet; the leader writes the status within 10 s"
        return
    yield (
        "  pods: "
        + ", ".join(f"{pods.get(k, 0)} {k}" for k in ("managed", "outdated"))
        + (f", {pods.get('unmanaged', 0)} that never went through admission")
    )
    declared = _amount(memory.get("declaredBytes"), absent="unknown")
    used = _amount(memory.get("usedBytes"), absent="unknown")
    unknown = memory.get("unknownPods")
    missing = f", of {count(unknown, 'pod')} it is unknown" if unknown else ""
    yield f"  declared: {declared}; used: {used}{missing}"
    yield f"  limits held by: {_held_by(status.get('enforcers') or {}, pods.get('managed', 0))}"


def _held_by(enforcers: Row, managed: int) -> str:
    """By what, of pods that have started; the others hold nothing that could be held."""
    counts = [f"{number} {kind}" for kind, number in enforcers.items() if number]
    waiting = managed - sum(enforcers.values())
    rest = [f"{waiting} not started"] if waiting > 0 else []
    return ", ".join([*counts, *rest]) or "there is no pod"


def _actions(raw: Row) -> Iterator[str]:
    """The latest things that were done, or would have been."""
    actions = (raw.get("status") or {}).get("recentActions") or ()
    for action in actions[:MOST_ACTIONS]:
        yield f"  recent action: {action_line(action, names_pod=True)}"
    if (earlier := len(actions) - MOST_ACTIONS) > 0:
        metadata = raw["metadata"]
        command = f"kubectl gpumem why gmp/{metadata['name']} -n {metadata['namespace']} -o json"
        yield f"  and {count(earlier, 'earlier action')}: {command} (recentActions)"


def _scaling(record: PolicyRecord, status: Row) -> Iterator[str]:
    """The last decision about each target, and the last change that was made."""
    told = {_target(entry): entry for entry in status.get("scaling") or ()}
    for wanted in record.spec.scaling if record.spec else ():
        title = _target({"targetRef": wanted.target_ref.model_dump(by_alias=True)})
        entry = told.get(title)
        if entry is None:
            yield f"  scales {title}: not decided yet; the leader does within 10 s"
            continue
        replicas = entry.get("currentReplicas")
        shown = "replicas unknown" if replicas is None else count(replicas, "replica")
        desired = entry.get("desiredReplicas")
        wanted_now = "" if desired in (None, replicas) else f", {desired} asked for"
        bounds = f"between {wanted.min_replicas} and {wanted.max_replicas}"
        yield f"  scales {title} {bounds}, by {wanted.metric}: {shown}{wanted_now}"
        yield f"    {entry['reason']}: {entry['message']}"
        if changes := entry.get("changes"):
            last = changes[-1]
            yield f"    last change, {last['time']}: {last.get('message')}"


def _target(entry: Row) -> str:
    reference = entry["targetRef"]
    return f"{reference.get('kind')} {reference.get('name')} ({reference.get('apiVersion')})"


def _amount(amount: int | None, *, absent: str) -> str:
    return absent if amount is None else show_bytes(amount)
