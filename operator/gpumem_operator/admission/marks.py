"""Labels and annotations of a handled pod: for finding it, and for people."""

from collections.abc import Sequence
from typing import Final, Protocol

from gpumem_operator import names
from gpumem_operator.admission.decider import Decider
from gpumem_operator.admission.declaration import Declaration, Declarations
from gpumem_operator.api.count import count
from gpumem_operator.api.managers import Manager
from gpumem_operator.api.quantity import format_bytes
from gpumem_operator.api.violation import Violation

_SHOWN_ROWS: Final = 8
_SHOWN_CHARACTERS: Final = 400


class Would(Protocol):
    """What a policy that only observes would have done."""

    @property
    def declarations(self) -> Declarations: ...
    @property
    def violations(self) -> tuple[Violation, ...]: ...


def labels(decider: Decider) -> dict[str, str]:
    marks = {names.MANAGED_LABEL: "true"}
    if decider.policy_name is not None:
        marks[names.POLICY_LABEL] = decider.policy_name
    return marks


def annotations(
    declarations: Declarations,
    decider: Decider,
    would: Would | None = None,
    *,
    others: str = "",
) -> dict[str, str]:
    marks = {names.SUMMARY_ANNOTATION: _summary(declarations, decider, would) + others}
    if decider.spec is not None:
        marks[names.POLICY_HASH_ANNOTATION] = decider.spec.pod_fingerprint
    return marks


def others(managers: Sequence[Manager], limited_by: Sequence[Manager]) -> str:
    """Who else manages the pod, as the end of its summary; empty where nobody does."""
    if not managers:
        return ""
    text = f"; also managed by {', '.join(map(str, managers))}"[:_SHOWN_CHARACTERS]
    if not limited_by:
        return text
    named = ", ".join(one.name for one in limited_by)
    return f"{text}: shim, framework variables and sidecar are left out for {named}"


def node_affinity(label: str | None) -> dict[str, str]:
    return {} if label is None else {names.NODE_AFFINITY_ANNOTATION: label}


def reservation(*, reserves: bool) -> dict[str, str]:
    return {names.RESERVE_LABEL: "true"} if reserves else {}


def _summary(declarations: Declarations, decider: Decider, would: Would | None) -> str:
    """One line for people; bounded, because a pod may have hundreds of containers."""
    mode = f" ({decider.spec.mode})" if decider.spec else ""
    text = f"{decider.title}{mode}: {_rows_in_words(declarations)}"
    if would is None:
        return text
    if would.violations:
        return f"{text}; Active would refuse it: {str(would.violations[0])[:_SHOWN_CHARACTERS]}"
    return f"{text}; Active would say: {_rows_in_words(would.declarations)}"


def _rows_in_words(declarations: Declarations) -> str:
    rows = [_row_in_words(row) for row in declarations.rows[:_SHOWN_ROWS]]
    if len(declarations.rows) > _SHOWN_ROWS:
        rows.append(f"and {count(len(declarations.rows) - _SHOWN_ROWS, 'more container')}")
    return "; ".join(rows)


def _row_in_words(row: Declaration) -> str:
    gpus = row.container.gpu_count
    count = {0: "the GPUs that it sees", 1: "1 GPU"}.get(gpus, f"{gpus} GPUs")
    if row.limit_bytes is None:
        return f"{row.container.name} {count}, no limit"
    limit = format_bytes(row.limit_bytes)
    where = count if gpus == 1 else f"each of {count}"
    source = f"{row.filled_from}, filled in" if row.filled_from else row.source
    return f"{row.container.name} {limit} on {where} ({source})"
