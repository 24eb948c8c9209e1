"""Addresses of Services without kube-proxy, for a kernel without nftables.

    python -m devcluster.node.service_relay HOST PORT PKI

Every address of a Service is made one of the node's own, and whatever is connected to it is passed
on to a ready endpoint, byte by byte: as kube-proxy did in its first years. TCP alone; whom a
connection comes from is lost. The API server needs none of it: it calls endpoints directly.
"""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import ssl
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from devcluster.node.kubelet import SERVING_NAME
from devcluster.node.requirements import find_program

Address = tuple[str, int]
Routes = dict[Address, list[Address]]
LOOK_SECONDS = 0.5
ANSWER_SECONDS = 10.0
CHUNK = 65536
_SERVICE_OF_SLICE = "kubernetes.io/service-name"


def kernel_has_nftables() -> bool:
    """Whether kube-proxy could write its rules, tried in a network namespace of its own."""
    nft = find_program("nft") or "nft"
    command = ["unshare", "--net", nft, "add", "table", "ip", "devcluster"]
    return subprocess.run(command, capture_output=True).returncode == 0


def routes(services: Sequence[Any], slices: Sequence[Any]) -> Routes:
    """Where each address of a Service leads; to nowhere while nothing is ready."""
    found: Routes = {}
    for service in services:
        spec = service["spec"]
        address = spec.get("clusterIP")
        if not address or address == "None":
            continue
        own = [one for one in slices if _key(service) == _key_of_slice(one)]
        for port in spec.get("ports", ()):
            if port.get("protocol", "TCP") == "TCP":
                found[address, port["port"]] = _endpoints(own, port.get("name") or "")
    return found


def _key(service: Mapping[str, Any]) -> tuple[str, str]:
    metadata = service["metadata"]
    return metadata["namespace"], metadata["name"]


def _key_of_slice(raw: Mapping[str, Any]) -> tuple[str, str]:
    metadata = raw["metadata"]
    return metadata["namespace"], metadata.get("labels", {}).get(_SERVICE_OF_SLICE, "")


def _endpoints(slices: Sequence[Any], port_name: str) -> list[Address]:
    return [
        (address, port["port"])
        for one in slices
        for port in one.get("ports") or ()
        if (port.get("name") or "") == port_name
        for endpoint in one.get("endpoints") or ()
        if endpoint.get("conditions", {}).get("ready") is not False
        for address in endpoint["addresses"]
    ]


class Relay:
    """Listens at every address of a Service and passes on."""

    def __init__(self) -> None:
        self._routes: Routes = {}
        self._servers: dict[Address, asyncio.Server] = {}
        self._turn = itertools.count()

    async def follow(self, routes: Routes) -> None:
        """From now on lead to these. Addresses of Services that are gone stay, and lead nowhere."""
        self._routes = routes
        for address in routes:
            if address not in self._servers:
                _make_own(address[0])
                self._servers[address] = await self._serve(address)

    async def close(self) -> None:
        """Listen nowhere any more."""
        for server in self._servers.values():
            server.close()

    async def _serve(self, address: Address) -> asyncio.Server:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._pass_on(address, reader, writer)

        return await asyncio.start_server(serve, *address)

    async def _pass_on(
        self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        ready = self._routes.get(address, [])
        try:
            target = ready[next(self._turn) % len(ready)] if ready else None
            if target is not None:
                there, back = await asyncio.open_connection(*target)
                with closing(back):
                    await asyncio.gather(_pump(reader, back), _pump(there, writer))
        except OSError as error:
            print(f"{address}: {error}", flush=True)
        finally:
            writer.close()


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while chunk := await source.read(CHUNK):
            target.write(chunk)
            await target.drain()
    with suppress(OSError):
        target.write_eof() if target.can_write_eof() else target.close()


def _make_own(address: str) -> None:
    """One Service may have several ports, so the address may be there already."""
    ip = find_program("ip") or "ip"
    subprocess.run([ip, "address", "replace", f"{address}/32", "dev", "lo"], check=True)


class _ApiServer:
    def __init__(self, host: str, port: int, pki: Path) -> None:
        self._where = (host, port)
        self._context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        # kube-proxy's own credentials are in a kubeconfig; those of the administrator are at hand.
        self._context.load_cert_chain(pki / "admin.crt", pki / "admin.key")

    def list(self, path: str) -> list[Any]:
        connection = http.client.HTTPConnection(*self._where, timeout=ANSWER_SECONDS)
        connection.connect()
        connection.sock = self._context.wrap_socket(connection.sock, server_hostname=SERVING_NAME)
        try:
            connection.request("GET", path)
            items: list[Any] = json.load(connection.getresponse())["items"]
            return items
        finally:
            connection.close()


async def _run(server: _ApiServer) -> None:
    relay = Relay()
    while True:
        try:
            services = await asyncio.to_thread(server.list, "/api/v1/services")
            slices = await asyncio.to_thread(
                server.list, "/apis/discovery.k8s.io/v1/endpointslices"
            )
            await relay.follow(routes(services, slices))
        except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
            print(f"the API server does not answer: {error!r}", flush=True)
        await asyncio.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    asyncio.run(_run(_ApiServer(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))))
