"""Names, messages and claims of others are printed as one line each, whatever is in them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from cli_objects import pod as pod_object
from gpumem_operator.api.records import NamespaceRecord
from gpumem_operator.cli import tenants, top, why
from gpumem_operator.cli.explain import Known, explain_pod
from gpumem_operator.cli.leader import Release
from gpumem_operator.cli.target import target_of
from gpumem_operator.cli.terminal import remark, say
from gpumem_operator.kube.api import Api

ESCAPES = "\x1b[2J\x1b]0;mine\x07\r\nroot: all is well\u202e\u2066\u200b\x9b1m\x7f"
ODD = st.text(st.sampled_from(ESCAPES), min_size=1, max_size=8)


def printed(shown: RenderableType) -> list[str]:
    console = Console(file=io.StringIO(), width=10_000)
    console.print(shown)
    return cast(io.StringIO, console.file).getvalue().split("\n")


def row(odd: str) -> dict[str, Any]:
    return {
        "namespace": odd,
        "name": odd,
        "usedBytes": None,
        "unknown": odd,
        "enforcedBy": "None",
        "enforcedReason": odd,
        "node": odd,
        "policy": odd,
        "charges": [{"tenant": odd, "chargedBytes": 1}],
        "containers": [],
    }


def card(odd: str) -> dict[str, Any]:
    amounts = ("total", "reserved", "attributed", "unattributed", "free")
    named = {"node": odd, "gpu": odd, "model": odd, "unknown": odd}
    return named | {f"{one}Bytes": None for one in amounts}


@given(ODD)
def test_top_prints_a_line_for_each_pod_and_card(odd: str) -> None:
    document = {"pods": [row(odd)], "cards": [card(odd)]}
    lines = printed(top.picture(document, all_namespaces=True))
    assert all(line.isprintable() for line in lines)
    assert len(lines) == len(("head", "pod", "", "head", "card", ""))


@given(ODD)
def test_tenants_prints_a_line_for_each_condition(odd: str) -> None:
    condition = {"type": odd, "status": odd, "reason": odd, "message": odd}
    tenant: dict[str, Any] = {
        "name": odd,
        "namespaces": [odd],
        "shared": {},
        "limitBytes": None,
        "chargedBytes": None,
        "usedBytes": None,
        "unknownPods": 0,
        "queuedPods": 0,
        "conditions": [condition],
    }
    lines = printed(tenants.detail({"tenants": [tenant], "pods": []}, odd))
    assert all(line.isprintable() for line in lines)
    assert "  limit: " in [line[:9] for line in lines]
    assert sum(line.startswith("  ") for line in lines) == len(
        ("namespaces", "limit", "charged", "used", "queued", "condition")
    )


class OneObject:
    """An API server that answers everything with the same object."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        self._found = found

    async def get(self, path: str, **_: object) -> Mapping[str, Any]:  # noqa: ARG002
        return self._found


async def test_why_prints_a_line_for_each_thing_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    condition = {"type": "Ready", "status": "True", "reason": "x", "message": ESCAPES}
    policy = {
        "metadata": {"namespace": "ml", "name": "a", "uid": "1", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": ESCAPES}}},
        "status": {"conditions": [condition]},
    }
    target = target_of("gmp/a")
    assert target is not None
    api = cast(Api, OneObject(policy))
    await why.run(api, Release(), namespace="ml", target=target, as_json=False)
    lines = capsys.readouterr().out.split("\n")
    assert all(line.isprintable() for line in lines)
    assert "  Ready: True (x): \\x1b[2J\\x1b]0;mine\\x07\\r\\nroot: all is well" in lines[-2]


def test_what_a_workload_claims_of_its_frameworks_is_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    process = {
        "pid": 7,
        "usedBytes": 1,
        "unknown": None,
        "boundBy": "None",
        "boundReason": ESCAPES,
        "capBytes": None,
        "reserveBytes": None,
        "driverLimitBytes": None,
        "frameworks": [ESCAPES],
        "servers": [dict.fromkeys(("name", "argument", "asked", "applied", "reason"), ESCAPES)],
    }
    found = {"gpu": ESCAPES, "usedBytes": 1, "unknown": None, "processes": [process]}
    container = {"name": "main", "enforcedBy": "None", "enforcedReason": None, "perGpu": [found]}
    events = ({"reason": ESCAPES, "message": ESCAPES},)
    usage = {"containers": [container], "source": ESCAPES}
    known = Known((), NamespaceRecord("ml", {}), usage=usage, events=events)
    for line in explain_pod(pod_object(), known):
        say(line)
        remark(line)
    shown = capsys.readouterr()
    lines = [*shown.out.split("\n"), *shown.err.split("\n")]
    assert all(line.isprintable() for line in lines)
    assert sum("process 7" in line for line in lines) == 2
