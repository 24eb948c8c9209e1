"""What `-f` names: files, folders and standard input."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from gpumem_operator.cli.parsing import ParseError, parse

STANDARD_INPUT: Final = Path("-")
_SUFFIXES: Final = (".yaml", ".yml", ".json")


class DocumentError(Exception):
    """A file that can not be used; the text is one line with file, document, field and value."""


@dataclass(frozen=True)
class Source:
    """One text with its name for people."""

    name: str
    data: bytes


def read_sources(files: Iterable[Path], stdin: BinaryIO | None) -> Iterator[Source]:
    """Each text once, in the order given; `stdin` is None where it is closed. Raises DocumentError
    where one can not be read."""
    used = False
    for file in files:
        if file == STANDARD_INPUT:
            if used:
                raise DocumentError("standard input: can be read only once: give -f - once")
            used = True
            yield Source("standard input", _read_all(stdin))
            continue
        for path in _files_of(file):
            yield Source(str(path), _read(path))


def _files_of(file: Path) -> list[Path]:
    """The file itself; of a folder the files in it that hold objects, by name."""
    try:
        if not file.is_dir():
            return [file]
        inside = sorted(path for path in file.iterdir() if path.suffix in _SUFFIXES)
    except (OSError, ValueError) as error:
        raise _unreadable(file, error) from None
    found = [path for path in inside if not path.is_dir()]
    if not found:
        raise DocumentError(f"{file}: the folder holds no *.yaml, *.yml or *.json file")
    return found


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def _read_all(stdin: BinaryIO | None) -> bytes:
    if stdin is None:
        raise DocumentError("standard input: is closed: pipe objects into it, or give a file")
    try:
        return stdin.read()
    except (OSError, ValueError) as error:
        raise _unreadable("standard input", error) from None


def _unreadable(place: Path | str, error: Exception) -> DocumentError:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return DocumentError(f"{place}: can not be read: {reason}")


def objects(sources: Iterable[Source]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each object of Kubernetes with its place, those of lists one by one."""
    for source in sources:
        try:
            documents = parse(source.data, is_json=source.name.endswith(".json"))
        except ParseError as error:
            raise DocumentError(f"{source.name}: {error}") from None
        for number, document in enumerate(documents, start=1):
            if document is None:
                continue
            place = f"{source.name}: document {number}"
            for raw in _unfolded(document, place):
                if not isinstance(raw, Mapping) or not isinstance(raw.get("kind"), str):
                    raise DocumentError(f"{place}: kind: {raw!r:.60} is not a Kubernetes object")
                yield f"{place} ({_title(raw)})", raw


def _unfolded(document: Any, place: str) -> Iterable[Any]:
    """`List`, and lists of one kind, whose items may leave out what they are."""
    kind = document.get("kind") if isinstance(document, Mapping) else None
    if not isinstance(kind, str) or not kind.endswith("List"):
        return (document,)
    items = document.get("items")
    if items is None:
        return () if kind == "List" else (document,)
    if not isinstance(items, list):
        raise DocumentError(f"{place}: items: {items!r:.60} is not a list")
    if kind == "List":
        return items
    shared = {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")}
    return [{**shared, **item} if isinstance(item, Mapping) else item for item in items]


def _title(raw: Mapping[str, Any]) -> str:
    metadata = raw.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return f"{raw['kind']} {name}" if name else str(raw["kind"])
