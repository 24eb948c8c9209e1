"""Delete: like Evict, but disruption budgets are heeded for a while only."""

from datetime import datetime, timedelta

from gpumem_operator.enforcement.evict import no_further, removal, retry
from gpumem_operator.enforcement.facts import Facts
from gpumem_operator.enforcement.steps import RETRY_TIME, Doing, Step, is_recent


def step(facts: Facts, began: datetime, now: datetime) -> Step:
    """Evict, and delete once `evictionTimeoutSeconds` are over."""
    if stop := no_further(facts, now):
        return stop
    if now - began < timedelta(seconds=facts.settings.eviction_timeout_seconds):
        return retry(facts, now)
    # A deletion that failed is tried again, at the same pace.
    tried = facts.tried if facts.tried and facts.tried.result == "Failed" else None
    too_soon = tried is not None and is_recent(tried.at, now, RETRY_TIME)
    return Doing(None if too_soon else removal(facts, "Delete", now))
