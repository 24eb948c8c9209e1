"""`kubectl gpumem top`: what holds nothing for sure does not hide what nobody can tell."""

from __future__ import annotations

from typing import Any

from gpumem_operator.cli.cells import amount
from gpumem_operator.cli.top import sort_key


def pod(name: str, used: int | None, *, started: bool = True) -> dict[str, Any]:
    unknown = "NoReport" if used is None else None
    return {
        "namespace": "ml",
        "name": name,
        "usedBytes": used,
        "unknown": unknown,
        "started": started,
    }


def test_a_pod_that_has_not_started_holds_nothing_and_says_why() -> None:
    assert amount(pod("waits", 0, started=False)) == "0 (not started)"
    assert amount(pod("idle", 0)) == "0"
    assert amount(pod("silent", None)) == "unknown: NoReport"
    assert amount(pod("early", 2**30, started=False)) == "1Gi"


def test_the_largest_come_first_then_the_unknown_then_those_that_wait() -> None:
    pods = [pod("waits", 0, started=False), pod("silent", None), pod("idle", 0), pod("big", 5)]
    assert [one["name"] for one in sorted(pods, key=sort_key)] == ["big", "idle", "silent", "waits"]
