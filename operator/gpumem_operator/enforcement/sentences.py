"""What people read about a pod's use: numbers first, then what follows."""

from gpumem_operator.api.quantity import show_bytes
from gpumem_operator.enforcement.facts import Facts


def now_holds(facts: Facts) -> str:
    """The container that is worst off, with its numbers; empty where nothing is known."""
    worst = facts.worst
    if worst is None or worst.used.bytes is None:
        return ""
    if worst.astray:
        held = show_bytes(worst.used.bytes)
        return f"Container {worst.container} holds {held} on {worst.gpu}: {worst.astray}"
    percent = worst.used.bytes * 100 // worst.limit_bytes
    return (
        f"Container {worst.container} holds {show_bytes(worst.used.bytes)} of its limit of"
        f" {show_bytes(worst.limit_bytes)} on {worst.gpu} ({percent} %)"
    )


def what_follows(facts: Facts) -> str:
    """What happens to a pod that stays over its limit, by mode."""
    seconds = facts.settings.grace_period_seconds
    actions = ", then ".join(facts.settings.actions)
    if facts.mode == "Enforce":
        return f"If it stays above for {seconds} s, this follows: {actions}. {_NEXT_STEP}"
    if facts.mode == "Warn":
        return f"The policy's mode is Warn, so nothing is done. {_NEXT_STEP}"
    return f"If it stays above for {seconds} s, it is recorded that mode Enforce would act"


_NEXT_STEP = "Next step: use less in the program (smaller batches, emptied caches), or declare more"
