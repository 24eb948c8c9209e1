"""The call that reserves: which tenants it asks, for how much, and what it never writes."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from typing import Any

import pytest

from gpumem_operator import names
from gpumem_operator.api.records import Surroundings, namespace_record, tenant_record
from gpumem_operator.api.seal import Seal
from gpumem_operator.api.values import Values
from gpumem_operator.kube.connection import Connection
from gpumem_operator.kube.errors import ApiError
from gpumem_operator.kube.rest import Api
from gpumem_operator.ledger.reservation import Reservation, stored_reservations
from gpumem_operator.ledger.reserve import Page, page_of
from gpumem_operator.webhook import reviewer as module
from gpumem_operator.webhook.exchange import Exchange
from gpumem_operator.webhook.reviewer import Reviewer
from gpumem_operator.webhook.surroundings import UnreadableError
from webhook.builders import Raw, gpu_pod, namespace, tenant

GIB = 2**30
SEAL = Seal(b"k" * 32)


class Store:
    """Tenants in memory, and surroundings that know them."""

    def __init__(self, *tenants: Raw) -> None:
        self.tenants = {raw["metadata"]["name"]: raw for raw in tenants}
        self.hangs = False
        self.fault: Exception | None = None

    async def of(self, name: str) -> Surroundings:
        if isinstance(self.fault, UnreadableError):
            raise self.fault
        records = tuple(map(tenant_record, self.tenants.values()))
        return Surroundings(namespace_record(namespace(name)), (), records)

    async def read(self, name: str) -> Page:
        if self.hangs:
            await asyncio.Event().wait()
        if self.fault is not None:
            raise self.fault
        return page_of(self.tenants[name])

    async def write(self, page: Page, reservations: tuple[Reservation, ...]) -> None:
        rows = [vars(one) for one in reservations]
        self.tenants[page.tenant]["status"]["reservations"] = [
            {"podUID": row["pod_uid"], "bytes": row["amount_bytes"]} for row in rows
        ]

    def kept(self, name: str = "t") -> list[int]:
        return [one.amount_bytes for one in stored_reservations(self.tenants[name]["status"])]


def refusing(name: str = "t", *, charged: int = 0, mode: str = "Reject") -> Raw:
    raw = tenant(name)
    raw["metadata"]["resourceVersion"] = "1"
    raw["spec"]["quota"]["onExceeded"] = mode
    raw["status"] = {"epoch": 1, "observedGeneration": 1, "chargedBytes": charged * GIB}
    return raw


def ask(raw: Raw | None = None, *, dry_run: bool = False) -> Exchange:
    pod = deepcopy(raw or gpu_pod())
    pod["metadata"]["uid"] = "uid"
    return Exchange("1", "team-a", "CREATE", "", pod, {}, dry_run=dry_run)


def reviewer(store: Store) -> Reviewer:
    api = Api(Connection(server="https://127.0.0.1:1"))
    found = Reviewer(store, api, Values(), tenants=store)
    found.seal_with(SEAL)
    return found


async def test_what_is_declared_is_reserved_in_every_tenant_that_does_not_warn() -> None:
    store = Store(refusing("a"), refusing("b", mode="Queue"), refusing("c", mode="Warn"))
    verdict = await reviewer(store).room(ask())
    assert verdict.refusal is None
    assert [store.kept(name) for name in "abc"] == [[8 * GIB], [8 * GIB], []]


async def test_a_declaration_that_admission_did_not_seal_costs_the_whole_gpu() -> None:
    """As the leader will count it."""
    raw: Any = gpu_pod()
    container = raw["spec"]["containers"][0]
    del container["resources"]["limits"][names.MEMORY_RESOURCE]
    container["env"] = [{"name": names.LIMIT_BYTES_ENV, "value": "1"}]
    store = Store(refusing())
    await reviewer(store).room(ask(raw))
    assert store.kept() == [80 * GIB]


async def test_a_pod_that_waits_at_our_gate_asks_the_leader_instead() -> None:
    raw = gpu_pod()
    raw["spec"]["schedulingGates"] = [{"name": names.QUOTA_GATE}]
    store = Store(refusing(charged=160))
    verdict = await reviewer(store).room(ask(raw))
    assert (verdict.refusal, store.kept()) == (None, [])


async def test_a_dry_run_says_the_same_and_keeps_nothing() -> None:
    store = Store(refusing())
    assert (await reviewer(store).room(ask(dry_run=True))).refusal is None
    assert store.kept() == []
    full = await reviewer(Store(refusing(charged=160))).room(ask(dry_run=True))
    assert full.refusal is not None
    assert "0 of 160Gi are left" in full.refusal


async def test_where_no_tenant_is_left_a_mark_means_nothing() -> None:
    assert (await reviewer(Store()).room(ask())).refusal is None


@pytest.mark.parametrize(
    ("fault", "code"), [(ApiError("PATCH", "503", 503), 429), (UnreadableError("gone"), 500)]
)
async def test_what_can_not_be_asked_lets_nobody_in(fault: Exception, code: int) -> None:
    store = Store(refusing())
    store.fault = fault
    verdict = await reviewer(store).room(ask())
    assert verdict.refusal is not None
    assert verdict.code == code


async def test_who_is_not_answered_in_time_is_told_to_try_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "READ_SECONDS", 0.01)
    store = Store(refusing())
    store.hangs = True
    verdict = await reviewer(store).room(ask())
    assert verdict.code == 429
    assert verdict.refusal is not None
    assert "could not be reserved in time" in verdict.refusal
