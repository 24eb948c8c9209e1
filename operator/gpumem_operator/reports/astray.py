"""Memory on GPUs that are not a container's own: its limit is for each GPU that it asked for.

What the kubelet gave to it is its own, where the agent knows all of that. Where nobody knows, it
may be on as many GPUs as it asked for, whichever they are: of more, those on which it holds least
are the ones too many, because a program that goes astray has its work on its own. A card and a MIG
instance on it are one and the same here, since a list may be the card's or the instance's.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from gpumem_operator.reports.measured import GpuContainer
from gpumem_operator.reports.pictures import Picture
from gpumem_operator.reports.uses import UNNAMED, GpuUse, Place


def with_astray(
    rows: Mapping[Place, GpuUse],
    container: GpuContainer,
    picture: Picture,
    *,
    given: Collection[str] = (),
) -> dict[Place, GpuUse]:
    """The rows, those of the container on other GPUs than its own with the reason.

    `given` has all GPUs that the kubelet gave to it; empty where that is not known.
    """
    own = [row for row in rows.values() if row.container == container.name and _is_there(row)]
    if given:
        cards = {gpu.uuid: gpu.parent for gpu in picture.gpus}
        near = {*given, *(parent for gpu in given if (parent := cards.get(gpu)))}
        strays = [row for row in own if row.gpu not in near and cards.get(row.gpu) not in given]
        why = f"on a GPU that was not given to it, asked for {container.gpus}"
    else:
        own.sort(key=lambda row: (-row.amount.floor, row.gpu))
        strays = own[container.gpus :]
        why = f"on {len(own)} GPUs, asked for {container.gpus}"
    return {**rows, **{(row.container, row.gpu): replace(row, astray=why) for row in strays}}


def _is_there(row: GpuUse) -> bool:
    """Whether a process is seen on a GPU with a name: no other row tells where the container is."""
    return row.gpu != UNNAMED and bool(row.processes)
