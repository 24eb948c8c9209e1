"""Labels and annotations of a handled pod: for finding it, and for people."""

from gpumem_operator import names
from gpumem_operator.admission.decider import Decider
from gpumem_operator.admission.declaration import Declaration, Declarations
from gpumem_operator.api.quantity import format_bytes


def labels(decider: Decider) -> dict[str, str]:
    marks = {names.MANAGED_LABEL: "true"}
    if decider.policy_name is not None:
        marks[names.POLICY_LABEL] = decider.policy_name
    return marks


def annotations(declarations: Declarations, decider: Decider) -> dict[str, str]:
    marks = {names.SUMMARY_ANNOTATION: _summary(declarations, decider)}
    if decider.spec is not None:
        marks[names.POLICY_HASH_ANNOTATION] = decider.spec.pod_fingerprint
    return marks


def _summary(declarations: Declarations, decider: Decider) -> str:
    """One line for people; bounded, because a pod may have hundreds of containers."""
    rows = [_row_in_words(row) for row in declarations.rows[:8]]
    if len(declarations.rows) > 8:
        rows.append(f"and {len(declarations.rows) - 8} more containers")
    mode = f" ({decider.spec.mode})" if decider.spec else ""
    return f"{decider.title}{mode}: {'; '.join(rows)}"


def _row_in_words(row: Declaration) -> str:
    gpus = row.container.gpu_count
    count = "1 GPU" if gpus == 1 else f"{gpus} GPUs"
    if row.limit_bytes is None:
        return f"{row.container.name} {count}, no limit"
    limit = format_bytes(row.limit_bytes)
    where = f"each of {count}" if gpus > 1 else count
    return f"{row.container.name} {limit} on {where} ({row.source})"
