"""What people read about a pod's use: numbers first, then what follows."""

import re

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
    share = f"{worst.used.bytes * 100 // worst.limit_bytes} %"
    # By percent and in rounded amounts a little above the limit reads like the limit.
    how_far = f"{share}, {show_bytes(worst.excess_bytes)} too much" if worst.is_over else share
    return (
        f"Container {worst.container} holds {show_bytes(worst.used.bytes)} of its limit of"
        f" {show_bytes(worst.limit_bytes)} on {worst.gpu} ({how_far})"
    )


def what_follows(facts: Facts) -> str:
    """What happens to a pod that stays over its limit, by mode."""
    seconds = facts.settings.grace_period_seconds
    if facts.mode == "Enforce":
        return f"If it stays above for {seconds} s, this follows: {in_order(facts)}. {_NEXT_STEP}"
    if facts.mode == "Warn":
        return f"The policy's mode is Warn, so nothing is done. {_NEXT_STEP}"
    return f"If it stays above for {seconds} s, it is recorded that mode Enforce would act"


def what_an_excess_brings(facts: Facts) -> str:
    """To a pod near its limit, by mode."""
    near = f"Above {facts.settings.warn_percent} % it is near its limit"
    if facts.mode == "Enforce":
        seconds = facts.settings.grace_period_seconds
        return f"{near}; an excess of {seconds} s is followed by: {in_order(facts)}"
    word = "told" if facts.mode == "Warn" else "recorded"
    return f"{near}; an excess is {word}, and nothing is done about it (mode {facts.mode})"


def taken_away(message: str) -> str:
    """What its people read about a pod that was evicted or deleted, and can do for the next."""
    return f"{message.rstrip('.')}. {_NEXT_STEP}"


def near_percent(message: str) -> int | None:
    """Of which threshold a message of the last kind tells."""
    found = re.search(r"Above (\d+) % it is near", message)
    return int(found[1]) if found else None


def would_have(facts: Facts) -> str:
    """What mode Enforce would have done."""
    return f"Mode Enforce would have done: {in_order(facts)}"


def says(message: str, sentence: str) -> bool:
    """Whether a condition's message ends with this sentence, so that nothing new follows."""
    return message.endswith(f"{sentence}.")


def in_order(facts: Facts) -> str:
    """The policy's actions."""
    return ", then ".join(facts.settings.actions) or "nothing (spec.enforcement.actions is empty)"


def nothing_left(facts: Facts) -> str:
    """The policy has no action that was not tried, and what helps now."""
    actions = facts.settings.actions
    ways = ["use less in the program", "declare more"]
    if not {"Evict", "Delete"} & set(actions):
        ways.append("add Evict to spec.enforcement.actions")
    elif facts.ending is not None:
        ways.append("look at the kubelet of its node, which has not ended the pod")
    elif "Delete" not in actions:
        ways.append("add Delete to spec.enforcement.actions, which does not wait for budgets")
    tried = "All actions of the policy were tried" if actions else "The policy lists no actions"
    return f"{tried}. Next step: {', '.join(ways[:-1])}, or {ways[-1]}"


_NEXT_STEP = "Next step: use less in the program (smaller batches, emptied caches), or declare more"
