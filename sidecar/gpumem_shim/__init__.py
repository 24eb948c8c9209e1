"""What runs inside users' processes. Standard library only, and Python 3.8 or newer.

This file is the start of every Python process in a GPU container: hook first imports, hand on, get
out. Most processes are not about GPUs, so it is small and imports nothing that Python has not
loaded by itself, not even `__future__`: it is compiled at every start, because the volume that it
comes from is read-only and the image's version of Python is not known beforehand.

Faults of our own code harm nobody; what others raise in the middle of it is theirs: see `faults`.
"""

import sys
from os import environ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

FRAMEWORKS = frozenset(("torch", "tensorflow", "jax", "cupy"))
SERVERS = frozenset(("vllm.v1.worker.gpu_worker", "vllm.worker.worker"))
"""Modules of inference servers that are about to start a GPU."""

_hiding: "dict[str, str]" = {}
"""Modules of the image that have run in the place of ours of that name, with the file of ours."""


class FirstImport:
    """A finder that finds what the others find, and listens to what we know among it."""

    def find_spec(
        self,
        name: str,
        path: "Sequence[str] | None" = None,
        target: "ModuleType | None" = None,
    ) -> "ModuleSpec | None":
        if target is not None and name in _hiding:
            # Executed again in the same module, it shall not find ours.
            return _hidden_by(name, _hiding[name])
        if name not in FRAMEWORKS and name not in SERVERS:
            return None
        try:
            from gpumem_shim import listener
        except Exception as error:
            if _is_theirs(error):
                raise
            return None
        return listener.find_spec(self, name, path, target)


def start(name: str, file: str) -> "ModuleSpec | None":
    """Hook the frameworks, once; returns the spec of the module `name` that ours hides, or None.

    `name` is sitecustomize or usercustomize, `file` where ours is. Never raises a fault of ours.
    """
    try:
        if not any(isinstance(finder, FirstImport) for finder in sys.meta_path):
            sys.meta_path.insert(0, FirstImport())
            if environ.get("GPUMEM_PYTHON_PATH") == "Added":
                from gpumem_shim import missing

                missing.listen()
            # usercustomize is what is left where another sitecustomize stands before ours, and
            # that one may have imported anything.
            for framework in FRAMEWORKS.intersection(sys.modules):
                from gpumem_shim import listener

                listener.imported(framework, sys.modules[framework])
        hidden = _hidden_by(name, file)
        if hidden is not None:
            _hiding[name] = file
        return hidden
    except Exception as error:
        if _is_theirs(error):
            raise
        return None


def _hidden_by(name: str, file: str) -> "ModuleSpec | None":
    from _frozen_importlib_external import PathFinder

    # Further down only: two installed shims must not hand on to each other for ever.
    below = sys.path.index(file.rpartition("/")[0]) + 1
    return PathFinder.find_spec(name, sys.path[below:])


def _is_theirs(error: Exception) -> bool:
    try:
        from gpumem_shim import faults
    except Exception:
        # Half a shim.
        return False
    return faults.is_theirs(error)
