"""One metric of a page in Prometheus' text format.

The page is somebody else's, and it is read between the leader's other work: its size bounds what it
costs, whatever is in it.
"""

import math
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

NO_SUCH_METRIC: Final = "NoSuchMetric"
NOT_A_NUMBER: Final = "NotANumber"
TOO_MANY_SERIES: Final = "TooManySeries"
LINE_TOO_LONG: Final = "LineTooLong"

MOST_SERIES: Final = 256
"""Of one metric. An engine has one for each model or rank."""
LONGEST_LINE: Final = 2048
"""Bytes of one series, with its labels."""
_LABELS: Final = rb'(?:\{(?:[^"{}]++|"(?:[^"\\]++|\\.)*+")*+\})?'
_REST: Final = re.compile(_LABELS + rb"[ \t]+(\S+)(?:[ \t]+-?\d+)?[ \t\r]*")
"""What follows the name: labels, the value, and perhaps a time."""


class UnreadableSignal(Exception):
    """The page does not say it; the text is one word for programs."""


def value_of(page: bytes, metric: str) -> Fraction:
    """The mean of the metric's series: an engine may have one for each model or rank.

    Raises UnreadableSignal where there is none, or one that is negative or no finite number, or
    where they are too many or too long.
    """
    values: list[float] = []
    for rest in _after(page, metric.encode()):
        if match := _REST.fullmatch(rest):
            values.append(_number(match[1]))
        if len(values) > MOST_SERIES:
            raise UnreadableSignal(TOO_MANY_SERIES)
    if not values:
        raise UnreadableSignal(NO_SUCH_METRIC)
    try:
        return Fraction(math.fsum(values) / len(values))
    except OverflowError:
        raise UnreadableSignal(NOT_A_NUMBER) from None


def _after(page: bytes, metric: bytes) -> Iterator[bytes]:
    """What follows the name in lines that begin with it and with no longer name."""
    named = re.compile(rb"^" + re.escape(metric) + rb"(?=[{ \t])", re.MULTILINE)
    for match in named.finditer(page):
        begin, end = match.end(), page.find(b"\n", match.end())
        rest = page[begin : end if end >= 0 else len(page)]
        if len(rest) > LONGEST_LINE:
            raise UnreadableSignal(LINE_TOO_LONG)
        yield rest


def _number(text: bytes) -> float:
    try:
        number = float(text)
    except ValueError:
        raise UnreadableSignal(NOT_A_NUMBER) from None
    if not math.isfinite(number) or number < 0:
        raise UnreadableSignal(NOT_A_NUMBER)
    return number
