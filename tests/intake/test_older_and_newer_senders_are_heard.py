"""A sidecar is as old as its pod, and may be older or newer than the leader it reports to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpumem_operator.reports.pictures import Amount
from intake.endpoint import AGENT, FULL, send, serving, token
from report_builders import Raw, process, raw_report


def encoded(raw: Raw) -> bytes:
    return json.dumps(raw).encode()


async def test_a_sidecar_that_tells_no_age_yet_is_heard() -> None:
    older = {key: value for key, value in FULL.items() if key != "ageMilliseconds"}
    async with serving() as (client, store):
        status, answer = await send(client, encoded(older))
        assert (status, answer["next"]) == (200, "Any")
        [picture] = store.pictures().values()
        assert picture.heard - picture.sampled == 30


async def test_what_a_newer_sidecar_says_beside_is_passed_over_and_the_rest_is_heard() -> None:
    newer: Any = json.loads(encoded(FULL))
    for place in (newer, newer["gpus"][0], newer["processes"][0]):
        place["somethingNew"] = {"deep": [1, {"deeper": None}]}
    newer["processes"][0]["shim"] = {"frameworks": [{"name": "torch", "new": 1}], "new": []}
    async with serving() as (client, store):
        assert (await send(client, encoded(newer)))[0] == 200
        [picture] = store.pictures().values()
        [one] = picture.processes
        assert one.amount == Amount(5)
        assert one.claim is not None
        assert one.claim.frameworks[0].name == "torch"


async def test_a_reason_of_a_newer_sidecar_is_heard() -> None:
    newer = raw_report(process("SomethingNew"), unknown="AlsoNew")
    async with serving() as (client, store):
        assert (await send(client, encoded(newer)))[0] == 200
        [picture] = store.pictures().values()
        assert picture.unknown == "NewerReason"


@pytest.mark.parametrize("change", [{"schemaVersion": 2}, {"kind": "Partial"}, {"sequence": None}])
async def test_what_changes_the_meaning_is_not_taken_for_the_old(change: Raw) -> None:
    async with serving() as (client, store):
        assert (await send(client, encoded(FULL | change)))[0] == 400
        assert len(store) == 0


@pytest.mark.parametrize(
    "body",
    [
        encoded(FULL)[:-1] + b', "sequence": 7}',
        encoded(FULL).replace(b'"pid": 100', b'"pid": 100, "bytes": 1'),
        encoded(FULL).replace(b'"pid": 100', b'"pid": 100, "new": {"a": 1, "a": 2}'),
    ],
    ids=["of the report", "of a process", "of what is passed over"],
)
async def test_a_key_that_is_there_twice_is_refused_since_it_has_two_meanings(body: bytes) -> None:
    async with serving() as (client, store):
        status, answer = await send(client, body)
        assert (status, answer["error"]) == (400, "body: an object has a key twice")
        assert len(store) == 0


async def test_a_sidecar_with_more_processes_than_fit_is_told_to_send_fewer() -> None:
    many = {"processes": [{"pid": n + 1, "gpu": "g", "bytes": 1} for n in range(2049)]}
    async with serving() as (client, _):
        status, answer = await send(client, encoded(FULL | many))
        assert (status, answer["error"]) == (413, "2049 processes are more than 2048")
        agent = token("agent", user=AGENT)
        told = encoded(FULL | many | {"sender": "NodeAgent"})
        assert (await send(client, told, with_token=agent))[0] == 200


async def test_who_may_not_report_is_told_why() -> None:
    async with serving(refused=lambda sender: f"not {sender.id}") as (client, store):
        assert await send(client, encoded(FULL)) == (403, {"error": "not pod-1"})
        assert len(store) == 0
