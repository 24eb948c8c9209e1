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
    sys.modules[spec.name] = module
    if spec.loader is not None:
        spec.loader.exec_module(module)
