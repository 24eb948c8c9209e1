"""One metric of a page in Prometheus' text format."""

import math
import re
from fractions import Fraction
from typing import Final

NO_SUCH_METRIC: Final = "NoSuchMetric"
NOT_A_NUMBER: Final = "NotANumber"
_LABELS: Final = r'(?:\{(?:[^"{}]|"(?:[^"\\]|\\.)*")*\})?'
_REST: Final = re.compile(_LABELS + r"[ \t]+(\S+)(?:[ \t]+-?\d+)?[ \t]*")
"""What follows the name: labels, the value, and perhaps a time."""


class UnreadableSignal(Exception):
    """The page does not say it; the text is one word for programs."""


def value_of(page: str, metric: str) -> Fraction:
    """The mean of the metric's series: an engine may have one for each model or rank.

    Raises UnreadableSignal where there is none, or one that is negative or no finite number.
    """
    values = []
    for line in page.splitlines():
        if line.startswith(metric) and (match := _REST.fullmatch(line, len(metric))):
            values.append(_number(match[1]))
    if not values:
        raise UnreadableSignal(NO_SUCH_METRIC)
    return sum(values, Fraction()) / len(values)


def _number(text: str) -> Fraction:
    try:
        number = float(text)
    except ValueError:
        raise UnreadableSignal(NOT_A_NUMBER) from None
    if not math.isfinite(number) or number < 0:
        raise UnreadableSignal(NOT_A_NUMBER)
    return Fraction(number)
