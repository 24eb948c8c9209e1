"""Admission reads what nodes can do from a ConfigMap, which others may empty or make anew."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.recording import Leads
from controllers.stored import Raw, node
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.node_enforcers import NodeEnforcerWorker
from gpumem_operator.controllers.options import Periods
from gpumem_operator.controllers.usage import UsageBoard
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.api import Api
from gpumem_operator.ledger.node_enforcers import SUMMARY_KEY, summary_in


class Server(Api):
    """One ConfigMap."""

    def __init__(self) -> None:
        self.data: dict[str, str] | None = None
        self.writes = 0

    async def request(self, method: str, path: str, **fields: Any) -> Raw:
        assert path.endswith("/configmaps/nodes")
        if method == "PATCH":
            self.writes += 1
            self.data = {**(self.data or {}), **fields["body"]["data"]}
        return {"metadata": {}} if self.data is None else {"metadata": {}, "data": self.data}


def worker_of(api: Server) -> NodeEnforcerWorker:
    cache = Cache(Values(), own_namespace="operator")
    cache.nodes.see(node(memory="81559", count="8"))
    return NodeEnforcerWorker(
        cache,
        Writer(api, Leads()),
        board=UsageBoard(cache, values=Values()),
        namespace="operator",
        config_map="nodes",
        periods=Periods(),
        counted=lambda _: None,
    )


@pytest.mark.parametrize(
    "emptied",
    [
        pytest.param(None, id="made anew"),
        pytest.param({}, id="emptied"),
        pytest.param({SUMMARY_KEY: "{}"}, id="overwritten"),
    ],
)
async def test_what_others_did_to_it_is_repaired_at_the_next_look(
    emptied: dict[str, str] | None,
) -> None:
    api = Server()
    worker = worker_of(api)
    await worker.reconcile()
    assert api.data is not None
    written = api.data[SUMMARY_KEY]
    assert summary_in(written) is not None

    api.data = emptied
    await worker.reconcile()

    assert api.data == {SUMMARY_KEY: written}


async def test_it_is_written_once() -> None:
    api = Server()
    worker = worker_of(api)
    await worker.reconcile()
    await worker.reconcile()
    assert api.writes == 1
