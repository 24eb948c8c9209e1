"""The command `python -m gpumem_sidecar`: answers its probe until it is told to end."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping

from gpumem_sidecar.health import serve

HEALTH_PORT_ENV = "GPUMEM_HEALTH_PORT"
DEFAULT_HEALTH_PORT = 9433

ENDING = (signal.SIGTERM, signal.SIGINT)


def main(environment: Mapping[str, str]) -> int:
    """Serve until SIGTERM or SIGINT; the exit status is 2 where a variable is wrong."""
    # Blocked before any thread exists, so that whichever is told first, this one hears it; and so
    # that they are heard at all as process 1, to which ignored signals are not even delivered.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    text = environment.get(HEALTH_PORT_ENV) or str(DEFAULT_HEALTH_PORT)
    if not text.isdecimal() or not 0 < int(text) < 65536:
        print(
            f"gpumem_sidecar: {HEALTH_PORT_ENV} is {text!r}, and a port from 1 to 65535 is needed",
            file=sys.stderr,
        )
        return 2
    try:
        with serve(int(text)):
            signal.sigwait(ENDING)
    except OSError as error:
        print(
            f"gpumem_sidecar: port {text} can not be served: {error.strerror}."
            f" Next step: set {HEALTH_PORT_ENV} to a port that nothing else in the pod uses",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(os.environ))
