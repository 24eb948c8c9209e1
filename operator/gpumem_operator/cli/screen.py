"""What a command that asks a cluster found, on a person's screen or as JSON."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from gpumem_operator.api.printable import one_line
from gpumem_operator.cli.columns import in_columns
from gpumem_operator.cli.terminal import remark

REFRESH_SECONDS: Final = 5.0
_WIDE: Final = 10_000
"""Columns: nothing is cut off, in a pipe neither; a terminal wraps what is too long for it."""


@dataclass(frozen=True)
class Shown:
    """What one look found."""

    document: Mapping[str, Any]
    note: str = ""
    """Why the leader did not answer; empty where it did."""


async def show(
    look: Callable[[], Awaitable[Shown]],
    picture: Callable[[Mapping[str, Any]], RenderableType],
    *,
    watch: bool,
    as_json: bool,
) -> None:
    """Print once, or again and again until interrupted. Raises what `look` raises."""
    if watch:
        await _watch(look, picture)
        return
    shown = await look()
    if shown.note:
        remark(f"note: {shown.note}")
    if as_json:
        typer.echo(json.dumps(dict(shown.document) | {"note": shown.note or None}, indent=2))
    else:
        Console(width=_WIDE).print(picture(shown.document))


async def _watch(
    look: Callable[[], Awaitable[Shown]],
    picture: Callable[[Mapping[str, Any]], RenderableType],
) -> None:
    console = Console()
    with Live(console=console, screen=console.is_terminal, auto_refresh=False) as live:
        while True:
            shown = await look()
            live.update(Group(line(shown.note), picture(shown.document)), refresh=True)
            await asyncio.sleep(REFRESH_SECONDS)


def line(text: str) -> Text:
    """One line, whatever others wrote into it."""
    return Text(one_line(text))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Text:
    """Rows below their heads; what is too long for a screen that is refreshed ends with dots."""
    head, *lines = in_columns([heads, *rows])
    made = Text(no_wrap=True, overflow="ellipsis").append(head, style="bold")
    for line in lines:
        made.append(f"\n{line}")
    return made
