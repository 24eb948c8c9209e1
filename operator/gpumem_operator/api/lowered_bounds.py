"""Values that were allowed when they were stored and are more than what is allowed now.

The API server keeps such an object as it is, and lets it be changed as long as the value stays.
Read as an error it would refuse every GPU pod of its namespace; so the bound counts, and that is
told.
"""

from collections.abc import Mapping
from typing import Any

from gpumem_operator.api.policy import MOST_INTERVAL_SECONDS


def within_bounds(spec: Any, *, at: str) -> tuple[Any, tuple[str, ...]]:
    """The raw spec of a policy at path `at` as it is read, and a sentence on each value that is
    read as another."""
    monitoring: Any = spec.get("monitoring") if isinstance(spec, Mapping) else None
    stored = monitoring.get("intervalSeconds") if isinstance(monitoring, Mapping) else None
    if type(stored) is not int or stored <= MOST_INTERVAL_SECONDS:
        return spec, ()
    lowered = {**monitoring, "intervalSeconds": MOST_INTERVAL_SECONDS}
    sentence = (
        f"{at}.monitoring.intervalSeconds {stored} is more than {MOST_INTERVAL_SECONDS}, which"
        " counts for new pods: numbers of more than 90 s are taken for unknown. Write"
        f" {MOST_INTERVAL_SECONDS} or less."
    )
    return {**spec, "monitoring": lowered}, (sentence,)
