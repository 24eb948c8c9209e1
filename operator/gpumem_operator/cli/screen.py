"""What a command that asks a cluster found, on a person's screen or as JSON."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
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


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Raise the BrokenPipeError: what the exit code is then, others decide."""
        raise


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
        _Console(width=_WIDE).print(picture(shown.document))


async def _watch(
    look: Callable[[], Awaitable[Shown]],
    picture: Callable[[Mapping[str, Any]], RenderableType],
) -> None:
    with _canvas() as draw:
        while True:
            draw(_dated(await look(), picture))
            await asyncio.sleep(REFRESH_SECONDS)


@contextmanager
def _canvas() -> Iterator[Callable[[RenderableType], None]]:
    """A screen that is refreshed; in a pipe there is none, and pictures stand one below another."""
    console = _Console()
    if not console.is_terminal:
        yield _Console(width=_WIDE).print
        return
    with Live(console=console, screen=True, auto_refresh=False) as live:
        yield partial(live.update, refresh=True)


def _dated(shown: Shown, picture: Callable[[Mapping[str, Any]], RenderableType]) -> Group:
    """A picture with its time and what is to be noted."""
    head = f"{datetime.now().astimezone():%H:%M:%S}"
    return Group(line(f"{head}  {shown.note}".rstrip()), picture(shown.document), "")


def line(text: str) -> Text:
    """One line, whatever others wrote into it."""
    return Text(one_line(text))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Text:
    """Rows below their heads; a row that is too long for a screen goes on in the next line."""
    head, *lines = in_columns([heads, *rows])
    made = Text(overflow="fold").append(head, style="bold")
    for line in lines:
        made.append(f"\n{line}")
    return made
