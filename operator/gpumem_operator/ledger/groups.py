"""What is let through as one: a pod, or the pods of one controller that need each other.

Pods of a controller that ask for it with `gpumemory.dev/group-size: N` go N at a time. Where some
of a group run already, those that wait complete it: the replacement of one lost pod does not wait
for a whole group more.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from gpumem_operator import names
from gpumem_operator.api.quantity import whole_number


@dataclass(frozen=True)
class Group:
    """The pods of one controller that go together."""

    controller_uid: str
    size: int


@dataclass(frozen=True)
class Held:
    """What pods of earlier revisions of a Deployment are charged."""

    deployment: str
    amount_bytes: int


@dataclass(frozen=True)
class WaitingPod:
    """A pod that carries our gate."""

    uid: str
    namespace: str
    name: str
    created: float
    """Seconds since 1970."""
    needs: Mapping[str, int] | None
    """Bytes by tenant that is asked for room; None where that can not be told."""
    priority: int = 0
    group: Group | None = None
    version: int = 0
    """resourceVersion under which it was read."""
    fenced_by: int = 0
    """Epoch of the leader that gave away what was kept for it; 0 where none has."""
    older_revision: Held | None = None
    """What older pods of the same rollout hold; None where there are none."""
    undeclared: tuple[str, ...] = ()
    """Its containers whose GPUs count whole because they declare nothing."""

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def order(self) -> tuple[int, float, str, str]:
        """The lowest goes first."""
        return (-self.priority, self.created, self.namespace, self.name)


@dataclass(frozen=True)
class Entry:
    """Pods that are let through together or not at all, the first in order first."""

    pods: tuple[WaitingPod, ...]
    missing: int = 0
    """Pods of the group that are not there yet."""

    @property
    def order(self) -> tuple[int, float, str, str]:
        return self.pods[0].order

    @property
    def complete_since(self) -> float:
        """Seconds since 1970: when its last pod came."""
        return max(pod.created for pod in self.pods)

    @cached_property
    def needs(self) -> Mapping[str, int] | None:
        """What its pods ask for together; None where one of them can not be told."""
        total: Counter[str] = Counter()
        for pod in self.pods:
            if pod.needs is None:
                return None
            total.update(pod.needs)
        return total


def group_size(text: str | None) -> int | None:
    """The annotation as a number from 1 to MOST_IN_A_GROUP; None where it is none of them."""
    number = whole_number(text or "")
    return number if number is not None and 1 <= number <= names.MOST_IN_A_GROUP else None


def entries_of(waiting: Iterable[WaitingPod], alive: Mapping[Group, int]) -> list[Entry]:
    """Waiting pods as entries, in the order in which they are looked at.

    `alive` has, by group, how many of its pods run or are about to.
    """
    entries = []
    groups: defaultdict[Group, list[WaitingPod]] = defaultdict(list)
    for pod in waiting:
        if pod.group is None:
            entries.append(Entry((pod,)))
        else:
            groups[pod.group].append(pod)
    for group, pods in groups.items():
        members = sorted(pods, key=lambda pod: pod.order)
        entries.extend(_divided(members, group.size, alive.get(group, 0)))
    return sorted(entries, key=lambda entry: entry.order)


def _divided(members: Sequence[WaitingPod], size: int, alive: int) -> Iterable[Entry]:
    begin, wanted = 0, -alive % size or size
    while begin < len(members):
        part = tuple(members[begin : begin + wanted])
        yield Entry(part, missing=wanted - len(part))
        begin, wanted = begin + wanted, size
