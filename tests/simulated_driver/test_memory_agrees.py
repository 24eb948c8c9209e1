"""The parts of a card add up to its whole, whoever holds them."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from devcluster.failure import ClusterError
from devcluster.simulated_driver import MIB, Driver, numbered_device
from simulated_driver.node import RESERVED, TOTAL, Node, process


def test_an_empty_card_has_its_reserve_only(node: Node) -> None:
    card = node.card()
    assert card["memory_v2"] == {
        "total": TOTAL,
        "reserved": RESERVED,
        "used": 0,
        "free": TOTAL - RESERVED,
    }
    assert card["memory"] == {"total": TOTAL, "used": RESERVED, "free": TOTAL - RESERVED}
    assert card["compute"] == card["graphics"] == card["mps"] == card["detail"] == []


def test_every_kind_of_process_is_in_its_own_list_and_in_the_sum(node: Node) -> None:
    with (
        node.hold(1000) as compute,
        node.hold(300, kind="graphics") as graphics,
        node.hold(50, kind="mps") as mps,
    ):
        card = node.card()
    assert card["compute"] == sorted([process(compute.pid, 1000), process(mps.pid, 50)])
    assert card["graphics"] == [process(graphics.pid, 300)]
    assert card["mps"] == [process(mps.pid, 50)]
    assert card["detail"] == sorted([[compute.pid, 1000 * MIB], [mps.pid, 50 * MIB]])
    assert card["memory_v2"]["used"] == 1350 * MIB
    assert card["memory"]["used"] == 1350 * MIB + RESERVED


def test_managed_memory_is_in_the_cards_number_and_in_no_processs(node: Node) -> None:
    with node.hold(100, managed_mib=900) as held:
        card = node.card()
    assert card["compute"] == [process(held.pid, 100)]
    assert card["memory_v2"]["used"] == 1000 * MIB


def test_a_change_is_seen_at_the_next_call(node: Node) -> None:
    with node.hold(100) as held:
        held.set(5000)
        assert node.card()["compute"] == [process(held.pid, 5000)]
        held.set(10)
        held.set_managed(7)
        card = node.card()
    assert card["compute"] == [process(held.pid, 10)]
    assert card["memory_v2"]["used"] == 17 * MIB


def test_a_client_of_mps_is_a_compute_process_too_and_counts_once(node: Node) -> None:
    with node.hold(50, kind="mps") as held:
        card = node.card()
    assert card["compute"] == card["mps"] == [process(held.pid, 50)]
    assert card["memory_v2"]["used"] == 50 * MIB


def test_cards_are_apart(node: Node) -> None:
    node.use(Driver((numbered_device(0), numbered_device(1, total_mib=24576))))
    with node.hold(100, "1") as held:
        first, second = node.observe()["cards"]
    assert first["compute"] == []
    assert second["compute"] == [process(held.pid, 100)]
    assert second["memory_v2"]["total"] == 24576 * MIB
    assert [first["minor"], second["minor"]] == [0, 1]
    assert first["uuid"] != second["uuid"]
    assert second["bus_id"] == "00000000:19:00.0"


def test_two_hundred_processes_are_all_listed(node: Node) -> None:
    with ExitStack() as ended:
        held = [ended.enter_context(node.hold(index + 1)) for index in range(200)]
        card = node.card()
    assert card["compute"] == sorted(process(one.pid, index + 1) for index, one in enumerate(held))
    assert card["memory_v2"]["used"] == sum(range(1, 201)) * MIB


def test_more_than_what_is_free_is_refused_with_the_numbers(node: Node) -> None:
    node.use(Driver((numbered_device(0, total_mib=16384),)))
    with node.hold(10000), pytest.raises(ClusterError) as refused:
        node.hold(6000)
    assert str(refused.value) == (
        "simulated-alloc: out of memory: asked for 6000 MiB, 5769 MiB are free on the card"
    )


def test_what_is_managed_fills_the_card_too(node: Node) -> None:
    node.use(Driver((numbered_device(0, total_mib=16384),)))
    with node.hold(0, managed_mib=10000), pytest.raises(ClusterError, match="5769 MiB are free"):
        node.hold(3000, managed_mib=3000)
