"""From the bytes of a body to a report, at a bounded cost for whoever else waits.

The loop that takes reports in renews the lease as well. So objects are counted before any is made
(an object of an honest report has 64 bytes and more, a hostile one needs 11), and what may take
longer than some milliseconds is checked in a thread, one report at a time.
"""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from pydantic import ValidationError

from gpumem_operator.intake.answers import Refusal, faults_of
from gpumem_operator.reports.report import Report

BYTES_OF_OBJECT: Final = 64
_AT_ONCE: Final = 16 * 2**10
"""Bytes that are checked without a thread: the reports of nearly all sidecars."""


class Bodies:
    """Reads reports until it is closed."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reports")

    async def read(self, body: bytes, largest: int) -> Report:
        """The report of a sender that may send `largest` bytes. Raises Refusal with 400 or 413."""
        most = largest // BYTES_OF_OBJECT
        if (objects := body.count(b"{")) > most:
            raise Refusal(413, f"{objects} objects are more than {most}")
        if len(body) <= _AT_ONCE:
            return _report(body)
        return await asyncio.get_running_loop().run_in_executor(self._thread, _report, body)

    def close(self) -> None:
        """Wait for no report any more."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _report(body: bytes) -> Report:
    try:
        report = Report.model_validate_json(body)
        json.loads(body, object_pairs_hook=_once)
    except ValidationError as error:
        raise Refusal(400, faults_of(error)) from None
    except (ValueError, RecursionError) as error:
        raise Refusal(400, str(error)) from None
    return report


def _once(pairs: list[tuple[str, Any]]) -> None:
    """Of a key that is there twice, one reader takes the first value and another one the last."""
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("body: an object has a key twice")
