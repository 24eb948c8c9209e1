"""Whose exception it is that was caught around our own code.

A fault of ours stays in here: it becomes the reason of a cap that is not there, and the program
goes on. But Python runs others in the middle of our code too, and what they raise is the program's:

    KeyboardInterrupt, SystemExit  no Exception, never of our making: nothing in the shim catches it
    signal handlers and tracers    are handed the frame that they interrupt; nothing we call is
    what another thread throws     has no frame, and no `raise` that was come to. It is a class of a
                                   package that nothing we called belongs to, or one of Python's
                                   without a word of why

So where the shim catches Exception, it does so by `kept`, or asks `is_theirs` and raises it again.
What was interrupted counts as not done, and is done with the next call.
"""

from __future__ import annotations

import sys

from gpumem_shim import FRAMEWORKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType, TracebackType

STANDARD = frozenset(
    # Before 3.10 Python does not say what is its own: these have exceptions that we may see.
    getattr(sys, "stdlib_module_names", ("ctypes", "json", "struct", "zipimport"))
) | {"builtins"}
WORDLESS = (MemoryError, StopIteration)
"""Python itself raises these without a text."""
OURS = (__name__.partition(".")[0], "vllm", *FRAMEWORKS)
"""How packages begin in which our calls end: jaxlib and cupy_backends are among them."""
VARARGS = 0x04  # inspect.CO_VARARGS


def is_theirs(error: BaseException) -> bool:
    """Whether the program is to see it. Asked where it was caught, around code of ours."""
    if not isinstance(error, Exception):
        return True
    traces = list(_traces(error.__traceback__))
    frames = [trace.tb_frame for trace in traces]
    if any(_interrupts(frame) for frame in frames):
        return True
    return not (traces and _raises(traces[-1])) and _was_thrown(error, frames)


def _traces(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _interrupts(frame: FrameType) -> bool:
    """Whether Python ran it in the middle of another: then it has that one among its arguments.

    The other is often not in the traceback: Python takes its own importing out of it.
    """
    code, outer = frame.f_code, frame.f_back
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & VARARGS)
    arguments = [frame.f_locals.get(name) for name in code.co_varnames[:count]]
    return outer is not None and any(
        one is outer or (type(one) is tuple and any(part is outer for part in one))
        for one in arguments
    )


def _raises(trace: TracebackType) -> bool:
    """Whether it is a `raise` or `assert` that the program came to."""
    from opcode import opmap

    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == opmap["RAISE_VARARGS"]


def _was_thrown(error: Exception, frames: list[FrameType]) -> bool:
    home = _package(type(error).__module__)
    if home in STANDARD:
        return not error.args and not isinstance(error, WORDLESS)
    if home.startswith(OURS):
        return False
    return home not in {_package(frame.f_globals.get("__name__")) for frame in frames}


def _package(module: object) -> str:
    return str(module).partition(".")[0]


class Kept:
    """`with kept:` around code of ours: its faults stay in here, all else goes on its way."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        return error is not None and not is_theirs(error)


kept = Kept()
