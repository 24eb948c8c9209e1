"""Carries orders of the leader out: what it may, and about the very process that was meant.

An order comes again with every answer until it was acknowledged or withdrawn. What became of a
Reclaim stands in the shim's file under the order's id, so a sender that starts anew loses nothing.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Collection
from typing import TypeGuard

from gpumem_sidecar import order_file
from gpumem_sidecar.answer import Order
from gpumem_sidecar.cgroups import place_of
from gpumem_sidecar.processes import Facts, Unreadable, facts_of
from gpumem_sidecar.report import Acknowledgement
from gpumem_sidecar.run_folder import RunFolder
from gpumem_sidecar.sampler import EMPTY_DIR
from gpumem_sidecar.settings import Settings

RESULTS = frozenset({"Done", "Busy", "Unsupported", "NoSuchProcess", "Failed"})


class Hands:
    """Of one sender."""

    def __init__(
        self, settings: Settings, *, look: Callable[[int], Facts | Unreadable | None] = facts_of
    ) -> None:
        self._settings = settings
        self._look = look
        self._given: dict[str, tuple[Order, order_file.Key]] = {}
        """Orders whose files lie in the run folder, by id."""

    def carry_out(self, orders: Collection[Order]) -> list[Acknowledgement]:
        """What became of those that are over; the others are under way. Files of orders that are
        not given any more are taken back."""
        outcomes = [self._outcome(order) for order in orders]
        for withdrawn in self._given.keys() - {order.id for order in orders}:
            self._take_back(withdrawn)
        return [outcome for outcome in outcomes if outcome is not None]

    def _take_back(self, order_id: str) -> None:
        order, key = self._given.pop(order_id)
        try:
            with self._folder(order).container(order.container) as container:
                order_file.take_back(container, key)
        except Exception:
            return  # most often the pod's folder went with it

    def _outcome(self, order: Order) -> Acknowledgement | None:
        try:
            return self._carried_out(order)
        except Exception:
            # Whatever it is, it is this order's: it keeps no other one and no report back.
            return Acknowledgement(order.id, "Failed")

    def _carried_out(self, order: Order) -> Acknowledgement | None:
        if order.action not in self._settings.actions:
            return Acknowledgement(order.id, "Unsupported")
        # Nobody is to end the first process of a node; the first of a namespace may give back.
        lowest = 2 if order.action == "Kill" else 1
        facts = self._look(order.pid) if order.pid >= lowest else None
        if not self._is_meant(facts, order):
            return Acknowledgement(order.id, _why_not(facts))
        return self._kill(order) if order.action == "Kill" else self._reclaim(order, facts)

    def _is_meant(self, facts: Facts | Unreadable | None, order: Order) -> TypeGuard[Facts]:
        """The process id may be another one's by now. A sidecar's order is about its own pod: in
        its PID namespace nobody else is."""
        if not isinstance(facts, Facts) or facts.start_time != order.start_time:
            return False
        if not self._settings.agent:
            return order.pod_uid == self._settings.pod_uid
        return place_of(facts.cgroup).pod_uid == order.pod_uid

    def _kill(self, order: Order) -> Acknowledgement:
        descriptor = os.pidfd_open(order.pid)
        try:
            # Since the first look the process may have ended, and its id been given again. The
            # descriptor means one process for ever: if it is the right one now, it stays so.
            facts = self._look(order.pid)
            if not self._is_meant(facts, order):
                return Acknowledgement(order.id, _why_not(facts))
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        except ProcessLookupError:
            return Acknowledgement(order.id, "NoSuchProcess")
        finally:
            os.close(descriptor)
        return Acknowledgement(order.id, "Done")

    def _reclaim(self, order: Order, facts: Facts) -> Acknowledgement | None:
        folder = self._folder(order)
        key = (facts.inner_pid, facts.start_time)
        state = folder.state(order.container, key)
        if state is None:
            return Acknowledgement(order.id, "Unsupported")
        reclaimed = state.reclaimed
        if reclaimed is None or reclaimed.id != order.id:
            with folder.container(order.container) as container:
                order_file.give(container, key, order.id)
            self._given[order.id] = order, key
            return None
        self._given[order.id] = order, key  # also where an earlier start of ours put it there
        self._take_back(order.id)
        result = reclaimed.result if reclaimed.result in RESULTS else "Failed"
        return Acknowledgement(order.id, result, reclaimed.bytes)

    def _folder(self, order: Order) -> RunFolder:
        if not self._settings.agent:
            return RunFolder(self._settings.run_path)
        return RunFolder(self._settings.pods_path, (order.pod_uid, *EMPTY_DIR.split("/")))


def _why_not(facts: Facts | Unreadable | None) -> str:
    """Of a process that nobody may be told to be gone: it is there, whoever it is."""
    return "Failed" if isinstance(facts, Unreadable) else "NoSuchProcess"
