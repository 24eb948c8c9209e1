"""The label `gpumemory.dev/managed`: put on pods that slipped past admission, and put back.

The watch sees only pods that have the label. Those without are found by listing them, at start,
every few minutes, and soon after a policy, a tenant or a namespace changed. Those with it are
looked at again when they change themselves, or what decides about them does.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.admission.slipped import Relabel, is_right_whatever_decides, relabel
from gpumem_operator.api.records import Surroundings
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.entries import PodEntry, PolicyEntry, TenantEntry
from gpumem_operator.controllers.inbox import Inbox
from gpumem_operator.controllers.options import Periods
from gpumem_operator.controllers.table import Key, key_of
from gpumem_operator.controllers.worker import attempt
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.errors import Conflict, NotFound
from gpumem_operator.kube.listing import pages
from gpumem_operator.kube.resources import PODS
from gpumem_operator.metrics.controller import RECONCILE_SECONDS

_LOG = logging.getLogger(__name__)
_timed: Final = RECONCILE_SECONDS.labels("labels").time
_UNLABELLED: Final = f"!{names.MANAGED_LABEL}"


class LabelWorker:
    """Keeps the label right while this process leads."""

    def __init__(self, cache: Cache, writer: Writer, *, values: Values, periods: Periods) -> None:
        self._cache = cache
        self._writer = writer
        self._values = values
        self._periods = periods
        self._suspects: Inbox[Key] = Inbox()
        """Labelled pods that changed: somebody may have changed the label."""
        self._reasons: Inbox[str] = Inbox()
        """Why unlabelled pods should be listed soon."""
        self._last: list[Key] = []
        """Unlabelled pods that the next sweep comes to last, in this order."""
        cache.pods.listeners.append(self._pod_changed)
        cache.policies.listeners.append(self._policy_changed)
        cache.tenants.listeners.append(self._tenant_changed)
        cache.namespaces.listeners.append(self._namespace_changed)

    def _pod_changed(self, key: Key, _: object, new: PodEntry | None) -> None:
        if new is not None:
            self._suspects.add(key)

    def _policy_changed(self, key: Key, old: PolicyEntry | None, new: PolicyEntry | None) -> None:
        if _spec_changed(old, new):
            self._reasons.add("policies")
            self._suspects.add(*self._cache.keys_of_pods(key[0]))

    def _tenant_changed(self, _: Key, old: TenantEntry | None, new: TenantEntry | None) -> None:
        if _spec_changed(old, new):
            self._reasons.add("tenants")
            self._suspects.add(*(key for key, _ in self._cache.pods.rows()))

    def _namespace_changed(self, key: Key, _: object, __: object) -> None:
        self._reasons.add("namespaces")
        self._suspects.add(*self._cache.keys_of_pods(key[1]))

    async def run(self) -> None:
        self._cache.follow_departed = True
        self._suspects.add(*(key for key, _ in self._cache.pods.rows()))
        self._reasons.add("start")
        async with asyncio.TaskGroup() as group:
            group.create_task(self._sweep_now_and_then())
            group.create_task(self._follow_departed())
            group.create_task(self._follow_suspects())

    async def _sweep_now_and_then(self) -> None:
        settle = 0.0
        while True:
            try:
                async with asyncio.timeout(self._periods.lists):
                    await self._reasons.take(settle=settle)
            except TimeoutError:
                pass
            with attempt("labels", "listing pods") as outcome, _timed():
                await self.sweep()
            settle = self._periods.sweep_settle
            if outcome.failed:
                self._reasons.add("failure")

    async def sweep(self) -> None:
        """List all pods without the label, and label those that should have one."""
        look = _Look()
        last: dict[Key, Mapping[str, Any]] = {}
        to_come_last = frozenset(self._last)
        async for page in pages(self._writer.api, PODS, labels=_UNLABELLED):
            for pod in page.items:
                if key_of(pod) in to_come_last:
                    last[key_of(pod)] = pod
                else:
                    await self._correct(pod, look)
        for key in self._last:
            if key in last:
                await self._correct(last[key], look)
        self._last = look.last_next_time(self._last)
        if look.left:
            self._reasons.add("failure")

    async def _follow_departed(self) -> None:
        """A pod that the watch or a list shows no more is gone for good, or has lost its label."""
        while True:
            waiting = await self._cache.departed.take()
            look = _Look()
            while waiting:
                key, uid = item = waiting.pop()
                with attempt("labels", f"pod {key[0]}/{key[1]}") as outcome:
                    await self._look_after(key, uid, look)
                if outcome.failed:
                    self._cache.departed.add(item, *waiting)
                    await asyncio.sleep(self._periods.retry)
                    break

    async def _look_after(self, key: Key, uid: str, look: "_Look") -> None:
        try:
            pod = await self._writer.api.get(PODS.path(key[1], namespace=key[0]))
        except NotFound:
            pod = {}
        metadata = pod.get("metadata") or {}
        if metadata.get("uid") != uid:
            self._cache.pods.drop(key, uid)
        elif names.MANAGED_LABEL in (metadata.get("labels") or {}):
            # Put back meanwhile: the watch has the pod again, and may have told of it already.
            self._cache.pods.see(pod)
        elif not await self._correct(pod, look):
            # Still there, and rightly without the label: it is none of our pods any more.
            self._cache.pods.drop(key, uid)
        elif key in look.left:
            self._reasons.add("failure")

    async def _follow_suspects(self) -> None:
        last: list[Key] = []
        while True:
            keys = await self._suspects.take(settle=self._periods.settle)
            look = _Look()
            for key in (*sorted(keys.difference(last)), *(key for key in last if key in keys)):
                row = self._cache.pods.get(key)
                if row is not None and not _is_right(row.value):
                    await self._correct(row.value.pod, look)
            last = look.last_next_time(last)
            if look.left:
                await asyncio.sleep(self._periods.retry)
                self._suspects.add(*look.left)

    async def _correct(self, pod: Mapping[str, Any], look: "_Look") -> bool:
        """Set the pod's label where it is wrong; whether it was. What could not be written is left
        in `look`."""
        key = namespace, _ = key_of(pod)
        if self._cache.is_ignored(namespace):
            return False
        if namespace not in look.surroundings:
            look.surroundings[namespace] = self._cache.surroundings(namespace)
        change = relabel(self._cache.verified(pod), look.surroundings[namespace], self._values)
        if change is None:
            return False
        if namespace in look.failed:
            look.left.add(key)
            return True
        with attempt("labels", f"pod {namespace}/{change.name}") as outcome:
            await self._write(change)
        if outcome.failed:
            look.failed[namespace] = key
            look.left.add(key)
        return True

    async def _write(self, change: Relabel) -> None:
        body = {
            # A uid in a patch is a precondition: a namesake created meanwhile answers 409.
            "metadata": {"uid": change.uid, "labels": {names.MANAGED_LABEL: change.value}}
        }
        try:
            await self._writer.merge(PODS.path(change.name, namespace=change.namespace), body)
        except (NotFound, Conflict):
            return
        _LOG.info(
            "pod %s/%s labelled %s=%s",
            change.namespace,
            change.name,
            names.MANAGED_LABEL,
            change.value,
        )


@dataclass
class _Look:
    """At several pods, one after the other."""

    surroundings: dict[str, Surroundings] = field(default_factory=dict)
    """By namespace."""
    failed: dict[str, Key] = field(default_factory=dict)
    """By namespace, the pod whose label could not be written. The rest of its pods is left: a
    webhook of somebody may answer for none of them, each as slowly as a request may be."""
    left: set[Key] = field(default_factory=set)
    """Pods whose labels are still wrong."""

    def last_next_time(self, before: Iterable[Key]) -> list[Key]:
        """Whom to come to last, given whom this look came to last: whoever failed latest is behind
        all others, so that none of them keeps another from its turn."""
        latest = [*self.failed.values()]
        return [key for key in before if key in self.left and key not in latest] + latest


def _is_right(entry: PodEntry) -> bool:
    return is_right_whatever_decides(entry.labels, gpu=entry.gpu, handled=entry.handled)


def _spec_changed(
    old: PolicyEntry | TenantEntry | None, new: PolicyEntry | TenantEntry | None
) -> bool:
    # Our own status writes come by as well, and must not start a sweep each.
    return old is None or new is None or old.record != new.record
