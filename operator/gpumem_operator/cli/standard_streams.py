"""Standard streams that are closed, full or read by nobody any more: the exit code is 2 then.

1 says that a pod is refused, and Python, typer and rich end with it as well where they can not
write.
"""

import os
import sys
from collections.abc import Callable
from typing import Final, NoReturn

from gpumem_operator.cli.terminal import remark

CAN_NOT_BE_USED: Final = 2


def with_streams(command: Callable[[], None]) -> None:
    """Run a command to its end. Raises SystemExit with its code, or with 2 where nobody got all of
    its result."""
    output = sys.stdout
    if output is None:
        _end("is closed")
    try:
        command()
    except OSError as error:
        _end(f"can not be written: {error.strerror or error}")
    except SystemExit:
        if sys.stdout is not output:
            # typer has put another in its place: the reader of a pipe has enough, and knows it.
            sys.exit(CAN_NOT_BE_USED)
        raise


def _end(fault: str) -> NoReturn:
    # What is left in the buffer would fail once more when Python ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        remark(f"error: standard output {fault}: let it go to a file with room, or to a pipe")
    except OSError:
        os.dup2(1, 2)
    sys.exit(CAN_NOT_BE_USED)
