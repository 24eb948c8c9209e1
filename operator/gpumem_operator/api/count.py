"""A number of things, in words."""

from collections.abc import Sequence


def count(number: int, noun: str) -> str:
    """`1 pod`, `2 pods`, `0 processes`, `1 more container`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}{'es' if noun.endswith('s') else 's'}"


def named(names: Sequence[str], *, most: int = 3) -> str:
    """The first names, and how many more there are: `a, b, c and 2 more`."""
    left = len(names) - most
    shown = ", ".join(names[:most])
    return f"{shown} and {left} more" if left > 0 else shown
