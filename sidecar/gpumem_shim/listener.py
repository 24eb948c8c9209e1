"""Runs something after the first import of a module, without standing in its way."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def find_spec(
    own: object, name: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    """What the finders other than `own` find. Raises what they raise."""
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        if finder is own or find is None:
            continue
        spec: ModuleSpec | None = find(name, path, target)
        if spec is not None:
            _listen(spec)
            return spec
    return None


def _listen(spec: ModuleSpec) -> None:
    # The loader keeps its type and stays the module's loader (others ask it for source and data):
    # only this one object runs something after its work.
    try:
        loader = spec.loader
        execute = loader.exec_module  # type: ignore[union-attr]

        def exec_module(module: ModuleType) -> None:
            execute(module)
            imported(spec.name, module)

        loader.exec_module = exec_module  # type: ignore
    except Exception:
        pass


def imported(name: str, module: ModuleType) -> None:
    """A framework is there now, or a part of a server. Never raises an Exception."""
    try:
        from gpumem_shim import SERVERS, process

        if name in SERVERS:
            from gpumem_shim import servers

            servers.imported(module, process.own)
        else:
            process.own.imported(name, module)
    except Exception:
        pass
