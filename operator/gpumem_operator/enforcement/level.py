"""How much of its limit a pod holds: the one judgement that everything else follows from."""

from enum import StrEnum
from typing import Final

from gpumem_operator.enforcement.facts import NEAR_LIMIT, Facts
from gpumem_operator.enforcement.sentences import near_percent

_RELIEF_PERCENT: Final = 5
"""So much below the threshold a warned pod has to be before it is warned of again."""


class Level(StrEnum):
    """Unknown is none of the others: nothing begins and nothing ends by it."""

    WITHIN = "Within"
    NEAR = "Near"
    OVER = "Over"
    UNKNOWN = "Unknown"


def level_of(facts: Facts) -> Level:
    """Over where a container is known to be over its limit on a GPU, whatever else is unknown;
    Within and Near only where everything is known."""
    if any(hold.is_over for hold in facts.holds):
        return Level.OVER
    if any(not hold.used.known for hold in facts.holds):
        return Level.UNKNOWN
    percent = facts.settings.warn_percent - (_RELIEF_PERCENT if _was_near(facts) else 0)
    near = any((hold.used.bytes or 0) * 100 > hold.limit_bytes * percent for hold in facts.holds)
    return Level.NEAR if near else Level.WITHIN


def _was_near(facts: Facts) -> bool:
    """By the threshold of today: another one counts at once."""
    if facts.stored is None or facts.stored.reason != NEAR_LIMIT:
        return False
    return near_percent(facts.stored.message) in (None, facts.settings.warn_percent)
