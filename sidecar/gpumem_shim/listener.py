"""Runs something after the first import of a module, without standing in its way.

The module's specification has `_Listening` as its loader until the module is executed, and then its
own again: in the module, and for whoever looks at it later, nothing is of ours. The loader itself
stays as it is, because it may be a class, or have other modules to load, or be compared.
"""

from __future__ import annotations

import sys

from gpumem_shim import faults

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


def find_spec(
    own: object, name: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    """What the finders behind `own` find; those before it were asked. Raises what they raise."""
    finders = list(sys.meta_path)
    for finder in finders[_place(own, finders) :]:
        find = getattr(finder, "find_spec", None)
        spec: ModuleSpec | None = None if find is None else find(name, path, target)
        if spec is not None:
            # A folder without code has no loader, and some load in another way.
            if hasattr(spec.loader, "exec_module"):
                spec.loader = _Listening(name, spec.loader)  # type: ignore[assignment]
            return spec
    return None


def _place(own: object, finders: list[Any]) -> int:
    """Behind `own`; behind all where somebody took it away meanwhile."""
    places = [place for place, finder in enumerate(finders, start=1) if finder is own]
    return places[0] if places else len(finders)


class _Listening:
    """Passes for the loader behind it, in every question and in every copy."""

    __slots__ = ("_heard", "_name")

    def __init__(self, name: str, loader: Any) -> None:
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_heard", loader)

    def exec_module(self, module: ModuleType) -> None:
        spec = getattr(module, "__spec__", None)
        for holder, attribute in ((spec, "loader"), (module, "__loader__")):
            if getattr(holder, attribute, None) is self:
                setattr(holder, attribute, self._heard)
        self._heard.exec_module(module)
        if type(module).__name__ == "_LazyModule":
            # Any question would execute it now, which its finder wanted to happen later.
            spec = object.__getattribute__(module, "__spec__")
            spec.loader = _Listening(self._name, spec.loader)
        else:
            imported(self._name, module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._heard, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._heard, name, value)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return self._heard.__class__

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        return self._heard.__dict__

    def __eq__(self, other: object) -> bool:
        return bool(self._heard == getattr(other, "_heard", other))

    def __hash__(self) -> int:
        return hash(self._heard)

    def __repr__(self) -> str:
        return repr(self._heard)

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Whoever reads the copy may have no shim. The largest of one is that one.
        return max, ((self._heard,),)


def imported(name: str, module: ModuleType) -> None:
    """A framework is there now, or a part of a server. Never raises a fault of ours."""
    with faults.kept:
        from gpumem_shim import SERVERS, process

        if name in SERVERS:
            from gpumem_shim import servers

            servers.imported(module, process.own)
        else:
            process.own.imported(name, module)
