"""Text -> documents, as kubectl reads them: YAML or JSON that means a tree of JSON values.

YAML can say more than JSON: dates, sets, numbers without end, one node in two places. What
Kubernetes would read as text stays text, what it could not store is a fault, and every alias
becomes a copy of its own, so that a change to one container never shows up in another.
"""

import json
import math
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import yaml

_DEPTH: Final = 100
"""Objects of Kubernetes are some twenty deep; printing them takes several frames per level."""
_COPIES: Final = 1_000_000
"""Values that aliases may add to those that are written: a short file can mean billions."""
_LARGEST: Final = 2**64 - 1
_DATE: Final = "tag:yaml.org,2002:timestamp"


class ParseError(ValueError):
    """A text that can not be read; the message is one line without the name of the file."""


class _Loader(yaml.SafeLoader):
    """Leaves dates as they are written: Kubernetes has no other type for them than text."""


_Loader.yaml_implicit_resolvers = {
    first: [entry for entry in resolvers if entry[0] != _DATE]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def parse(data: bytes, *, is_json: bool = False) -> list[Any]:
    """All documents of a text. Raises ParseError at the first thing that can not be read.

    `is_json`: the name of the file says so, and a fault is described as JSON sees it.
    """
    data = data.removeprefix(BOM_UTF8)
    problem = None
    if is_json or data.lstrip()[:1] in (b"{", b"["):
        try:
            return _as_values(_read_json(data), len(data))
        except _NotReadableError as error:
            # A block of YAML may begin so as well, and most of JSON is YAML.
            problem = error
    try:
        documents = _read_yaml(data)
    except _NotReadableError as error:
        fault = "not YAML" if problem is None else "not JSON or YAML"
        raise ParseError((problem if problem and is_json else error).sentence(fault)) from None
    return _as_values(documents, len(data))


class _NotReadableError(Exception):
    """Not of the form that was tried."""

    def __init__(self, reason: object, line: int | None = None) -> None:
        super().__init__(reason)
        self._line = line

    def sentence(self, fault: str) -> str:
        reason = " ".join(str(self).split())
        place = "" if self._line is None else f"line {self._line}: "
        return f"{place}{fault}: {reason}"


def _read_json(data: bytes) -> list[Any]:
    try:
        return list(_json_stream(data.decode("utf-8")))
    except json.JSONDecodeError as error:
        raise _NotReadableError(error.msg, error.lineno) from None
    except ValueError as error:
        raise _NotReadableError(error) from None
    except RecursionError:
        raise _NotReadableError("nested too deeply") from None


def _json_stream(text: str) -> Iterator[Any]:
    """One JSON value after the other, as `jq` writes them."""
    decoder = json.JSONDecoder(parse_constant=_no_number)
    at = _behind_blanks(text, 0)
    while at < len(text):
        document, at = decoder.raw_decode(text, at)
        yield document
        at = _behind_blanks(text, at)


def _behind_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _read_yaml(data: bytes) -> list[Any]:
    try:
        return list(yaml.load_all(data, _Loader))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise _NotReadableError(error.problem, line) from None
    except RecursionError:
        raise _NotReadableError("nested too deeply") from None
    # Behind YAMLError stands what PyYAML answers to a tag that does not fit its text: `!!int x`.
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise _NotReadableError(error) from None


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _as_values(documents: list[Any], size: int) -> list[Any]:
    copier = _Copier(size + _COPIES)
    return [
        copier.copy(document, (f"document {number}",))
        for number, document in enumerate(documents, start=1)
    ]


@dataclass
class _Copier:
    """Copies a tree of JSON values, and refuses anything else."""

    left: int
    """Values that may still be copied."""

    def copy(self, value: Any, path: tuple[str, ...]) -> Any:
        self.left -= 1
        if self.left < 0:
            raise ParseError(f"{path[0]}: its aliases mean more than {_COPIES} values")
        if len(path) > _DEPTH:
            raise ParseError(f"{path[0]}: nested deeper than {_DEPTH} levels")
        if isinstance(value, dict):
            return {name: self.copy(inner, (*path, name)) for name, inner in _named(value, path)}
        if isinstance(value, list):
            return [self.copy(inner, (*path, str(at))) for at, inner in enumerate(value)]
        if (fault := _fault(value)) is not None:
            raise ParseError(f"{path[0]}: {'.'.join(path[1:])}: {fault}")
        return value


def _named(value: dict[Any, Any], path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        if isinstance(key, str):
            yield key, inner
        elif key is None or _fault(key) is not None:
            raise ParseError(f"{path[0]}: {'.'.join(path[1:])}: a key is neither text nor number")
        else:
            # As kubectl turns them into JSON: `1:` is "1" and `yes:` is "true".
            yield json.dumps(key), inner


def _fault(value: Any) -> str | None:
    if value is None or isinstance(value, str | bool):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{value} is not a number that JSON has"
    if isinstance(value, int):
        return None if abs(value) <= _LARGEST else "the number has more than 64 bits"
    return f"a {type(value).__name__} is not a value that JSON has"
