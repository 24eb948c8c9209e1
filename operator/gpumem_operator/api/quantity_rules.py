"""What the API server says about a quantity: the sentences of `quantity.py`, in CEL.

A `pattern` would show people a regular expression, so the fields have none. Kubernetes' parser
takes more than memory can be: it reads "." and ".e3" as 0 and what is past 2**63 - 1 as 2**63 - 1,
and it calls 1.5Gi no integer because of how it is stored; hence the detours below. A quantity may
be a bare integer in YAML, for which `quantity()` has no overload: `string()` comes first always.
"""

from typing import Any, Final

from gpumem_operator.api.quantity import EXAMPLE, LARGEST_BYTES
from gpumem_operator.api.rules import VALIDATIONS, Rule, quoted

_TEXT: Final = "string(self)"
_AMOUNT: Final = f"quantity({_TEXT})"
_READABLE: Final = f"{_TEXT}.matches('^[-+]?[.]?[0-9]') && isQuantity({_TEXT})"
_LARGEST: Final = f"quantity('{LARGEST_BYTES}')"
# asApproximateFloat() is off by a fraction already at 1000Ti, and nothing rounds a quantity. So the
# amount is brought near 2**14 exactly, where the float is right to less than Kubernetes' smallest
# unit, 1n. (Comparing it with a quantity made from a number is beyond the server's cost limit.)
_NEAR: Final = f"{_AMOUNT}.sub(int({_AMOUNT}.asApproximateFloat()) - {2**14}).asApproximateFloat()"
_NEAREST: Final = f"double(int({_NEAR} + 0.5))"
_IS_WHOLE: Final = f"({_NEAR} - {_NEAREST} < 5e-10 && {_NEAREST} - {_NEAR} < 5e-10)"
# Beyond it the float may be 2**63, which int() refuses.
_TOO_NEAR_THE_END: Final = "quantity('9200P')"

_LOOSE: Final = f"{_TEXT}.upperAscii().replace(' ', '')"
_HINT: Final = (
    f"({_LOOSE}.matches('^[0-9]+([.][0-9]+)?[KMGTPE]I?B?$')"
    f" ? ': did you mean ' + {_LOOSE}.find('^[0-9.]+[KMGTPE]') + 'i?'"
    f" : {quoted(f': write for example {EXAMPLE}')})"
)


def readable(*paths: str) -> str:
    """CEL that holds where all these are quantities: elsewhere their own rules say so."""
    return " && ".join(f"isQuantity(string({path}))" for path in paths)


def compares(left: str, relation: str, right: str) -> str:
    """CEL that compares two quantities, and holds where one of them can not be read."""
    difference = f"quantity(string({left})).compareTo(quantity(string({right})))"
    return f"!({readable(left, right)}) || {difference} {relation} 0"


def _entry(rule: str, message: str, expression: str) -> dict[str, str]:
    return {
        "rule": rule,
        "message": message,
        "messageExpression": f'"\'" + {_TEXT} + "\' {message}"{expression}',
    }


QUANTITY_SCHEMA: Final[dict[str, Any]] = {
    # The order integer, string is the only one that the API server takes as structural.
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
    VALIDATIONS: [
        _entry(_READABLE, "is not a quantity", f" + {_HINT}"),
        _entry(
            f"!({_READABLE}) || sign({_AMOUNT}) >= 0",
            "is negative: an amount of memory is at least 0",
            "",
        ),
        _entry(
            f"!({_READABLE}) || {_TEXT} == '{LARGEST_BYTES}'"
            f" || {_AMOUNT}.compareTo({_LARGEST}) < 0",
            f"is more than the largest quantity, {LARGEST_BYTES} bytes",
            "",
        ),
        _entry(
            f"!({_READABLE}) || {_AMOUNT}.isInteger() || sign({_AMOUNT}) < 0"
            f" || {_AMOUNT}.compareTo({_TOO_NEAR_THE_END}) >= 0"
            f" || {_IS_WHOLE}",
            "is not a whole number of bytes: write for example 1536Mi",
            "",
        ),
    ],
}
"""A quantity of whole bytes between 0 and 2**63 - 1."""

POSITIVE: Final = Rule(
    cel=f"!({_READABLE}) || sign({_AMOUNT}) != 0",
    holds=lambda amount: amount > 0,
    sentence="must be more than 0",
)
