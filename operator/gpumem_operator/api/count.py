"""A number of things, in words."""


def count(number: int, noun: str) -> str:
    """`1 pod`, `2 pods`, `0 processes`, `1 more container`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}{'es' if noun.endswith('s') else 's'}"
