"""Handing on to the sitecustomize or usercustomize that ours hides."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec


def run(spec: ModuleSpec) -> None:
    """Execute the module of `spec` in the place of ours. Raises what it raises."""
    module = module_from_spec(spec)
    if spec.loader is None:
        sys.modules[spec.name] = module
        return
    # Other threads that import it wait, as for every module that is being executed: the lock of its
    # name is held for ours.
    spec._initializing = True  # type: ignore[attr-defined]
    try:
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    finally:
        spec._initializing = False  # type: ignore[attr-defined]
