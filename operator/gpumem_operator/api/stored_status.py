"""Whether a stored status says what is wanted: nothing is written where nothing changed."""

from collections.abc import Mapping
from typing import Any


def differs(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether the fields of `wanted` are stored otherwise; an absent list is an empty one."""
    return any(
        stored.get(key, [] if isinstance(value, list) else None) != _without_nulls(value)
        for key, value in wanted.items()
    )


def _without_nulls(value: Any) -> Any:
    """The value as it is stored: a null takes a field of an object away."""
    if not isinstance(value, Mapping):
        return value
    return {key: _without_nulls(field) for key, field in value.items() if field is not None}
