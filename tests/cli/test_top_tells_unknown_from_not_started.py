"""`kubectl gpumem top`: what holds nothing for sure does not hide what nobody can tell."""

from __future__ import annotations

from typing import Any

from rich.console import Console, RenderableType

from gpumem_operator.cli.cells import amount, held
from gpumem_operator.cli.top import picture, sort_key


def shown(made: RenderableType) -> list[str]:
    console = Console(width=200)
    with console.capture() as printed:
        console.print(made)
    return printed.get().splitlines()


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


def test_where_nothing_has_started_nothing_holds_a_limit() -> None:
    unknown = {"enforcedBy": "Unknown", "enforcedReason": "NoProcess"}
    assert held(pod("waits", 0, started=False) | unknown) == "-"
    assert held(pod("idle", 0) | unknown) == "Unknown: NoProcess"


def test_where_no_card_is_shown_the_reason_is() -> None:
    told = shown(picture({"pods": [], "cards": []}, all_namespaces=True))
    assert told[-1] == (
        "No card is shown: agents alone tell of them, and none reports (agent.enabled)."
    )
    stored = shown(picture({"pods": [], "cards": [], "policies": []}, all_namespaces=True))
    assert stored[-1].startswith("No card is shown: only the leader tells of them")
