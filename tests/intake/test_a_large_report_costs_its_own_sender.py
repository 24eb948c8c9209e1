"""What a report costs is bounded before it is read, and nobody else waits for it."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from gpumem_operator.intake import bodies
from gpumem_operator.intake.server import LARGEST_OF_SIDECAR
from gpumem_operator.kube.api import Object
from gpumem_operator.reports.pictures import Sender
from gpumem_operator.reports.report import Report
from intake.endpoint import AGENT, FULL, Clock, Reviewer, send, serving, token
from report_builders import Raw, process, raw_report


def encoded(raw: Raw) -> bytes:
    return json.dumps(raw, separators=(",", ":")).encode()


def padded(sequence: int, size: int) -> bytes:
    """A good report of just so many bytes."""
    body = encoded(FULL | {"sequence": sequence})
    return body + b" " * (size - len(body))


def with_frameworks(number: int) -> Raw:
    claim: Any = {"frameworks": [{"name": ""}] * 16}
    return raw_report(*(process(pid=n + 1) | {"shim": claim} for n in range(number)))


async def test_thousands_of_empty_objects_are_refused_unread() -> None:
    async with serving() as (client, store):
        status, answer = await send(client, encoded(with_frameworks(400)))
        assert status == 413, "which a sidecar answers by leaving claims out"
        assert "objects are more than 4096" in answer["error"]
        assert len(store) == 0
        assert (await send(client, encoded(with_frameworks(100))))[0] == 200


async def test_large_reports_are_checked_beside_the_loop_and_small_ones_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[str] = []

    class Told(Report):
        @classmethod
        def model_validate_json(cls, *args: Any, **fields: Any) -> Any:
            threads.append(threading.current_thread().name)
            return Report.model_validate_json(*args, **fields)

    monkeypatch.setattr(bodies, "Report", Told)
    async with serving() as (client, _):
        assert (await send(client, padded(1, 60 * 2**10)))[0] == 200
        assert (await send(client, padded(2, 2**10)))[0] == 200
    beside, on_it = threads
    assert beside.startswith("reports")
    assert on_it == threading.current_thread().name


async def test_a_sender_has_so_many_bytes_and_others_have_their_own() -> None:
    clock = Clock()
    async with serving(clock=clock) as (client, _):
        found = [(await send(client, padded(n, LARGEST_OF_SIDECAR)))[0] for n in range(1, 7)]
        assert found == [200] * 4 + [429] * 2
        assert (await send(client, encoded(FULL | {"processes": []}), "pod-2"))[0] == 200
        clock.now += 8
        assert (await send(client, padded(7, LARGEST_OF_SIDECAR)))[0] == 200


async def test_what_a_pod_without_gpus_reports_is_answered_and_not_kept() -> None:
    async with serving(measured="pod-2") as (client, store):
        for sequence, kind in ((1, "Full"), (2, "Unchanged")):
            raw = raw_report(process(), sequence=sequence, kind=kind)
            status, answer = await send(client, encoded(raw))
            assert (status, answer["next"]) == (200, "Any"), "else it comes again at once"
        assert store.pictures() == {}
        own = raw_report(process(pod="pod-2"))
        assert (await send(client, encoded(own), "pod-2"))[0] == 200
        assert set(store.pictures()) == {Sender("Sidecar", "pod-2")}


async def test_a_pod_that_turns_out_to_have_gpus_is_asked_for_the_whole() -> None:
    async with serving(measured="pod-2") as (_, store):
        sender = Sender("Sidecar", "pod-1")
        full, same = (
            Report.model_validate(raw_report(process(), sequence=n, kind=kind))
            for n, kind in ((1, "Full"), (2, "Unchanged"))
        )
        assert store.take(sender, full, 1.0, keep=False)
        assert not store.take(sender, same, 2.0)


async def test_of_a_report_with_thousands_of_faults_the_first_ones_are_told() -> None:
    wrong = [{"pid": 0, "gpu": "", f"a{n}": 0} for n in range(2000)]
    async with serving() as (client, _):
        status, answer = await send(client, encoded(FULL | {"processes": wrong, "gpus": wrong}))
    assert status == 400
    assert answer["error"].startswith("gpus.0.uuid: Field required; gpus.0.index: ")
    assert len(answer["error"]) < 200


async def test_an_agent_may_send_as_much_as_a_node_has() -> None:
    rows = [process(pid=n + 1, container_id="containerd://" + "0" * 64) for n in range(4000)]
    body = encoded(raw_report(*rows, agent=True))
    assert len(body) > LARGEST_OF_SIDECAR
    async with serving() as (client, _):
        of_agent = token("agent-1", user=AGENT)
        assert (await send(client, body, with_token=of_agent))[0] == 200


async def test_the_time_that_a_report_waits_here_makes_its_picture_older() -> None:
    clock = Clock()

    class Slow(Reviewer):
        async def create(self, path: str, body: Object, *, seconds: float = 0) -> Object:
            clock.now += 4
            return await super().create(path, body, seconds=seconds)

    async with serving(Slow(), clock) as (client, store):
        await send(client, encoded(raw_report(process(), age_milliseconds=2500)))
    [picture] = store.pictures().values()
    assert clock.now - picture.sampled == 6.5
