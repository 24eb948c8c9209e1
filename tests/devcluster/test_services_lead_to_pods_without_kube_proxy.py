"""The routes of the relay, and connections by it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from devcluster.node import service_relay
from devcluster.node.service_relay import Relay, routes


def service(name: str, *ports: dict[str, Any], address: str = "10.96.0.7") -> dict[str, Any]:
    metadata = {"namespace": "here", "name": name}
    return {"metadata": metadata, "spec": {"clusterIP": address, "ports": list(ports)}}


def endpoints(
    of: str, *addresses: str, port: int = 9443, port_name: str = "", ready: bool | None = True
) -> dict[str, Any]:
    labels = {"kubernetes.io/service-name": of}
    return {
        "metadata": {"namespace": "here", "name": f"{of}-x", "labels": labels},
        "ports": [{"name": port_name, "port": port}],
        "endpoints": [{"addresses": [one], "conditions": {"ready": ready}} for one in addresses],
    }


def test_a_port_leads_to_the_port_of_the_same_name_of_every_ready_endpoint() -> None:
    ports = [{"name": "https", "port": 443}, {"name": "health", "port": 80}]
    slices = [
        endpoints("web", "10.1.0.1", "10.1.0.2", port_name="https"),
        endpoints("web", "10.1.0.1", port=8081, port_name="health"),
        endpoints("other", "10.1.0.9", port_name="https"),
    ]

    found = routes([service("web", *ports)], slices)

    assert found == {
        ("10.96.0.7", 443): [("10.1.0.1", 9443), ("10.1.0.2", 9443)],
        ("10.96.0.7", 80): [("10.1.0.1", 8081)],
    }


@pytest.mark.parametrize(("ready", "leads"), [(True, True), (None, True), (False, False)])
def test_an_endpoint_that_is_not_ready_is_left_out(ready: bool | None, leads: bool) -> None:
    found = routes([service("web", {"port": 443})], [endpoints("web", "10.1.0.1", ready=ready)])

    assert bool(found["10.96.0.7", 443]) is leads


def test_services_without_an_address_and_other_protocols_are_left_out() -> None:
    headless = service("headless", {"port": 443}, address="None")
    names = service("names", {"port": 53, "protocol": "UDP"})

    assert routes([headless, names], []) == {}


async def test_what_is_connected_to_a_service_reaches_an_endpoint_and_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Every address of 127.0.0.0/8 is this machine's own already.
    monkeypatch.setattr(service_relay, "_make_own", lambda _: None)

    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read()).upper())
        writer.close()

    pod = await asyncio.start_server(shout, "127.0.0.1", 0)
    relay = Relay()
    own = ("127.96.0.7", pod.sockets[0].getsockname()[1])
    async with pod:
        await relay.follow({own: [pod.sockets[0].getsockname()]})
        reader, writer = await asyncio.open_connection(*own)
        writer.write(b"hello")
        writer.write_eof()

        assert await reader.read() == b"HELLO"
        writer.close()
        await relay.close()
