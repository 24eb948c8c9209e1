"""Forged and broken reports of everybody else, against what is known of one pod."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gpumem_operator.reports.attribution import attribute
from intake.endpoint import AGENT, TENANT, Clock, json_values, send, serving, spoiled, token
from report_builders import GIB, GPU, OTHER_GPU, Raw, gpu, measured, process, raw_report

VICTIM = "pod-1"
PODS = [measured(VICTIM), measured("pod-2"), measured("pod-3", node="gpu-2")]
TWIN = "system:serviceaccount:team:agent"
"""An account of the agent's name, in a namespace of a tenant."""

tokens = st.one_of(
    # Of any other pod, wherever it runs, and whatever its account is called.
    st.builds(
        token,
        st.sampled_from(["pod-2", "pod-3", "", "stranger"]),
        user=st.sampled_from([TENANT, TWIN, "", "system:serviceaccount:gpumem-system:agent2"]),
        node=st.sampled_from(["gpu-1", "gpu-2", ""]),
    ),
    # Of the agent of another node, or of one whose token names none.
    st.builds(
        token,
        st.sampled_from(["agent-2", ""]),
        user=st.just(AGENT),
        node=st.sampled_from(["gpu-2", ""]),
    ),
    # Nobody's.
    st.sampled_from(["", "a.b.c", token(VICTIM)[:-1] + "\u00e9", "x" * 8000]),
)
listed = st.builds(
    process,
    st.one_of(st.integers(0, 2**63 - 1), st.sampled_from(["HostPids", "NotAvailable"])),
    pid=st.integers(1, 300),
    gpu=st.sampled_from([GPU, OTHER_GPU, ""]),
    pod=st.sampled_from([VICTIM, VICTIM, "pod-2", None]),
    container=st.sampled_from(["main", "second", None]),
    source=st.sampled_from(["NVML", "Shim"]),
)
forged: st.SearchStrategy[Raw] = st.builds(
    lambda processes, cards, **fields: raw_report(*processes, gpus=cards, **fields),
    st.lists(listed, max_size=4),
    st.lists(st.builds(gpu, st.sampled_from([GPU, OTHER_GPU])), max_size=2),
    agent=st.booleans(),
    given=st.dictionaries(
        st.tuples(st.sampled_from([VICTIM, "pod-2"]), st.just("main")),
        st.lists(st.sampled_from([GPU, OTHER_GPU]), max_size=2),
        max_size=2,
    ),
    sequence=st.integers(0, 2**53),
    start=st.sampled_from(["first", "honest", "x"]),
    kind=st.sampled_from(["Full", "Unchanged"]),
)
bodies = st.one_of(
    forged.map(lambda report: json.dumps(report).encode()),
    forged.flatmap(spoiled),
    json_values.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=100),
)
honest_agent = st.booleans()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(tokens, bodies), min_size=1, max_size=6), honest_agent)
def test_a_pods_numbers_stay_what_its_own_senders_said(
    sent: list[tuple[str, bytes]], with_agent: bool
) -> None:
    async def work() -> None:
        clock = Clock()
        async with serving(clock=clock) as (client, store):

            def known() -> tuple[Any, Any]:
                usage = attribute(PODS, store.pictures(), clock.now)
                return usage.pods[VICTIM], [card for card in usage.cards if card.node == "gpu-1"]

            own = raw_report(process(3 * GIB), start="honest")
            assert (await send(client, json.dumps(own).encode(), VICTIM))[0] == 200
            if with_agent:
                told = raw_report(process(4 * GIB), agent=True, start="honest")
                agents = token("agent-1", user=AGENT, node="gpu-1")
                assert (await send(client, json.dumps(told).encode(), with_token=agents))[0] == 200
            before = known()
            assert before[0].total.bytes == (4 if with_agent else 3) * GIB
            for one, body in sent:
                status, _ = await send(client, body, with_token=one or "none")
                assert status in {200, 400, 401, 403, 409, 413, 429}
            assert known() == before
            # And they are still heard.
            clock.now += 60
            later = raw_report(process(5 * GIB), start="honest", sequence=2)
            assert (await send(client, json.dumps(later).encode(), VICTIM))[0] == 200

    asyncio.run(work())
