"""`kubectl gpumem top`: who holds how much GPU memory, the largest first."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from gpumem_operator import names
from gpumem_operator.api.quantity import show_bytes
from gpumem_operator.cli import others
from gpumem_operator.cli.cells import Row, amount, held, known, limits, waits
from gpumem_operator.cli.leader import Release, ask, why_not_asked, why_unknown
from gpumem_operator.cli.rights import forbidden, may_not_read
from gpumem_operator.cli.screen import Shown, show, table
from gpumem_operator.cli.stored_pods import stored_pod
from gpumem_operator.kube.api import Api
from gpumem_operator.kube.errors import ApiError, NotFound, Unreached
from gpumem_operator.kube.resources import NAMESPACES, PODS, POLICIES

_POLICY_HEAD: Final = ["POLICY", "DECLARED", "USED", "UNKNOWN PODS"]
_CARD_HEAD: Final = [
    "NODE", "GPU", "MODEL", "TOTAL", "RESERVED", "USED BY PODS", "USED BY OTHERS", "FREE",
]  # fmt: skip
_NO_CARDS: Final = "No card is shown: agents alone tell of them, and none reports (agent.enabled)."
_CARDS_UNASKED: Final = "No card is shown: only the leader tells of them, and it was not asked."
_LABELLED: Final = {"labelSelector": names.MANAGED_LABEL}


async def look(api: Api, release: Release, *, namespace: str) -> Shown:
    """Ask the leader, else what everyone may read. `namespace` may be empty: all.

    Raises ApiError, with both reasons where neither answers.
    """
    note = ""
    try:
        document: Mapping[str, Any] = await ask(api, release, namespace=namespace)
    except Unreached:
        raise
    except ApiError as error:
        note = why_not_asked(error, release)
        try:
            document = await _without_leader(api, namespace, unknown=why_unknown(error))
        except ApiError as second:
            if not forbidden(second):
                raise ApiError("pods", f"{second}; {note}", second.status) from None
            refused = may_not_read("pods and policies", second, namespace=namespace)
            other = f", or bind Role {release.name}-reader in namespace {release.namespace}"
            rest = other if forbidden(error) else f"; {note}"
            raise ApiError("nothing can be shown", f"{refused}{rest}", second.status) from None
    if namespace and not document["pods"]:
        await _existing(api, namespace)
    if not namespace and not note:
        document = await others.with_names(api, document)
    return Shown(document, note)


async def _existing(api: Api, namespace: str) -> None:
    """Raises NotFound for a namespace that is not there: it would look like an empty one."""
    try:
        await api.get(NAMESPACES.path(namespace))
    except NotFound:
        text = "there is none of this name; -A shows the pods of all namespaces"
        raise NotFound(f"namespace {namespace}", text, 404) from None
    except ApiError:
        return  # who may not read it can not be told


async def _without_leader(api: Api, namespace: str, *, unknown: str) -> dict[str, Any]:
    """Pods as they are stored, and the sums in the statuses of policies."""
    pods = await api.get(PODS.path(namespace=namespace), query=_LABELLED)
    policies = await api.get(POLICIES.path(namespace=namespace))
    return {
        "pods": [stored_pod(pod, unknown=unknown) for pod in pods.get("items") or ()],
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


async def run(api: Api, release: Release, *, namespace: str, watch: bool, as_json: bool) -> None:
    """Print once, or again and again until interrupted. Raises ApiError for an unread cluster."""
    await show(
        lambda: look(api, release, namespace=namespace),
        lambda document: picture(document, all_namespaces=not namespace),
        watch=watch,
        as_json=as_json,
    )


def sort_key(pod: Mapping[str, Any]) -> tuple[bool, bool, int, str, str]:
    """The most used first, then what is not known, by name; what has not started last."""
    used = pod.get("usedBytes")
    return (waits(pod), used is None, -(used or 0), pod["namespace"], pod["name"])


def picture(document: Mapping[str, Any], *, all_namespaces: bool) -> RenderableType:
    """Tables of pods, of policies where that is all there is, and of cards."""
    tables: list[RenderableType] = [_pods(document["pods"], all_namespaces)]
    if policies := document.get("policies"):
        tables += ["", table(_POLICY_HEAD, map(_policy, policies))]
    if all_namespaces:
        tables += ["", _cards(document)]
    if all_namespaces and (held := document.get("others")):
        tables += ["", table(others.HEAD, map(others.row, held))]
    return Group(*tables)


def _cards(document: Mapping[str, Any]) -> RenderableType:
    if document["cards"]:
        return table(_CARD_HEAD, map(_card, document["cards"]))
    return Text(_NO_CARDS if "policies" not in document else _CARDS_UNASKED)


def _pods(pods: Iterable[Row], all_namespaces: bool) -> RenderableType:
    found = sorted(pods, key=sort_key)
    if not found:
        here = "" if all_namespaces else " in this namespace: look into all of them with -A"
        return Text(f"No GPU pod runs or waits{here}.")
    head = ["POD", "USED", "LIMIT", "HELD BY", "NODE", "POLICY", "TENANT"]
    if not all_namespaces:
        return table(head, map(_pod, found))
    return table(["NAMESPACE", *head], ([pod["namespace"], *_pod(pod)] for pod in found))


def _pod(pod: Row) -> list[str]:
    return [
        pod["name"],
        amount(pod),
        limits(pod.get("containers") or ()),
        held(pod),
        pod.get("node") or "-",
        pod.get("policy") or "-",
        ",".join(one["tenant"] for one in pod.get("charges") or ()) or "-",
    ]


def _policy(policy: Row) -> list[str]:
    memory = policy["memory"]
    return [
        f"{policy['namespace']}/{policy['name']}",
        known(memory.get("declaredBytes")),
        known(memory.get("usedBytes")),
        str(memory.get("unknownPods", "unknown")),
    ]


def _card(card: Row) -> list[str]:
    parts = ("total", "reserved", "attributed", "unattributed", "free")
    amounts = [card[f"{part}Bytes"] for part in parts]
    shown = [f"unknown: {card['unknown']}", "", "", "", ""]
    if None not in amounts:
        shown = [show_bytes(one) for one in amounts]
    return [card["node"], card["gpu"], card["model"], *shown]
