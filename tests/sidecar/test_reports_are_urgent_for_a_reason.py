"""While a container is over its limit, an order is open or the leader asks for it: every 500 ms."""

from __future__ import annotations

from gpumem_sidecar.answer import Limit, Order
from gpumem_sidecar.outbox import HEARTBEAT_SECONDS, URGENT_SECONDS
from gpumem_sidecar.report import Acknowledgement
from sending import GIB, POD, Sender, picture


def test_a_container_over_its_limit_makes_every_picture_news(sender: Sender) -> None:
    assert not sender.outbox.urgent
    assert sender.message(picture(), after=30)
    sender.accepted(limits=(Limit(POD, "main", 8 * GIB),))
    assert sender.outbox.urgent
    assert sender.message(picture(held=10 * GIB + 1), after=0.5)["kind"] == "Full"
    sender.accepted(limits=(Limit(POD, "main", 8 * GIB),))
    assert sender.message() is None, "nothing without a new picture"
    assert sender.message(picture(held=7 * GIB), after=0.5)
    sender.accepted(limits=(Limit(POD, "main", 8 * GIB),))
    assert not sender.outbox.urgent


def test_that_a_container_is_back_at_its_limit_is_news_however_little_it_gave_back(
    sender: Sender,
) -> None:
    limits = (Limit(POD, "main", 10 * GIB),)
    assert sender.message(picture(held=10 * GIB + 1), after=30)
    sender.accepted(limits=limits)
    assert sender.message(picture(held=10 * GIB), after=0.5)["kind"] == "Full"
    assert sender.outbox.urgent, "until the leader has it"
    sender.accepted(limits=limits)
    assert not sender.outbox.urgent
    assert sender.message(picture(held=10 * GIB - 1), after=0.5) is None


def test_the_processes_of_a_container_add_up_on_each_card_by_itself(sender: Sender) -> None:
    limits = (Limit(POD, "main", 15 * GIB),)
    sender.message(after=30)
    sender.accepted(limits=limits)
    sender.outbox.take(picture(pids=(7, 8)), sender.now)
    assert sender.outbox.urgent
    two = picture(pids=(7, 8))
    elsewhere = (two.processes[0], two.processes[1]._replace(gpu="GPU-1"))
    sender.outbox.take(two._replace(processes=elsewhere), sender.now)
    assert not sender.outbox.urgent


def test_a_process_without_a_shim_is_its_container_s_by_the_id(sender: Sender) -> None:
    told = picture(held=10 * GIB)
    bare = told.processes[0]._replace(container=None, container_id="containerd://0123")
    sender.outbox.take(told._replace(processes=(bare,)), sender.now)
    sender.message(after=30)
    for limit, urgent in (
        (Limit(POD, "main", 8 * GIB, "0123"), True),
        (Limit(POD, "main", 12 * GIB, "0123"), False),
        (Limit(POD, "other", 8 * GIB, "4567"), False),
        (Limit("another pod", "main", 8 * GIB, "0123"), False),
    ):
        sender.accepted(limits=(limit,))
        assert sender.outbox.urgent is urgent, limit


def test_an_order_is_urgent_until_it_was_acknowledged(sender: Sender) -> None:
    sender.message(after=HEARTBEAT_SECONDS)
    sender.accepted(orders=(Order("a-1", "Reclaim"),))
    assert sender.outbox.urgent
    assert sender.message(picture(), after=URGENT_SECONDS)["acknowledgements"] == []
    sender.accepted(Acknowledgement("a-1", "Unsupported"), orders=(Order("a-1", "Reclaim"),))
    lost = sender.message(after=URGENT_SECONDS)
    assert lost["acknowledgements"] == [{"id": "a-1", "result": "Unsupported", "bytes": None}]
    sender.outbox.failed(sender.now, 0.0)
    again = sender.message(after=2)
    assert again["acknowledgements"] == lost["acknowledgements"], "until it has arrived"
    sender.accepted()
    assert not sender.outbox.urgent
    assert sender.message(picture(held=1), after=1)["acknowledgements"] == []


def test_a_leader_that_sees_more_than_the_sender_gets_every_picture(sender: Sender) -> None:
    sender.message(after=HEARTBEAT_SECONDS)
    sender.accepted(urgent=True)
    assert sender.outbox.urgent
    assert sender.message(picture(), after=URGENT_SECONDS)
    sender.accepted()
    assert not sender.outbox.urgent
