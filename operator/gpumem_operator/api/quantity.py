"""Kubernetes quantities of memory as whole bytes.

Python's int has no upper bound, Kubernetes' quantity ends at 2**63 - 1; anything above it, below
zero or not whole is an error with a message for people, never a rounded number.
"""

import re
from collections.abc import Iterable
from decimal import Context, Decimal
from functools import lru_cache
from typing import Final

LARGEST_BYTES: Final = 2**63 - 1
MIB: Final = 2**20
GIB: Final = 2**30
EXAMPLE: Final = "8Gi or 512Mi"

_BINARY: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15,
                   "E": 18}  # fmt: skip
_EXACT: Final = Context(prec=200)
_SHORT_CHARACTERS: Final = 6
"""1536Mi is as long as an exact amount is shown."""
_FORM: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?0*[0-9]{1,3}))?",
    re.ASCII,
)
_ALMOST: Final = re.compile(r"(?P<amount>[0-9]+(?:\.[0-9]+)?[KMGTPE])I?B?", re.ASCII)
"""8GB, 8 Gi, 8gib: what people write instead of 8Gi, in capitals and without blanks."""


class QuantityError(ValueError):
    """The text is not a quantity of whole bytes between 0 and 2**63 - 1."""


def parse_bytes(value: object) -> int:
    """Whole bytes of a quantity as Kubernetes reads it: `8Gi`, `1.5Gi`, `8G`, `1e3`, 8589934592.

    Raises QuantityError with a sentence that says what is wrong and what would be right.
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise QuantityError(f"{value!r} is not a quantity: write for example {EXAMPLE}")
    return _parse(str(value))


@lru_cache(maxsize=1024)
def _parse(text: str) -> int:
    match = _FORM.fullmatch(text) if len(text) <= 64 else None
    if match is None:
        raise QuantityError(f"{text[:64]!r} is not a quantity{_hint(text)}")
    if match["sign"] == "-" and Decimal(match["number"]) != 0:
        raise QuantityError(f"{text!r} is negative: an amount of memory is at least 0")
    amount = _EXACT.multiply(Decimal(match["number"]), _scale(match["suffix"], match["exponent"]))
    if amount != amount.to_integral_value():
        raise QuantityError(f"{text!r} is not a whole number of bytes: write for example 1536Mi")
    if amount > LARGEST_BYTES:
        raise QuantityError(f"{text!r} is more than the largest quantity, {LARGEST_BYTES} bytes")
    return int(amount)


def _scale(suffix: str | None, exponent: str | None) -> Decimal:
    if suffix in _BINARY:
        return Decimal(_BINARY[suffix])
    return Decimal(10) ** int(exponent if exponent is not None else _DECIMAL[suffix or ""])


def _hint(text: str) -> str:
    almost = _ALMOST.fullmatch(text.upper().replace(" ", ""))
    if almost is not None:
        return f": did you mean {almost['amount']}i?"
    return f": write for example {EXAMPLE}"


@lru_cache(maxsize=1024)
def format_bytes(amount: int) -> str:
    """The amount in the largest binary unit that shows it exactly, down to plain bytes.

    >>> format_bytes(8 * GIB), format_bytes(1536 * MIB), format_bytes(10**10)
    ('8Gi', '1536Mi', '10000000000')
    """
    for suffix, unit in reversed(_BINARY.items()):
        if amount and amount % unit == 0:
            return f"{amount // unit}{suffix}"
    return str(amount)


def show_bytes(amount: int) -> str:
    """The amount for people: exact where that is short, else with one decimal, rounded.

    >>> show_bytes(204 * GIB), show_bytes(238499220 * 2**10)
    ('204Gi', '227.5Gi')
    """
    exact = format_bytes(amount)
    if len(exact) <= _SHORT_CHARACTERS:
        return exact
    suffix, unit = max(
        (entry for entry in _BINARY.items() if entry[1] <= amount), key=lambda entry: entry[1]
    )
    return f"{amount / unit:.1f}{suffix}"


def show_apart(amount: int, other: int) -> str:
    """`show_bytes` of the amount, or all of it where the other one would read the same.

    >>> show_apart(5 * GIB + 2**20 + 1, 5 * GIB + 2**20), show_apart(5 * GIB, 4 * GIB)
    ('5369757697', '5Gi')
    """
    shown = show_bytes(amount)
    return format_bytes(amount) if amount != other and shown == show_bytes(other) else shown


def add_bytes(amounts: Iterable[int]) -> int:
    """The sum, or the largest quantity: a status can hold nothing above it."""
    return min(sum(amounts), LARGEST_BYTES)


def floor_to_mib(amount: int) -> int:
    """The amount rounded down to whole MiB, in bytes: the step in which drivers count limits."""
    return amount // MIB * MIB


def whole_number(text: str) -> int | None:
    """A number of at most 19 plain digits (what fits into 63 bits), or None for anything else."""
    fits = len(text) <= 19 and text.isascii() and text.isdecimal()
    return int(text) if fits else None


@lru_cache(maxsize=64)
def canonical(text: str) -> str:
    """The quantity as the API server stores it: `0.5` becomes `500m`, `1024Mi` becomes `1Gi`.

    Raises QuantityError. Source: Quantity.CanonicalizeBytes of k8s.io/apimachinery.
    """
    match = _FORM.fullmatch(text) if len(text) <= 64 else None
    if match is None or match["sign"]:
        raise QuantityError(f"{text[:64]!r} is not a quantity: write for example 500m or 96Mi")
    scale = _scale(match["suffix"], match["exponent"])
    amount = _EXACT.multiply(Decimal(match["number"]), scale)
    whole = amount == amount.to_integral_value()
    if match["suffix"] in _BINARY and amount >= 1024 and whole:
        return format_bytes(int(amount))
    if not amount:
        return "0"
    power = max((p for p in _DECIMAL.values() if not _rest(amount, p)), default=None)
    if power is None:
        raise QuantityError(f"{text!r} has more than nine decimal places")
    number = int(amount.scaleb(-power, _EXACT))
    if match["exponent"] is not None:
        return f"{number}e{power}" if power else str(number)
    return f"{number}{next(s for s, p in _DECIMAL.items() if p == power)}"


def _rest(amount: Decimal, exponent: int) -> bool:
    scaled = amount.scaleb(-exponent, _EXACT)
    return scaled != scaled.to_integral_value()
