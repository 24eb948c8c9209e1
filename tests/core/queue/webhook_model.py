"""Webhook replicas at the small API server, which take one step at a time, too."""

from __future__ import annotations

from dataclasses import replace

from core.queue.small_server import ConflictError, Pod, Server, Tenant
from gpumem_operator.api.tenant import Quota
from gpumem_operator.ledger.reservation import Reservation
from gpumem_operator.ledger.reserve import Asking, Page, answer


class Webhook:
    """A replica that asks for room for pods, in the order of their tenants, and creates them then.

    Pods that ask together are written together. One that is refused by a later tenant is given back
    by the earlier ones, unless the replica ends before.
    """

    def __init__(self, server: Server, pods: list[Pod]) -> None:
        self.server = server
        self.pods = pods
        self.asked = list(server.members[pods[0].namespace])
        """Tenants that have not answered."""
        self.gave: list[str] = []
        self.returning: set[str] = set()
        self.read: Tenant | None = None
        self.created: set[str] = set()

    @property
    def done(self) -> bool:
        return not self.returning and all(pod.uid in self.created for pod in self.pods)

    def step(self) -> None:
        if self.returning and self.gave:
            self._give_back(self.gave[0])
        elif self.asked and self.pods:
            self._ask(self.asked[0])
        elif self.pods and not self.done:
            pod = next(pod for pod in self.pods if pod.uid not in self.created)
            self.created.add(pod.uid)
            self.server.put(pod)

    def _ask(self, name: str) -> None:
        if self.read is None:
            self.read = self.server.tenants[name]
            return
        answers = answer(_page(self.read), [_asking(pod) for pod in self.pods])
        if self._write(self.read, answers.reservations):
            self.returning |= set(answers.refused)
            self.pods = [pod for pod in self.pods if pod.uid not in answers.refused]
            self.gave.append(self.asked.pop(0))

    def _give_back(self, name: str) -> None:
        if self.read is None or self.read.name != name:
            self.read = self.server.tenants[name]
            return
        answers = answer(_page(self.read), [], returned=self.returning)
        if self._write(self.read, answers.reservations):
            self.gave.remove(name)
            if not self.gave:
                self.returning = set()

    def _write(self, read: Tenant, reservations: tuple[Reservation, ...]) -> bool:
        self.read = None
        if reservations == read.reservations:
            return True
        try:
            self.server.write(replace(read, reservations=reservations))
        except ConflictError:
            return False
        return True


def _page(read: Tenant) -> Page:
    quota = Quota.model_validate({"limit": read.limit, "wholeGPU": 1, "onExceeded": "Reject"})
    charged = None if read.epoch is None or not read.counted else read.charged
    return Page(read.name, str(read.version), quota, charged, read.reservations, read.held)


def _asking(pod: Pod) -> Asking:
    return Asking(pod.uid, pod.namespace, pod.uid, lambda _: pod.amount)
