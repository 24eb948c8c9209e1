"""UsingMoreThanCharged: pods that were measured to hold more than their tenant pays for them.

One pod is enough: what others leave of their charge is theirs to take at any moment. Only numbers
count: a pod whose use or charge is not known is never said to hold more, nor to hold less.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from gpumem_operator.api import conditions
from gpumem_operator.api.measure import settled
from gpumem_operator.api.quantity import show_bytes
from gpumem_operator.api.transitions import Finding
from gpumem_operator.ledger.charged_pod import ChargedPod

MOST_LISTED: Final = 10
MOST_NAMED: Final = 3
NEXT_STEP: Final = (
    "Next step: declare what they need (resource nvidia.com/memory or annotation"
    " gpumemory.dev/limit) and create them again, or have their programs take less;"
    " `kubectl gpumem why pod/NAME` says what holds a pod's limit."
)

Row = Mapping[str, Any]


def pods_over_charge(
    pods: Iterable[ChargedPod], stored: Iterable[Row] = ()
) -> list[dict[str, Any]]:
    """Rows of the status, the furthest over first; `stored` are the present ones.

    A stored number stands while it is as good as the new one, and a stored pod keeps its place
    from one that is hardly further over: what measurement wavers by is no reason to write.
    """
    before = {(row.get("namespace"), row.get("name")): row.get("usedBytes") for row in stored}
    found = [_row(pod, before.get((pod.namespace, pod.name))) for pod in pods if _is_over(pod)]
    kept = sorted(found, key=lambda row: _standing(row, before))[:MOST_LISTED]
    return sorted(kept, key=lambda row: (-_over(row), row["namespace"], row["name"]))


def using_more_than_charged(pods: tuple[ChargedPod, ...], listed: list[dict[str, Any]]) -> Finding:
    """The condition of a tenant whose spec can be read; `listed` are its pods over charge."""
    kind = conditions.USING_MORE_THAN_CHARGED
    if listed:
        number = sum(_is_over(pod) for pod in pods)
        return Finding(kind, "True", conditions.HOLDS_MORE, _what_is_over(number, listed))
    unknown = [pod.title for pod in pods if _can_not_tell(pod)]
    if unknown:
        return Finding(
            kind,
            "Unknown",
            conditions.USE_UNKNOWN,
            f"Of {len(unknown)} of {len(pods)} pods it is not known whether they hold more than"
            f" they are charged, first {min(unknown)}; the others do not.",
        )
    return Finding(
        kind, "False", conditions.CHARGES_COVER_USE, "No pod holds more than it is charged."
    )


def _is_over(pod: ChargedPod) -> bool:
    used, charged = pod.measure.used_bytes, pod.charged_bytes
    return used is not None and charged is not None and used > charged


def _can_not_tell(pod: ChargedPod) -> bool:
    used = pod.measure.used_bytes
    return pod.measure.missing or (pod.charged_bytes is None and bool(used))


def _row(pod: ChargedPod, stored: int | None) -> dict[str, Any]:
    charged, measured = pod.charged_bytes or 0, pod.measure.used_bytes
    shown = settled(measured, stored)
    # It is over now, so no number that says otherwise may be shown.
    used = measured if shown is None or shown <= charged else shown
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "chargedBytes": charged,
        "usedBytes": used,
    }


def _over(row: Row) -> int:
    over: int = row["usedBytes"] - row["chargedBytes"]
    return over


def _standing(row: Row, before: Mapping[Any, Any]) -> tuple[int, bool, str, str]:
    place = (row["namespace"], row["name"])
    new = place not in before
    handicap = row["usedBytes"] // 100 if new else 0
    return (handicap - _over(row), new, *place)


def _what_is_over(number: int, listed: list[dict[str, Any]]) -> str:
    named = "; ".join(
        f"{row['namespace']}/{row['name']} holds {show_bytes(row['usedBytes'])},"
        f" {show_bytes(_over(row))} above its charge of {show_bytes(row['chargedBytes'])}"
        for row in listed[:MOST_NAMED]
    )
    what = "1 pod holds" if number == 1 else f"{number} pods hold"
    more = f"; and {number - MOST_NAMED} more" if number > MOST_NAMED else ""
    return f"{what} more GPU memory than charged: {named}{more}. {NEXT_STEP}"
