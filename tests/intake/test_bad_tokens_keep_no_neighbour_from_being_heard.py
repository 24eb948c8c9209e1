"""Many pods may come from one address (a node's), and one of them may send bad tokens for ever."""

from __future__ import annotations

import json
from typing import Any

from aiohttp.test_utils import TestClient

from gpumem_operator.kube.api import Object
from gpumem_operator.reports.pictures import Sender
from intake.endpoint import AGENT, FULL, Clock, Reviewer, bound_token, raw_token, send, serving
from report_builders import raw_report

BODY = json.dumps(FULL).encode()


class Strict(Reviewer):
    """Takes no token with number 0."""

    async def create(self, path: str, body: Object, *, seconds: float = 0) -> Object:
        answer = await super().create(path, body, seconds=seconds)
        return answer if body["spec"]["token"] not in BAD else {"status": {"authenticated": False}}


NOBODYS = raw_token({"pod": "", "user": "", "node": ""})
FORGED = bound_token("pod-1", number=0)
BAD = {NOBODYS, FORGED, *(bound_token(f"invented-{n}", number=0) for n in range(50))}


def expected(sender: Sender) -> bool:
    return sender in (
        Sender("Sidecar", "pod-1"),
        Sender("Sidecar", "pod-2"),
        Sender("NodeAgent", "n"),
    )


async def flood(client: TestClient[Any, Any], *tokens: str) -> list[int]:
    return [(await send(client, b"{}", with_token=one))[0] for one in tokens]


async def test_a_token_that_was_rotated_is_looked_at_while_its_address_sends_bad_ones() -> None:
    async with serving(Strict(), expected=expected) as (client, store):
        assert (await flood(client, *[NOBODYS] * 25))[-1] == 429
        assert (await send(client, BODY, with_token=bound_token("pod-1")))[0] == 200
        newer = json.dumps(FULL | {"sequence": 2}).encode()
        assert (await send(client, newer, with_token=bound_token("pod-1", number=2)))[0] == 200
        agents = json.dumps(raw_report(agent=True)).encode()
        its = bound_token("agent", user=AGENT, node="n")
        assert (await send(client, agents, with_token=its))[0] == 200
        assert len(store) == 2


async def test_senders_that_nobody_expects_are_not_asked_about() -> None:
    reviewer = Strict()
    async with serving(reviewer, expected=expected) as (client, _):
        await flood(client, *[NOBODYS] * 25)
        asked = reviewer.asked
        assert set(await flood(client, *sorted(BAD - {FORGED}))) == {429}
        assert reviewer.asked == asked


async def test_who_claims_to_be_expected_is_asked_about_seldom_and_silences_no_other() -> None:
    reviewer, clock = Strict(), Clock()
    async with serving(reviewer, clock, expected=expected) as (client, _):
        await flood(client, *[NOBODYS] * 25)
        forged = await flood(client, *[FORGED] * 10)
        assert forged == [401] * 3 + [429] * 7, "three at once, then one in five seconds"
        other = json.dumps(raw_report()).encode()
        assert (await send(client, other, with_token=bound_token("pod-2")))[0] == 200
