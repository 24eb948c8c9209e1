"""One line more where a module is missing that a hidden PYTHONPATH may have had.

A container's PYTHONPATH, which the shim is found by, replaces the one of its image, and admission
can not see that one. Where it added the variable, it says so in GPUMEM_PYTHON_PATH.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

LINE = (
    "gpumem: PYTHONPATH was set by the GPU memory operator and hides the one of the image. If"
    " {name!r} is found there, name that path in the pod's annotation gpumemory.dev/python-path"
    " or in the policy's injection.imagePythonPath."
)


def listen() -> None:
    """Stand behind what tells of errors that nobody caught."""
    told = sys.excepthook

    def excepthook(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        told(kind, error, trace)
        if issubclass(kind, ModuleNotFoundError):
            print(LINE.format(name=getattr(error, "name", None)), file=sys.stderr)

    sys.excepthook = excepthook
