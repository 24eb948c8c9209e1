"""Leaders at the small API server, each of which takes one step at a time.

They see pods late, twice and in any order, stop between any two steps, and go on although another
one leads: nothing here asks a lease. Gates are opened at any time after they were decided about.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from core.queue.small_server import ConflictError, NoAnswerError, Pod, Server, Tenant
from gpumem_operator.ledger import epoch
from gpumem_operator.ledger.book import Account
from gpumem_operator.ledger.groups import Group, WaitingPod
from gpumem_operator.ledger.queue import Turn, decide

HOLD_AFTER = 5.0


class Leader:
    """A controller that took the lead, and may have lost it without knowing."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.epoch = epoch.next_epoch(one.epoch for one in server.tenants.values())
        self.tenants: dict[str, Tenant] = {}
        self.pods: dict[str, Pod] = {}
        self.gone: set[str] = set()
        self.ended = False
        self.raising = sorted(server.tenants)
        self.raised: set[str] = set()
        self.fencing: list[Pod] = []
        self.keeping: set[str] = set()
        """Uids of pods that could not be fenced for this decision."""
        self.pending: list[Tenant] = []
        self.through: list[Pod] = []
        self.opening: list[Pod] = []
        """Patches of gates on their way, beside everything else."""

    @property
    def ready(self) -> bool:
        """Whether it has raised the epoch everywhere, and listed pods since."""
        return not self.raising

    def step(self) -> None:
        """The next request, whatever it is."""
        if self.ended:
            return
        if self.raising:
            self._raise_epoch(self.raising[0])
        elif self.fencing:
            self._fence(self.fencing.pop(0))
        elif self.pending:
            self._write(self.pending.pop(0))
        elif self.through:
            self.opening += [pod for pod in self.through if pod not in self.opening]
            self.through = []
        else:
            self.keeping.clear()
            self._decide()

    def open(self, number: int) -> None:
        """One of the gates, whoever leads by now."""
        pod = self.opening.pop(number)
        with suppress(NoAnswerError):
            if pod.fence <= self.epoch:
                self._patch(replace(pod, gated=False))

    def see(self, pod: Pod) -> None:
        """An event: old ones and second ones change nothing."""
        known = self.pods.get(pod.uid)
        if known is None or known.version < pod.version:
            self.pods[pod.uid] = pod

    def tell(self, name: str) -> None:
        """The other worker of a leader, which writes charges with conditions and use."""
        stored = self.server.tenants[name]
        wanted = replace(stored, charged=self._charged(name), counted=True)
        if self.ready and not self.ended and stored.epoch == self.epoch and wanted != stored:
            self.server.write(wanted)

    def look_for(self, uid: str) -> None:
        """A read by name."""
        if uid not in self.server.pods:
            self.gone.add(uid)

    def turn(self) -> Turn:
        """What it would do with what it knows."""
        return decide(
            [self._account(name) for name in self.tenants],
            [self._waiting(pod) for pod in self._pods() if pod.gated and not pod.finished],
            opened={pod.uid for pod in self._pods() if not pod.gated or pod.finished},
            gone=self.gone | {pod.uid for pod in self.pods.values() if pod.deleted},
            keeping=self.keeping,
            alive=_alive(list(self._pods())),
            now=self.server.now,
        )

    def _pods(self) -> list[Pod]:
        return [pod for pod in self.pods.values() if not pod.deleted]

    def _account(self, name: str) -> Account:
        stored = self.tenants[name]
        return Account(name, stored.limit, self._charged(name), stored.reservations, HOLD_AFTER)

    def _charged(self, tenant: str) -> int:
        mine = (pod for pod in self._pods() if tenant in self.server.members[pod.namespace])
        return sum(pod.amount for pod in mine if pod.charged)

    def _raise_epoch(self, name: str) -> None:
        stored = self.tenants[name] = self.server.tenants[name]
        match self._standing(stored):
            case epoch.Standing.LATER | epoch.Standing.TAKEN:
                self.ended = True
                return
            case epoch.Standing.EARLIER:
                self.tenants[name] = self.server.write(replace(stored, epoch=self.epoch))
                self.raised.add(name)
            case epoch.Standing.OWN:
                pass
        self.raising.remove(name)
        if not self.raising:
            self._list()

    def _list(self) -> None:
        """Pods that went away meanwhile are taken out; what is newer than the list stays."""
        for pod in list(self.pods.values()):
            if pod.uid not in self.server.pods:
                self.see(replace(pod, deleted=True, version=self.server.version))
        for pod in self.server.pods.values():
            self.see(pod)

    def _decide(self) -> None:
        turn = self.turn()
        self.through = self._as_known(turn.through)
        self.fencing = self._as_known(turn.lacking)
        for name, known in sorted(self.tenants.items()):
            charged = self._charged(name)
            wanted = replace(
                known,
                charged=charged,
                counted=True,
                held=turn.held[name],
                reservations=turn.reservations[name],
            )
            if wanted != known:
                self.pending.append(wanted)

    def _write(self, wanted: Tenant) -> None:
        try:
            self.tenants[wanted.name] = self.server.write(wanted)
        except ConflictError:
            self._forget()
            self._read(wanted.name)

    def _read(self, name: str) -> None:
        stored = self.tenants[name] = self.server.tenants[name]
        match self._standing(stored):
            case epoch.Standing.LATER | epoch.Standing.TAKEN:
                self.ended = True
            case epoch.Standing.EARLIER:
                self.raising.append(name)
            case epoch.Standing.OWN:
                pass

    def _standing(self, stored: Tenant) -> epoch.Standing:
        return epoch.standing(stored.epoch, self.epoch, raised=stored.name in self.raised)

    def _fence(self, pod: Pod) -> None:
        try:
            self._patch(replace(pod, fence=self.epoch))
        except NoAnswerError:
            self.keeping.add(pod.uid)
            self._forget()
            self._decide()

    def _patch(self, pod: Pod) -> None:
        try:
            answer = self.server.patch(pod)
        except ConflictError:
            self._forget()
            answer = self.server.pods[pod.uid]
        if answer is not None:
            self.see(answer)

    def _forget(self) -> None:
        """All that was decided: it is decided anew."""
        self.fencing, self.pending, self.through = [], [], []

    def _as_known(self, pods: Iterable[WaitingPod]) -> list[Pod]:
        return [self.pods[pod.uid] for pod in pods]

    def _waiting(self, pod: Pod) -> WaitingPod:
        return WaitingPod(
            uid=pod.uid,
            namespace=pod.namespace,
            name=pod.uid,
            created=pod.created,
            needs=dict.fromkeys(self.server.members[pod.namespace], pod.amount),
            priority=pod.priority,
            group=pod.group,
        )


def _alive(pods: list[Pod]) -> dict[Group, int]:
    alive: dict[Group, int] = {}
    for pod in pods:
        if pod.group is not None and pod.charged:
            alive[pod.group] = alive.get(pod.group, 0) + 1
    return alive
