"""The worker that posts these events: it loses none to a busy or failing API server."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from controllers.recording import Leads
from controllers.stored import policy
from enforcement_evidence import process, use
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.incidents import IncidentWorker
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.api import Api
from gpumem_operator.kube.errors import ApiError
from gpumem_operator.reports.enforcement import enforcers_of
from gpumem_operator.reports.incidents import PAUSE_SECONDS
from gpumem_operator.reports.snapshot import PodView, Snapshot
from gpumem_operator.reports.store import SILENT_AFTER_SECONDS

FREE = use(process(claim=None))


class Server(Api):
    """Takes events, once it has refused so many."""

    def __init__(self, refuses: int) -> None:
        self.refuses = refuses
        self.events: list[dict[str, Any]] = []
        self.asked = asyncio.Semaphore(0)

    async def request(self, method: str, path: str, **fields: Any) -> dict[str, Any]:  # noqa: ARG002
        self.asked.release()
        if self.refuses:
            self.refuses -= 1
            raise ApiError("events", "500 busy", 500)
        self.events.append(fields["body"])
        return {}


def pods(number: int) -> Snapshot:
    views = {}
    for uid in (f"pod-{n}" for n in range(number)):
        one = replace(FREE, pod=replace(FREE.pod, uid=uid))
        views[uid] = PodView(one, None, {}, enforcers=enforcers_of(one))
    return Snapshot(views)


async def posted(
    server: Server, *looks: tuple[float, int], number: int, mode: str = "Active"
) -> list[str]:
    """Reasons of what was posted when pods without a holder are looked at, each time after
    `asked` requests have been answered."""
    clock = [0.0]
    cache = Cache(Values(), own_namespace="operator")
    cache.policies.see(policy(namespace=FREE.pod.namespace, mode=mode))
    worker = IncidentWorker(
        Writer(server, Leads()),
        cache,
        monotonic=lambda: clock[0],
        now=lambda: datetime(2026, 3, 1, 12, tzinfo=UTC),
    )
    running = asyncio.create_task(worker.run())
    for clock[0], asked in looks:
        worker.look(pods(number))
        for _ in range(asked):
            await server.asked.acquire()
    await asyncio.sleep(0)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    return [event["reason"] for event in server.events]


def test_an_event_that_the_server_refused_is_posted_after_the_pause() -> None:
    async def scene() -> None:
        later = SILENT_AFTER_SECONDS + 1
        looks = ((later, 1), (later + 1, 0), (later + PAUSE_SECONDS, 1))
        assert await posted(Server(refuses=1), *looks, number=1) == ["LimitNotHeld"]

    asyncio.run(scene())


def test_what_does_not_fit_into_the_queue_is_posted_at_a_later_look() -> None:
    async def scene() -> None:
        # Nobody takes anything out between the first looks: six times twenty, and room for 100.
        looks = [(SILENT_AFTER_SECONDS + 1 + n, 0) for n in range(6)]
        found = await posted(Server(0), *looks, (200.0, 100), (201.0, 20), number=120)
        assert found == ["LimitNotHeld"] * 120

    asyncio.run(scene())


def test_a_policy_that_only_observes_is_no_reason_to_warn() -> None:
    async def scene(mode: str) -> list[str]:
        return await posted(Server(0), (SILENT_AFTER_SECONDS + 1, 0), number=1, mode=mode)

    assert asyncio.run(scene("Active")) == ["LimitNotHeld"]
    assert asyncio.run(scene("Observe")) == []
