"""How long ago something was, for people. Pure."""

from datetime import UTC, datetime
from typing import Final

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


def ago(time: str, now: datetime | None) -> str:
    """`4 min ago`, from a time as the API server writes it; empty where either is not known.

    Less than a minute is not counted, so that two looks at the same thing say the same.
    """
    moment = _read(time)
    if moment is None or now is None:
        return ""
    seconds = (now - moment).total_seconds()
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "less than a minute ago"


def _read(time: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(time)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
