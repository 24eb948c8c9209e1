"""How a process reads JSON: quickly, and also where it is nested deeper than decoders go.

The API server stores what a client sends in `metadata.managedFields`, up to 10,000 levels deep, and
gives it back to everybody who lists. Python's decoder raises RecursionError at about a thousand, in
kopf and aiohttp as well as here: one object of one namespace user would end every process that
lists its kind. So the decoder of the whole process falls back to cutting such documents: nothing
that we read is nested deeper than 30 levels.

All others go through orjson, which reads a list of pods in a third of the time: that is most of
what a whole list costs, and kopf reads each of its own with the same function.
"""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, Final

import orjson

DEEPEST: Final = 200
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def cut(text: str, deepest: int = DEEPEST) -> str:
    """The document with null in place of what is nested deeper; linear in its length."""
    kept: list[str] = []
    depth = kept_from = 0
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in "[{":
            depth += 1
            if depth == deepest + 1:
                kept += (text[kept_from : token.start()], "null")
        elif mark in "]}":
            if depth == deepest + 1:
                kept_from = token.end()
            depth -= 1
    return "".join([*kept, text[kept_from:]])


def install() -> None:
    """Make `json.loads` of this process quick, and let it cut what is too deep; before aiohttp and
    kopf are imported, which keep the function that they find then."""
    if getattr(json.loads, "cuts", False):
        return
    loads: Callable[..., Any] = json.loads

    @wraps(loads)
    def loads_or_cut(content: str | bytes | bytearray, **options: Any) -> Any:
        if not options:
            # What it refuses may be too deep for it, or not JSON: Python's decoder says which.
            with suppress(orjson.JSONDecodeError):
                return orjson.loads(content)
        try:
            return loads(content, **options)
        except RecursionError:
            text = content if isinstance(content, str) else content.decode("utf-8")
            return loads(cut(text), **options)

    loads_or_cut.cuts = True  # type: ignore[attr-defined]
    json.loads = loads_or_cut  # type: ignore[assignment]
