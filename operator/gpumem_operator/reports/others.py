"""What agents see held by pods that nothing is asked about: they ask for no GPU, or have ended.

No limit holds it, no tenant is charged for it, and a card has it in its part of others, unnamed.
Only an agent's word counts here: a pod's own sender would speak of pods that have one.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from gpumem_operator.reports.measured import bare_id
from gpumem_operator.reports.pictures import Amount, Picture, ProcessReading, Sender
from gpumem_operator.reports.uses import rows_of

MOST: Final = 256
"""Of one node, the largest first."""


@dataclass(frozen=True, slots=True)
class OtherUse:
    """What one container of such a pod holds on one GPU."""

    node: str
    pod_uid: str
    container_id: str
    """Without its runtime; empty where the agent does not know it."""
    gpu: str
    amount: Amount
    processes: int


def others_of(pictures: Mapping[Sender, Picture], asked: Collection[str]) -> tuple[OtherUse, ...]:
    """By node and size; `pictures` are fresh ones, `asked` has the uids of the pods measured."""
    found: list[OtherUse] = []
    for (kind, node), picture in pictures.items():
        if kind == "NodeAgent":
            uses = _on_node(node, picture, asked)
            found += sorted(uses, key=lambda use: (-use.amount.floor, use.pod_uid, use.gpu))[:MOST]
    return tuple(sorted(found, key=lambda use: use.node))


def _on_node(node: str, picture: Picture, asked: Collection[str]) -> list[OtherUse]:
    held: defaultdict[str, dict[tuple[str, str], list[ProcessReading]]] = defaultdict(dict)
    for process in picture.processes:
        if process.pod_uid and process.pod_uid not in asked:
            place = (bare_id(process.container_id or ""), process.gpu)
            held[process.pod_uid].setdefault(place, []).append(process)
    return [
        OtherUse(node, uid, row.container, row.gpu, row.amount, len(row.processes))
        for uid, places in held.items()
        for row in rows_of(places).values()
    ]
