"""One line more where a module is missing that a hidden PYTHONPATH may have had.

A container's PYTHONPATH, which the shim is found by, replaces the one of its image, and admission
can not see that one. Where it added the variable, it says so in GPUMEM_PYTHON_PATH.

The line comes when the program has ended by that error, and `sys.excepthook` stays what it is: that
one is compared, called and replaced by consoles, test runners and loggers.
"""

from __future__ import annotations

import atexit
import sys

LINE = (
    "gpumem: PYTHONPATH was set by the GPU memory operator and hides the one of the image. If"
    " {name!r} is found there, name that path in the pod's annotation gpumemory.dev/python-path"
    " or in the policy's injection.imagePythonPath.\n"
)
INTERACTIVE = "ps1"
"""What `sys` has where errors are shown and the program goes on."""


def listen() -> None:
    """From now on."""
    atexit.register(_tell)


def _tell() -> None:
    # Python has it from what ended the program; a console inside it, from what was typed last.
    error = getattr(sys, "last_value", None)
    if isinstance(error, ModuleNotFoundError) and error.name and _ended_the_program(error):
        try:
            sys.stderr.write(LINE.format(name=error.name))
        except Exception:
            # It is closed, or there is none.
            return


def _ended_the_program(error: ModuleNotFoundError) -> bool:
    trace = error.__traceback__
    if trace is None or hasattr(sys, INTERACTIVE):
        return False
    # It came out of the program, or of what Python runs it by.
    start = trace.tb_frame.f_globals
    return start is vars(sys.modules["__main__"]) or start.get("__name__") == "runpy"
