"""How our variables meet those that the author of a container set.

    kind      | author set nothing | author set a value        | author used valueFrom
    ----------|--------------------|---------------------------|----------------------------
    Setting   | added              | existingEnv decides       | kept, with a warning
    Cap       | added              | the lower one             | replaced, with a warning
    Own       | added              | replaced                  | replaced

What an earlier admission added (the container lists it) does not count as the author's and is taken
out first: an exported pod that is created again comes out as if it were new, under another policy
as well.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from gpumem_operator import names
from gpumem_operator.api.pytorch_allocator import (
    AllocatorSyntaxError,
    format_config,
    parse_config,
)

EnvEntry = Mapping[str, Any]
ExistingEnv = Literal["Merge", "Keep", "Override"]

_ADDED_BY_PLANS: Final = frozenset(
    {
        names.PYTORCH_CONF_ENV,
        names.TENSORFLOW_GROWTH_ENV,
        names.JAX_PREALLOCATE_ENV,
        names.CUPY_LIMIT_ENV,
        names.MPS_LIMIT_ENV,
        names.DRIVER_REQUEST_ENV,
        names.DRIVER_LIMIT_ENV,
        names.PYTHON_PATH_ENV,
        names.VISIBLE_DEVICES_ENV,
    }
)
"""Only these are taken back: a list that an author forged can remove nothing else."""


@dataclass(frozen=True)
class Setting:
    """A variable that the author of the container may have another opinion about."""

    name: str
    value: str


@dataclass(frozen=True)
class Cap:
    """A variable that bounds memory. `lower(theirs)` is theirs where that is the lower one."""

    name: str
    value: str
    lower: Callable[[str], str]


@dataclass(frozen=True)
class Own:
    """A variable that is ours whatever the author set."""

    name: str
    value: str


Variable = Setting | Cap | Own


@dataclass(frozen=True)
class Variables:
    """What one part of a plan wants in a container's environment."""

    wanted: tuple[Variable, ...] = ()
    removed: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """Reasons to refuse the pod."""
    added: tuple[str, ...] = ()
    """What else is ours: `NAME:key` for parts of a variable of the author, or a resource."""


class Environment:
    """The author's view of a container's environment: without what admission added earlier.

    `taken_back` are variables that no author set; `restored` are those of the author that had
    something of ours in them, with the value that they had before.
    """

    def __init__(self, entries: Iterable[EnvEntry]) -> None:
        self._entries: dict[str, EnvEntry] = {entry.get("name") or "": entry for entry in entries}
        listed = frozenset((self.literal(names.INJECTED_ENV) or "").split(","))
        self.taken_back: Final = listed & _ADDED_BY_PLANS & self._entries.keys()
        for name in self.taken_back:
            del self._entries[name]
        self.restored: Final = dict(self._without_ours(listed))
        for name, value in self.restored.items():
            self._entries[name] = {"name": name, "value": value}

    def _without_ours(self, listed: frozenset[str]) -> Iterator[tuple[str, str]]:
        first, _, behind = (self.literal(names.PYTHON_PATH_ENV) or "").partition(":")
        if first == names.SHIM_PATH:
            yield names.PYTHON_PATH_ENV, behind
        for name in (names.PYTORCH_CONF_ENV, names.PYTORCH_NEW_CONF_ENV):
            ours = {item.partition(":")[2] for item in listed if item.startswith(f"{name}:")}
            if ours and (text := self.literal(name)):
                yield name, _without_keys(text, ours)

    def has(self, name: str) -> bool:
        return name in self._entries

    def readable(self, name: str) -> str | None:
        """The value, or None where it is not set or not known before the container starts."""
        entry = self._entries.get(name)
        if entry is None or entry.get("valueFrom"):
            return None
        value = str(entry.get("value") or "")
        return None if "$(" in value else value

    def unreadable(self, name: str) -> bool:
        return self.has(name) and self.readable(name) is None

    def literal(self, name: str) -> str | None:
        """The value as written, references to other variables included; None for valueFrom."""
        entry = self._entries.get(name)
        if entry is None or entry.get("valueFrom"):
            return None
        return str(entry.get("value") or "")

    def names_with_prefix(self, prefix: str) -> list[str]:
        return [name for name in self._entries if name.startswith(prefix)]


def _without_keys(text: str, ours: set[str]) -> str:
    """The author's part of an allocator string; as it is where somebody broke it since."""
    try:
        settings = parse_config(text)
    except AllocatorSyntaxError:
        return text
    return format_config({key: value for key, value in settings.items() if key not in ours})


@dataclass(frozen=True)
class Resolved:
    """The outcome for one container: variables to set, to drop, and what was not the author's."""

    values: Mapping[str, str]
    removed: frozenset[str]
    added: tuple[str, ...]
    warnings: tuple[str, ...]


def resolve(
    environment: Environment, parts: Iterable[Variables], *, existing: ExistingEnv
) -> Resolved:
    """Every wanted variable with the value that it gets; later parts win over earlier ones."""
    values: dict[str, str] = dict(environment.restored)
    removed: set[str] = set(environment.taken_back)
    added: list[str] = []
    warnings: list[str] = []
    for part in parts:
        warnings += part.warnings
        removed |= part.removed
        added += part.added
        for variable in part.wanted:
            if isinstance(variable, Own):
                values[variable.name] = variable.value
            elif not environment.has(variable.name):
                values[variable.name] = variable.value
                added.append(variable.name)
            else:
                theirs = environment.readable(variable.name)
                if theirs is None:
                    warnings.append(_unread(variable))
                value = _beside(variable, theirs, existing)
                if value is not None:
                    values[variable.name] = value
    if added:
        values[names.INJECTED_ENV] = ",".join(added)
    return Resolved(values, frozenset(removed - set(values)), tuple(added), tuple(warnings))


def _beside(variable: Setting | Cap, theirs: str | None, existing: ExistingEnv) -> str | None:
    """The value beside the author's (None: a reference), or None where that one stays."""
    if isinstance(variable, Cap):
        return variable.value if theirs is None else variable.lower(theirs)
    return variable.value if theirs is not None and existing == "Override" else None


def _unread(variable: Setting | Cap) -> str:
    fate = "it stays as it is"
    if isinstance(variable, Cap):
        fate = f"it is a cap, so it is replaced by {variable.value}"
    return f"{variable.name} comes from a reference that admission can not read; {fate}"


def edit(entries: Iterable[EnvEntry], resolved: Resolved) -> list[EnvEntry]:
    """The environment with the outcome in it: in place where a name was there, else at the end.

    In place, because $(NAME) refers to variables that stand further up; for the same reason a name
    that the author repeated stays repeated. One of ours is there once: nothing refers to it.
    """
    values = resolved.values
    edited: list[EnvEntry] = []
    seen: set[str] = set()
    for entry in entries:
        name = entry.get("name") or ""
        if name in seen and name.startswith(names.ENV_PREFIX):
            continue
        if name in values:
            seen.add(name)
            edited.append({"name": name, "value": values[name]})
        elif name not in resolved.removed:
            edited.append(entry)
    edited.extend({"name": n, "value": v} for n, v in values.items() if n not in seen)
    return edited
