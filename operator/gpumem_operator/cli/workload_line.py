"""One line about all pods of a workload. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gpumem_operator.api.count import count
from gpumem_operator.api.quantity import add_bytes, show_bytes

Row = Mapping[str, Any]


def workload_line(title: str, rows: Sequence[Row], number: int) -> str:
    """`rows` are of the pods that are shown, of `number` in all."""
    if not number:
        return f"{title} has no pod now."
    phases = Counter(str(row.get("phase")) for row in rows)
    shown = ", ".join(f"{many} {phase}" for phase, many in sorted(phases.items()))
    return f"{title}: {count(number, 'pod')} ({shown}); {_held(rows)}"


def _held(rows: Sequence[Row]) -> str:
    known = [row["usedBytes"] for row in rows if row.get("usedBytes") is not None]
    unknown = len(rows) - len(known)
    if not known:
        return "what they hold is not known"
    missing = f", and {count(unknown, 'pod')} an unknown amount" if unknown else ""
    return f"together they hold {show_bytes(add_bytes(known))}{missing}"
