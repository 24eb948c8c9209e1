"""A sidecar is as old as its pod, and may be older or newer than the leader it reports to."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpumem_operator.reports.pictures import Amount
from gpumem_operator.reports.report import Report
from intake.endpoint import AGENT, FULL, send, serving, token
from report_builders import Raw, process, raw_report

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "report.json").read_text())
SAID_BY_ALL = {
    "": "schemaVersion sender senderStart sequence kind",
    "gpus": "uuid index",
    # Exactly one of bytes and unknown: what neither was measured nor has a reason means nothing.
    "processes": "pid gpu bytes unknown",
    "frameworks": "name",
    "caps": "gpu capBytes",
    "outside": "gpu bytes",
    "servers": "name argument asked applied",
    "assignments": "podNamespace podName container gpus",
    "acknowledgements": "id result",
}
"""Fields by the list that they are in, without which an entry has no meaning. All others may be
missing."""
SAYS_NOTHING: tuple[Any, ...] = (None, "", [], False, 0, "NVML")

Place = tuple[str | int, ...]


def fields(raw: Any, place: Place = (), entry_of: str = "") -> Iterator[tuple[Place, bool]]:
    """Of the report and all that is in it, and whether each one may be missing."""
    if isinstance(raw, dict):
        for key, value in raw.items():
            yield (*place, key), key not in SAID_BY_ALL.get(entry_of, "").split()
            yield from fields(value, (*place, key), key)
    elif isinstance(raw, list):
        for number, value in enumerate(raw):
            yield from fields(value, (*place, number), entry_of)


def without(place: Place) -> Any:
    """The golden report less one field."""
    raw = copy.deepcopy(GOLDEN)
    holder = raw
    for step in place[:-1]:
        holder = holder[step]
    del holder[place[-1]]
    return raw


def read(raw: Any, place: Place) -> Any:
    """What the leader takes for said there."""
    report: Any = Report.model_validate_json(encoded(raw)).model_dump(by_alias=True)
    for step in place:
        report = report[step]
    return report


def encoded(raw: Raw) -> bytes:
    return json.dumps(raw).encode()


async def test_a_sidecar_that_tells_no_age_yet_is_heard() -> None:
    older = {key: value for key, value in FULL.items() if key != "ageMilliseconds"}
    async with serving() as (client, store):
        status, answer = await send(client, encoded(older))
        assert (status, answer["next"]) == (200, "Any")
        [picture] = store.pictures().values()
        assert picture.heard - picture.sampled == 30


@pytest.mark.parametrize(
    ("place", "may_be_missing"),
    [pytest.param(*row, id=".".join(map(str, row[0]))) for row in fields(GOLDEN)],
)
async def test_what_an_older_sender_does_not_tell_is_unknown_and_the_rest_is_heard(
    place: Place, may_be_missing: bool
) -> None:
    older = without(place)
    async with serving() as (client, store):
        status, answer = await send(client, encoded(older), with_token=token("agent", user=AGENT))
        if may_be_missing:
            assert (status, answer.get("error"), len(store)) == (200, None, 1)
            assert read(older, place) in SAYS_NOTHING
        else:
            assert (status, len(store)) == (400, 0)


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
