"""`kubectl gpumem tenants`: what each tenant may take, is charged and really holds."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from gpumem_operator.api.count import count
from gpumem_operator.api.quantity import show_bytes
from gpumem_operator.cli.cells import Row, amount, held, known, limits
from gpumem_operator.cli.leader import Release, ask_tenants, why_not_asked, why_unknown
from gpumem_operator.cli.rights import who
from gpumem_operator.cli.screen import Shown, line, show, table
from gpumem_operator.cli.stored_tenants import stored_document
from gpumem_operator.kube.api import Api
from gpumem_operator.kube.errors import ApiError, NotFound, Unreached
from gpumem_operator.kube.resources import NAMESPACES, TENANTS
from gpumem_operator.ledger.obstacle_words import held_back, held_of

_HEAD: Final = (
    ["TENANT", "NAMESPACES", "LIMIT", "CHARGED", "LEFT", "USED", "QUEUED", "LARGEST CHARGES"]
)  # fmt: skip
_POD_HEAD: Final = ["NAMESPACE", "POD", "CHARGED", "USED", "LIMIT", "HELD BY", "NODE"]
_MOST_NAMED: Final = 3
_PAST_IT: Final = {
    "Queue": "pods wait (Queue)",
    "Reject": "pods are refused (Reject)",
    "Warn": "pods are let in and reported (Warn)",
}


async def look(api: Api, release: Release, *, tenant: str = "") -> Shown:
    """Ask the leader, else what is stored. Raises ApiError where neither may be read."""
    try:
        shown = Shown(await ask_tenants(api, release, tenant=tenant))
    except Unreached:
        raise
    except ApiError as error:
        note = why_not_asked(error, release)
        stored = await _without_leader(api, release, tenant, unasked=why_unknown(error))
        shown = Shown(stored, note)
    if tenant and not shown.document["tenants"]:
        raise NotFound(f"tenant {tenant}", "there is none of this name", 404)
    return shown


async def _without_leader(
    api: Api, release: Release, tenant: str, *, unasked: str
) -> dict[str, Any]:
    try:
        tenants = (await api.get(TENANTS.path())).get("items") or []
    except ApiError as error:
        if error.status not in (401, 403):
            raise
        text = (
            f"{who(error)} may not read them ({error.status}): have ClusterRole view bound by a"
            f" ClusterRoleBinding, since tenants are cluster-scoped, or Role {release.name}-reader"
            f" in namespace {release.namespace}"
        )
        raise ApiError("tenants", text, error.status) from None
    try:
        namespaces = (await api.get(NAMESPACES.path())).get("items") or []
    except ApiError:
        namespaces = None
    return stored_document(tenants, namespaces, unasked=unasked, tenant=tenant)


async def run(api: Api, release: Release, *, tenant: str, watch: bool, as_json: bool) -> None:
    """Print all, or one in detail. Raises ApiError."""
    await show(
        lambda: look(api, release, tenant=tenant),
        (lambda document: detail(document, tenant)) if tenant else overview,
        watch=watch,
        as_json=as_json,
    )


def overview(document: Mapping[str, Any]) -> RenderableType:
    """A row for each tenant."""
    tenants = document["tenants"]
    if not tenants:
        return Text("There is no tenant: no namespace has a quota of GPU memory.")
    return table(_HEAD, map(_tenant, tenants))


def detail(document: Mapping[str, Any], tenant: str) -> RenderableType:
    """One tenant: what is known of it line by line, and its pods."""
    (row,) = document["tenants"]
    lines = [line(text) for text in _lines(row)]
    pods = document["pods"]
    if not pods:
        return Group(*lines, "", Text("No GPU pod of it runs or waits."))
    return Group(*lines, "", table(_POD_HEAD, (_pod(pod, tenant) for pod in pods)))


def _tenant(row: Row) -> list[str]:
    return [
        row["name"],
        _first(row["namespaces"]),
        known(row["limitBytes"]),
        known(row["chargedBytes"]),
        _left(row),
        _used(row),
        _queued(row) or "-",
        _first([_top_pod(pod, row) for pod in row["topPods"]], of=row["chargedPods"]),
    ]


def _first(named: Sequence[str] | None, *, of: int | None = None) -> str:
    """The first three, and how many more there are."""
    if named is None:
        return "unknown"
    more = (len(named) if of is None else of) - _MOST_NAMED
    shown = ", ".join(named[:_MOST_NAMED]) or "-"
    return f"{shown} +{more}" if more > 0 else shown


def _left(row: Row, *, wide: bool = False) -> str:
    """With what of it is held for pods that have waited for long: others do not get it."""
    limit, charged = row["limitBytes"], row["chargedBytes"]
    if limit is None or charged is None:
        return "unknown"
    left = limit - charged
    if left < 0:
        return f"-{show_bytes(-left)}"
    held = row.get("heldBytes") or 0
    if wide:
        return f"{show_bytes(left)}{held_back(left, held)}"
    amount = held_of(left, held)
    return f"{show_bytes(left)}, {amount} held" if amount else show_bytes(left)


def _used(row: Row) -> str:
    unknown = row["unknownPods"]
    if row["usedBytes"] is None:
        return f"unknown: {count(unknown, 'pod')}" if unknown else "unknown"
    used = show_bytes(row["usedBytes"])
    return f"{used} + {count(unknown, 'unknown pod')}" if unknown else used


def _queued(row: Row) -> str:
    """Empty where nothing waits, as far as that is known."""
    number = row["queuedPods"]
    return f"{known(row['queuedBytes'])} in {count(number, 'pod')}" if number else ""


def _top_pod(pod: Row, row: Row) -> str:
    several = len(row["namespaces"] or ("", "")) > 1
    name = f"{pod['namespace']}/{pod['name']}" if several else pod["name"]
    return f"{name} {known(pod.get('chargedBytes'))}"


def _lines(row: Row) -> Iterator[str]:
    yield f"tenant {row['name']}"
    namespaces = row["namespaces"]
    shown = "unknown" if namespaces is None else ", ".join(namespaces) or "none"
    yield f"  namespaces: {shown}"
    for namespace, others in row["shared"].items():
        yield f"    {namespace} is also in {', '.join(others)}: its pods are charged to each"
    if row["limitBytes"] is None:
        yield "  limit: unknown, its spec can not be read"
    else:
        whole = show_bytes(row["wholeGPUBytes"])
        past = _PAST_IT.get(row["onExceeded"], row["onExceeded"])
        yield f"  limit: {known(row['limitBytes'])}; a whole GPU counts as {whole}; past it: {past}"
    yield f"  charged: {known(row['chargedBytes'])}; left: {_left(row, wide=True)}"
    yield f"  used: {_used(row)}"
    yield f"  queued: {_queued(row) or 'nothing'}"
    for one in row["conditions"]:
        yield f"  {one['type']}: {one['status']} ({one['reason']}): {one['message']}"


def _pod(pod: Row, tenant: str) -> list[str]:
    return [
        pod["namespace"],
        pod["name"],
        _charge(pod, tenant),
        amount(pod),
        limits(pod.get("containers") or ()),
        held(pod),
        pod.get("node") or "-",
    ]


def _charge(pod: Row, tenant: str) -> str:
    for one in pod.get("queued") or ():
        if one["tenant"] == tenant:
            return f"waits for {known(one['queuedBytes'])}"
    charges = {one["tenant"]: one["chargedBytes"] for one in pod["charges"]}
    return known(charges.get(tenant))
