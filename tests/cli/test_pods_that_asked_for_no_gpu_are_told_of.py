"""`why` and `top -A` about pods that hold GPU memory and asked for none."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from cli_objects import pod
from gpumem_operator.api.records import NamespaceRecord
from gpumem_operator.cli.explain import Known
from gpumem_operator.cli.others import STEP, with_names
from gpumem_operator.cli.top import picture
from gpumem_operator.cli.why_document import pod_document
from gpumem_operator.kube.errors import ApiError

GIB = 2**30
OTHER = {
    "node": "gpu-1",
    "podUid": "u1",
    "containerId": "c1",
    "gpu": "GPU-1",
    "usedBytes": 4 * GIB,
    "unknown": None,
    "atLeastBytes": None,
    "processes": 2,
}


def told(*others: Mapping[str, Any], **status: Any) -> dict[str, Any]:
    raw = pod({"name": "web", "image": "web:1"})
    raw["metadata"]["uid"] = "u1"
    raw["status"] = {"phase": "Running", **status}
    known = Known(policies=(), namespace=NamespaceRecord("ml", {}), usage={}, others=others)
    return pod_document(raw, known, about_nodes=())


def test_who_asks_about_such_a_pod_is_told_what_it_holds_and_what_to_do() -> None:
    statuses = [{"name": "web", "containerID": "containerd://c1"}]
    found = told(OTHER, containerStatuses=statuses)
    assert found["lines"][1:] == [
        "  It asks for no GPU and holds memory of one: nothing limits it, nobody is charged.",
        "  used by web on GPU-1: 4Gi in 2 processes (said by NodeAgent)",
        f"  next step: {STEP}",
    ]
    assert found["nextSteps"] == [STEP]
    assert found["others"] == [OTHER]


def test_what_is_not_known_of_it_is_no_number() -> None:
    hidden = {**OTHER, "usedBytes": None, "unknown": "NotAvailable", "atLeastBytes": GIB}
    [_, _, line, _] = told({**hidden, "processes": 1})["lines"]
    assert line.startswith(
        "  used by a container that could not be named on GPU-1: unknown, at least 1Gi,"
        " NotAvailable ("
    )


def test_a_pod_that_holds_nothing_is_no_concern() -> None:
    assert told()["lines"][1:] == ["  It asks for no GPU, so nothing here concerns it."]
    assert told()["nextSteps"] == []


def test_processes_that_outlive_their_pod_are_told() -> None:
    raw = pod()
    raw["metadata"] |= {"uid": "u1", "labels": {}}
    raw["status"] = {"phase": "Failed"}
    known = Known(policies=(), namespace=NamespaceRecord("ml", {}), usage={}, others=(OTHER,))
    lines = pod_document(raw, known, about_nodes=())["lines"]
    assert "  used: it has ended, and processes of it are still there" in lines


class Pods:
    """An API server that lists one pod, or nothing to somebody without the right."""

    def __init__(self, *, may_list: bool = True) -> None:
        self._may_list = may_list

    async def get(self, path: str, *, query: Mapping[str, str]) -> dict[str, Any]:
        if not self._may_list:
            raise ApiError(path, "forbidden", 403)
        assert query == {"fieldSelector": "spec.nodeName=gpu-1"}
        return {"items": [{"metadata": {"uid": "u1", "namespace": "ml", "name": "web"}}]}


def shown(*, may_list: bool, all_namespaces: bool = True) -> str:
    document = {"pods": [], "cards": [], "others": [OTHER, {**OTHER, "podUid": "gone"}]}
    api: Any = Pods(may_list=may_list)
    named = asyncio.run(with_names(api, document))
    out = io.StringIO()
    Console(file=out, width=200).print(picture(named, all_namespaces=all_namespaces))
    return out.getvalue()


def test_top_names_them_below_the_cards_as_far_as_they_may_be_read() -> None:
    text = shown(may_list=True)
    assert ["gpu-1", "GPU-1", "ml/web", "4Gi", "2"] in [line.split() for line in text.splitlines()]
    assert "uid gone" in text
    assert "uid u1" in shown(may_list=False)
    assert "GPU-1" not in shown(may_list=True, all_namespaces=False)
