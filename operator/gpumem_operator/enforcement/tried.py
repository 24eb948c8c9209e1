"""Which actions were tried since a pod went over its limit, as the message of its condition tells.

The condition is all that the next leader has, so this sentence is read again as well as written.
"""

import re
from collections.abc import Sequence
from typing import Final, get_args

from gpumem_operator.enforcement.facts import Action

_BEGINNING: Final = "Tried so far: "
_SENTENCE: Final = re.compile(rf"{_BEGINNING}([A-Za-z, ]+)\.$")


def tried_so_far(actions: Sequence[Action]) -> str:
    """The last sentence of the message, without its full stop; empty where none was tried."""
    return f"{_BEGINNING}{', '.join(actions)}" if actions else ""


def tried_in(message: str) -> tuple[Action, ...]:
    """What such a message says; none for messages of other conditions."""
    found = _SENTENCE.search(message)
    words = found[1].split(", ") if found else []
    known: tuple[Action, ...] = get_args(Action)
    return tuple(action for action in known if action in words)
