"""One door to the API server for the controller: plain dicts in and out, always with a timeout.

The client library does the credentials, TLS and connections. Its typed methods are left aside: they
validate every object against models that cost tens of MiB, and they lose fields that are newer than
the library.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import aiohttp
from kubernetes.aio import client, config
from multidict import CIMultiDict

from gpumem_operator.kube.errors import ApiError, Unreached, object_in, refused

REQUEST_SECONDS: Final = 15.0
"""Longer than any healthy answer, a page of 500 large pods included."""

JSON: Final = "application/json"
METADATA_OF_LIST: Final = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""What to accept for a list without anything but the metadata of its objects."""

Object = dict[str, Any]
"""One object as the API server sends it."""
Query = Mapping[str, str]


class Patch(StrEnum):
    """How the body of a patch is meant."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    APPLY = "application/apply-patch+yaml"


class Api:
    """Requests to one API server."""

    def __init__(
        self, connection: client.ApiClient, *, headers: Sequence[tuple[str, str]] = ()
    ) -> None:
        """`headers` go along with every request; a name may occur more than once."""
        self._connection = connection
        self._headers = headers

    async def get(
        self,
        path: str,
        *,
        query: Query | None = None,
        accept: str = JSON,
        seconds: float = REQUEST_SECONDS,
    ) -> Object:
        return await self.request(
            "GET", path, query=query, headers={"Accept": accept}, seconds=seconds
        )

    async def create(self, path: str, body: Object, *, seconds: float = REQUEST_SECONDS) -> Object:
        return await self.request("POST", path, body=body, seconds=seconds)

    async def replace(self, path: str, body: Object, *, seconds: float = REQUEST_SECONDS) -> Object:
        return await self.request("PUT", path, body=body, seconds=seconds)

    async def patch(
        self,
        path: str,
        body: Object | list[Object],
        *,
        kind: Patch,
        query: Query | None = None,
        seconds: float = REQUEST_SECONDS,
    ) -> Object:
        return await self.request(
            "PATCH", path, body=body, content_type=kind, query=query, seconds=seconds
        )

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Object | list[Object] | None = None,
        content_type: str = JSON,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
        seconds: float = REQUEST_SECONDS,
    ) -> Object:
        """One request and its answer.

        Raises ApiError or one of its kinds; `seconds` cover the whole exchange, in seconds.
        """
        what = f"{method} {path}"
        try:
            async with asyncio.timeout(seconds):
                method, address, sent, sent_body, _ = await self._connection.param_serialize(
                    method,
                    path,
                    query_params=list((query or {}).items()),
                    header_params={
                        "Accept": JSON,
                        "Content-Type": content_type,
                        **(headers or {}),
                    },
                    body=body,
                    auth_settings=["BearerToken"],
                )
                answer = await self._connection.call_api(
                    method,
                    address,
                    # The library's own dict has a name once, and groups come one by one.
                    CIMultiDict([*sent.items(), *self._headers]),
                    sent_body,
                    _request_timeout=seconds,
                )
                content = await answer.response.read()
        except TimeoutError as error:
            raise ApiError(what, f"no answer within {seconds:g} s") from error
        except aiohttp.ClientConnectorError as error:
            server = f"API server {self._connection.configuration.host}"
            raise Unreached(server, _why_unreached(error)) from error
        except (aiohttp.ClientError, OSError) as error:
            raise ApiError(what, f"not reached: {error!r}") from error
        if answer.status >= 300:
            raise refused(what, content, answer.status)
        return object_in(what, content)


def _why_unreached(error: aiohttp.ClientConnectorError) -> str:
    """In the words of people, where the system's own are a program's."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"not trusted: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"not reached, its name {error.host} is not known"
    if isinstance(error.os_error, ConnectionRefusedError):
        return "not reached, it refuses connections"
    return f"not reached, {error.os_error.strerror or error.os_error}"


@asynccontextmanager
async def connect(kubeconfig: Path | None) -> AsyncIterator[Api]:
    """The API server of a kubeconfig, or of the cluster that this process runs in (None)."""
    configuration = await load_configuration(kubeconfig)
    async with client.ApiClient(configuration) as connection:
        yield Api(connection)


async def load_configuration(kubeconfig: Path | None) -> client.Configuration:
    """Address and credentials; those of the cluster are read again as its token is rotated."""
    configuration = client.Configuration()
    if kubeconfig is None:
        config.load_incluster_config(  # type: ignore[no-untyped-call]
            client_configuration=configuration
        )
    else:
        await config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=str(kubeconfig), client_configuration=configuration
        )
    return configuration
