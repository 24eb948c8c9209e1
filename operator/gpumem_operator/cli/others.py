"""Pods that hold GPU memory and asked for none, as people know them: agents tell their uids."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.api.quantity import show_bytes
from gpumem_operator.cli.cells import Row, amount, floor
from gpumem_operator.kube.api import Api
from gpumem_operator.kube.errors import ApiError
from gpumem_operator.kube.resources import PODS
from gpumem_operator.reports.measured import container_ids
from gpumem_operator.reports.reasons import cause

HEAD: Final = ["NODE", "GPU", "HELD BY OTHERS: POD", "USED", "PROCESSES"]
STEP: Final = (
    "ask for the GPU in resources.limits, or have its namespace labelled"
    f" {names.ISOLATE_LABEL}=true and create the pod again: then it sees no GPU"
)
_MOST_NODES: Final = 16


async def with_names(api: Api, document: Mapping[str, Any]) -> dict[str, Any]:
    """The document, with `namespace` and `name` of the pods of `others`; null where they may not be
    read, or are gone."""
    others = document.get("others") or ()
    found: dict[str, tuple[str, str]] = {}
    for node in sorted({one["node"] for one in others})[:_MOST_NODES]:
        try:
            pods = await api.get(PODS.path(), query={"fieldSelector": f"spec.nodeName={node}"})
        except ApiError:
            break
        for pod in pods.get("items") or ():
            metadata = pod["metadata"]
            found[metadata["uid"]] = (metadata["namespace"], metadata["name"])
    return {**document, "others": [_named(one, found.get(one["podUid"])) for one in others]}


def _named(other: Row, name: tuple[str, str] | None) -> dict[str, Any]:
    namespace, pod = name or (None, None)
    return {**other, "namespace": namespace, "name": pod}


def row(other: Row) -> list[str]:
    """Cells of one row below HEAD."""
    named = f"{other['namespace']}/{other['name']}" if other.get("name") else None
    pod = named or f"uid {other['podUid']}"
    return [other["node"], other["gpu"] or "-", pod, amount(other), str(other["processes"])]


def lines(pod: Row, others: Iterable[Row]) -> Iterator[str]:
    """What the pod holds, for people who asked about it."""
    ids = container_ids(pod.get("status") or {})
    for other in others:
        name = ids.get(other["containerId"] or "", "a container that could not be named")
        where = f" on {other['gpu']}" if other["gpu"] else ""
        if other["usedBytes"] is None:
            held = f"unknown{floor(other)}, {cause(str(other['unknown']))}"
        else:
            held = show_bytes(other["usedBytes"])
        number = other["processes"]
        processes = "1 process" if number == 1 else f"{number} processes"
        yield f"  used by {name}{where}: {held} in {processes} (said by NodeAgent)"
