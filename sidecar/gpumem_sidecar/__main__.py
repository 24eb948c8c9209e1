"""The command `python -m gpumem_sidecar`: measures, reports and answers its probe until told."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from gpumem_sidecar import settings as read_settings
from gpumem_sidecar.health import serve
from gpumem_sidecar.loop import Measuring, Rhythm, turn
from gpumem_sidecar.pulse import Pulse
from gpumem_sidecar.report import Header, full
from gpumem_sidecar.reporter import Reporter, new_start
from gpumem_sidecar.settings import HEALTH_PORT_ENV, REPORT_CA_ENV, REPORT_URL_ENV, Settings

ENDING = (signal.SIGTERM, signal.SIGINT)


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Serve until SIGTERM or SIGINT; the exit status is 2 where a setting is wrong."""
    # Blocked before any thread exists, so that whichever is told first, this one hears it; and so
    # that they are heard at all as process 1, to which ignored signals are not even delivered.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        settings = read_settings.read(arguments, environment)
        rhythm = Rhythm(settings.interval_seconds)
        reporter = _reporter(settings, rhythm) if settings.report_url else None
    except ValueError as error:
        print(f"gpumem_sidecar: {error}", file=sys.stderr)
        return 2
    if settings.once:
        return _print_one(settings)
    pulse = Pulse(settings.interval_seconds)
    try:
        with serve(settings.health_port, pulse.is_alive):
            _run(settings, rhythm, pulse, reporter)
    except OSError as error:
        print(
            f"gpumem_sidecar: port {settings.health_port} can not be served: {error.strerror}."
            f" Next step: set {HEALTH_PORT_ENV} to a port that nothing else in the pod uses",
            file=sys.stderr,
        )
        return 1
    return 0


def _reporter(settings: Settings, rhythm: Rhythm) -> Reporter:
    # Only where something is sent: TLS is a quarter of the memory of this process.
    from gpumem_sidecar.channel import Channel
    from gpumem_sidecar.hands import Hands
    from gpumem_sidecar.outbox import Outbox
    from gpumem_sidecar.trust import Trust

    try:
        trust = Trust(settings.report_ca, settings.report_ca_file)
        channel = Channel(settings.report_url, trust, settings.token_file)
    except ValueError as error:
        raise ValueError(f"{REPORT_URL_ENV} or {REPORT_CA_ENV} is wrong: {error}") from error
    outbox = Outbox("NodeAgent" if settings.agent else "Sidecar", new_start())
    return Reporter(
        outbox, channel, _news(), rhythm.set_urgent, carry_out=Hands(settings).carry_out
    )


def _run(settings: Settings, rhythm: Rhythm, pulse: Pulse, reporter: Reporter | None) -> None:
    take = reporter.take if reporter else lambda _, __: None
    measuring = Measuring(settings)
    if reporter:
        threading.Thread(target=reporter.run, daemon=True, name="reporter").start()
    loop = (measuring, rhythm, pulse, take, _news())
    threading.Thread(target=turn, args=loop, daemon=True, name="sampler").start()
    # All threads are daemons: one that NVML holds in the kernel could not be waited for.
    signal.sigwait(ENDING)
    rhythm.end()
    if reporter:
        reporter.end()


def _print_one(settings: Settings) -> int:
    measuring, began = Measuring(settings), time.monotonic()
    picture = measuring.sampler.sample()
    age = round((time.monotonic() - began) * 1000)
    header = Header("NodeAgent" if settings.agent else "Sidecar", new_start(), 0, age)
    print(json.dumps(full(header, picture)))
    return 0


def _news() -> Callable[[str], None]:
    """Prints a sentence when it differs from the last one; what is wrong with the settings goes to
    the standard error, this is the log."""
    last = ""

    def say(text: str) -> None:
        nonlocal last
        if text != last:
            last = text
            # Whoever reads the log may have gone: that ends no thread that measures or reports.
            with suppress(OSError):
                print(f"gpumem_sidecar: {text}", flush=True)

    return say


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
