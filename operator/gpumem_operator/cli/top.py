"""`kubectl gpumem top`: who holds how much GPU memory, the largest first."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from gpumem_operator import names
from gpumem_operator.api.quantity import show_bytes
from gpumem_operator.cli.leader import Release, ask, why_not_asked
from gpumem_operator.kube.api import Api, ApiError
from gpumem_operator.kube.resources import PODS, POLICIES

REFRESH_SECONDS: Final = 5.0
_LABELLED: Final = {"labelSelector": names.MANAGED_LABEL}


@dataclass(frozen=True)
class Shown:
    """What one look found."""

    document: Mapping[str, Any]
    note: str = ""
    """Why the leader did not answer; empty where it did."""


async def look(api: Api, release: Release, *, namespace: str) -> Shown:
    """Ask the leader, else what everyone may read. `namespace` may be empty: all."""
    try:
        return Shown(await ask(api, release, namespace=namespace))
    except ApiError as error:
        note = why_not_asked(error, release)
    return Shown(await _without_leader(api, namespace), note)


async def _without_leader(api: Api, namespace: str) -> dict[str, Any]:
    """Pods as they are stored, and the sums in the statuses of policies."""
    pods = await api.get(PODS.path(namespace=namespace), query=_LABELLED)
    policies = await api.get(POLICIES.path(namespace=namespace))
    return {
        "pods": [_stored_pod(pod) for pod in pods.get("items") or ()],
        "policies": [
            {
                "namespace": policy["metadata"]["namespace"],
                "name": policy["metadata"]["name"],
                "memory": (policy.get("status") or {}).get("memory") or {},
            }
            for policy in policies.get("items") or ()
        ],
        "cards": [],
    }


def _stored_pod(pod: Mapping[str, Any]) -> dict[str, Any]:
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    return {
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "node": spec.get("nodeName"),
        "policy": (metadata.get("labels") or {}).get(names.POLICY_LABEL),
        "usedBytes": None,
        "unknown": "NotAsked",
    }


async def run(api: Api, release: Release, *, namespace: str, watch: bool, as_json: bool) -> None:
    """Print once, or again and again until interrupted. Raises ApiError for an unread cluster."""
    if as_json:
        shown = await look(api, release, namespace=namespace)
        _say(shown.note)
        typer.echo(json.dumps(dict(shown.document) | {"note": shown.note or None}, indent=2))
        return
    console = Console()
    if not watch:
        shown = await look(api, release, namespace=namespace)
        _say(shown.note)
        console.print(picture(shown.document, all_namespaces=not namespace))
        return
    with Live(console=console, screen=console.is_terminal, auto_refresh=False) as live:
        while True:
            shown = await look(api, release, namespace=namespace)
            tables = picture(shown.document, all_namespaces=not namespace)
            live.update(Group(Text(shown.note), tables), refresh=True)
            await asyncio.sleep(REFRESH_SECONDS)


def _say(note: str) -> None:
    if note:
        typer.echo(f"note: {note}", err=True)


def sort_key(pod: Mapping[str, Any]) -> tuple[bool, int, str, str]:
    """The most used first; what is not known last, by name."""
    used = pod.get("usedBytes")
    return (used is None, -(used or 0), pod["namespace"], pod["name"])


def picture(document: Mapping[str, Any], *, all_namespaces: bool) -> RenderableType:
    """Tables of pods, of policies where that is all there is, and of cards."""
    tables: list[RenderableType] = [_pods(document["pods"], all_namespaces)]
    if policies := document.get("policies"):
        tables += ["", _policies(policies)]
    if all_namespaces and document["cards"]:
        tables += ["", _cards(document["cards"])]
    return Group(*tables)


def _pods(pods: Iterable[Mapping[str, Any]], all_namespaces: bool) -> RenderableType:
    rows = sorted(pods, key=sort_key)
    if not rows:
        return Text("No GPU pod runs or waits here.")
    head = ["POD", "USED", "LIMIT", "HELD BY", "NODE", "POLICY", "TENANT"]
    table = _table(["NAMESPACE", *head] if all_namespaces else head)
    for pod in rows:
        cells = [
            pod["name"],
            amount(pod),
            limits(pod.get("containers") or ()),
            _held(pod),
            pod.get("node") or "-",
            pod.get("policy") or "-",
            ",".join(one["tenant"] for one in pod.get("charges") or ()) or "-",
        ]
        table.add_row(*map(Text, [pod["namespace"], *cells] if all_namespaces else cells))
    return table


def amount(row: Mapping[str, Any]) -> str:
    """What is used, or why that is not known."""
    used = row.get("usedBytes")
    return show_bytes(used) if used is not None else f"unknown: {row.get('unknown')}"


def limits(containers: Sequence[Mapping[str, Any]]) -> str:
    """Limits per GPU with the number of GPUs: `8Gi`, `2x8Gi`; `none` for a container without."""
    shown = []
    for one in containers:
        limit, gpus = one.get("limitBytes"), one.get("gpus", 1)
        text = "none" if limit is None else show_bytes(limit)
        shown.append(text if gpus == 1 else f"{gpus}x{text}")
    return " + ".join(shown) or "-"


def _held(pod: Mapping[str, Any]) -> str:
    kind, reason = pod.get("enforcedBy"), pod.get("enforcedReason")
    return f"{kind}: {reason}" if kind and reason else kind or "-"


def _policies(policies: Iterable[Mapping[str, Any]]) -> Table:
    table = _table(["POLICY", "DECLARED", "USED", "UNKNOWN PODS"])
    for policy in policies:
        memory = policy["memory"]
        cells = [memory.get("declaredBytes"), memory.get("usedBytes")]
        shown = ["unknown" if cell is None else show_bytes(cell) for cell in cells]
        name = f"{policy['namespace']}/{policy['name']}"
        table.add_row(*map(Text, [name, *shown, str(memory.get("unknownPods", "unknown"))]))
    return table


def _cards(cards: Iterable[Mapping[str, Any]]) -> Table:
    parts = ("total", "reserved", "attributed", "unattributed", "free")
    table = _table(["NODE", "GPU", "MODEL", "TOTAL", "RESERVED", "PODS", "OTHERS", "FREE"])
    for card in cards:
        amounts = [card[f"{part}Bytes"] for part in parts]
        if None in amounts:
            shown = [f"unknown: {card['unknown']}", "", "", "", ""]
        else:
            shown = [show_bytes(one) for one in amounts]
        table.add_row(*map(Text, [card["node"], card["gpu"], card["model"], *shown]))
    return table


def _table(heads: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in heads:
        table.add_column(head, no_wrap=True)
    return table
