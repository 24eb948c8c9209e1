"""What `charge` found as text for people: quantities instead of bytes."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpumem_operator.api.quantity import show_bytes
from gpumem_operator.cli.columns import in_columns


def charge_table(pods: Sequence[Mapping[str, Any]], tenants: Sequence[Mapping[str, Any]]) -> str:
    """The rows of both parts in columns; nothing for a part that has no rows."""
    parts = []
    if pods:
        head = ("NAMESPACE", "NAME", "REPLICAS", "POLICY", "CHARGE", "LIMITS PER GPU")
        parts.append(_columns([head, *(_pod_row(row) for row in pods)]))
    if tenants:
        parts.append(_columns([("TENANT", "CHARGED", "LIMIT", "FITS"), *map(_tenant_row, tenants)]))
    return "\n".join(parts)


def _pod_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    containers = ", ".join(_container(entry) for entry in row["containers"])
    return (
        row["namespace"],
        row["name"],
        str(row.get("replicas", 1)),
        row["policy"] or "-",
        _amount(row["chargeBytes"], absent="unknown"),
        containers or "-",
    )


def _container(entry: Mapping[str, Any]) -> str:
    limit = _amount(entry["limitBytes"], absent="none")
    return f"{entry['name']} {entry['gpus']} x {limit} ({entry['source']})"


def _tenant_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    over = row["chargedBytes"] - row["limitBytes"]
    fits = "yes" if row["fits"] else f"no, {show_bytes(over)} too much"
    return row["name"], show_bytes(row["chargedBytes"]), show_bytes(row["limitBytes"]), fits


def _amount(amount: int | None, *, absent: str) -> str:
    return absent if amount is None else show_bytes(amount)


def _columns(rows: Sequence[tuple[str, ...]]) -> str:
    return "".join(f"{line}\n" for line in in_columns(rows))
