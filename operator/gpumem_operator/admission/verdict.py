"""The answer of admission as data; only the webhook's shell turns it into a response."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.api.count import count
from gpumem_operator.api.printable import one_line
from gpumem_operator.api.violation import Violation

Operation = Mapping[str, Any]
"""One operation of a JSON patch (RFC 6902): `{"op": "add", "path": ..., "value": ...}`."""


@dataclass(frozen=True)
class Verdict:
    """What happens to one pod. With a refusal there are no operations."""

    operations: tuple[Operation, ...] = ()
    """The JSON patch; empty where nothing has to change."""
    warnings: tuple[str, ...] = ()
    """Shown to whoever created the pod; each at most 256 characters is shown whole by kubectl."""
    refusal: str | None = None
    """Why the pod is refused: every reason with its path, then the next step."""
    code: int = 403
    """HTTP status of a refusal: 403 by rule, 500 where something could not be read."""


_SHOWN: Final = 10
_WARNINGS: Final = 16
_LONGEST_WARNING: Final = 256


def refusal(
    title: str, violations: Sequence[Violation], *, next_step: str, code: int = 403
) -> Verdict:
    """A refusal that names the pod, every fault with its path, and what to do."""
    faults = [str(violation) for violation in violations[:_SHOWN]]
    if len(violations) > _SHOWN:
        faults.append(f"and {len(violations) - _SHOWN} more")
    text = one_line("; ".join(faults))
    return Verdict(refusal=f"GPU pod {title} is refused: {text} ({one_line(next_step)})", code=code)


def shown_warnings(texts: Sequence[str]) -> tuple[str, ...]:
    """Warnings in the number and length that reach people: kubectl shows 4096 characters of all."""
    shown = [f"{names.GROUP}: {one_line(text)}" for text in texts[:_WARNINGS]]
    if len(texts) > _WARNINGS:
        shown.append(f"{names.GROUP}: and {count(len(texts) - _WARNINGS, 'more warning')}")
    return tuple(
        text if len(text) <= _LONGEST_WARNING else f"{text[: _LONGEST_WARNING - 3]}..."
        for text in shown
    )
