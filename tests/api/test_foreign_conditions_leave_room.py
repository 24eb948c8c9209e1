from __future__ import annotations

from gpumem_operator.api.conditions import MOST_CONDITIONS
from gpumem_operator.api.transitions import Finding, renew_conditions


def test_foreign_conditions_never_keep_ours_out() -> None:
    foreign = [
        {"type": f"T{number}", "status": "True", "reason": "x", "lastTransitionTime": "t"}
        for number in range(MOST_CONDITIONS)
    ]
    ours = [Finding("Ready", "True", "Applied", "fine")]
    renewed = renew_conditions(foreign, ours, generation=1, now="2026-01-01T00:00:00Z")
    assert len(renewed) == MOST_CONDITIONS
    assert "Ready" in {condition["type"] for condition in renewed}
