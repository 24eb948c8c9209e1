"""Starts the operator's processes again when they end by themselves, as a Deployment's pods are.

A controller ends itself when it can not renew its lease, which happens on a busy machine.
"""

from __future__ import annotations

from devcluster.installation import Installation
from devcluster.leader_service import LeaderPod
from devcluster.progress import say


class Revival:
    """Of one installation; the pod that stands for its leader says what became of it."""

    def __init__(self, installation: Installation, leader: LeaderPod) -> None:
        self._installation = installation
        self._leader = leader
        self._restarts = 0
        self._told_ready = True

    def look(self) -> None:
        """Start what has ended, and tell of it. To be called every second or so."""
        if not self._installation.controller_pids:
            self._tell(ready=False)
        for role, ends in self._installation.revive().items():
            self._restarts += len(ends) if role == "controller" else 0
            for end in ends:
                say(f"{end}\n  It is started again, as its Deployment would do.")
        # A busy process that answers late is no reason to say that it is gone.
        if not self._told_ready and self._installation.controller_ready:
            self._tell(ready=True)

    def _tell(self, *, ready: bool) -> None:
        if ready != self._told_ready and self._leader.tell(ready=ready, restarts=self._restarts):
            self._told_ready = ready
