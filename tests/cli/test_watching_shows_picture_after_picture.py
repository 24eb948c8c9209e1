"""`--watch` of `top` and `tenants`, on a screen and in a pipe."""

from __future__ import annotations

import asyncio

import pytest
from rich.console import Console

from gpumem_operator.cli.screen import Shown, show, table


async def test_in_a_pipe_each_picture_is_printed_as_it_is_seen(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen = asyncio.Event()

    async def look() -> Shown:
        seen.set()
        return Shown({}, "a note")

    rows = [["x" * 60, "node", "policy", "tenant"]]
    watching = asyncio.create_task(
        show(look, lambda _: table(["A", "B", "C", "D"], rows), watch=True, as_json=False)
    )
    await seen.wait()
    watching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching
    head, names, row, *_ = capsys.readouterr().out.splitlines()
    assert head.endswith("  a note")
    assert names.split() == ["A", "B", "C", "D"]
    assert row.split() == rows[0]


def test_on_a_narrow_screen_no_column_is_left_out() -> None:
    console = Console(width=40)
    with console.capture() as printed:
        console.print(table(["POD", "NODE"], [["p" * 30, "the-node-of-it"]]))
    assert "the-node-of-it" in printed.get()
    assert "…" not in printed.get()
