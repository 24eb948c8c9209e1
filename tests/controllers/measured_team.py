"""A leader that knows one policy with one pod, and looks at what is reported of that pod."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from controllers.recording import Recorder
from controllers.stored import Raw, policy, sealed
from controllers.team_cache import SEAL, status_worker
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.options import Periods
from gpumem_operator.reports.attribution import attribute
from gpumem_operator.reports.pictures import Sender
from gpumem_operator.reports.snapshot import Snapshot, view_of
from gpumem_operator.reports.store import Store
from report_builders import process, report


class MeasuredTeam:
    """What is written is in `api`, and in `status` as stored."""

    def __init__(self, pod: Raw, *, now: Callable[[], datetime]) -> None:
        self.cache = Cache(Values(), own_namespace="operator")
        self.cache.seal = SEAL
        self.see(pod)
        stored = policy(limits={"default": "8Gi"})
        self.cache.policies.see(stored)
        self.api = Recorder(self.cache.policies, stored)
        self.worker = status_worker(self.cache, self.api, now=now, periods=Periods(settle=0.0))
        self._store = Store()

    @property
    def status(self) -> Raw:
        ((_, row),) = self.cache.policies.rows()
        return dict(row.value.status)

    def see(self, pod: Raw) -> None:
        """This is how the pod is stored now."""
        self.cache.pods.see(sealed(pod, SEAL))

    def hear(self, amount: int, *, seconds: float) -> None:
        """The sidecar reports a process that holds so many bytes, or with 0 that there is none."""
        uid = self._uid
        processes = [process(amount, pod=uid)] if amount else []
        one = report(*processes, sequence=int(seconds))
        self._store.take(Sender("Sidecar", uid), one, seconds)

    def look(self, *, seconds: float) -> None:
        """As is done every ten seconds."""
        (row,) = (row for _, row in self.cache.pods.rows())
        usage = attribute([row.value.measured], self._store.pictures(), seconds)
        views = {
            uid: view_of(use, declared_bytes=None, charges={}) for uid, use in usage.pods.items()
        }
        self.worker.look_at_use(Snapshot(views))

    @property
    def _uid(self) -> str:
        (row,) = (row for _, row in self.cache.pods.rows())
        return row.uid
