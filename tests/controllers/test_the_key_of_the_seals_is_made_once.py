"""Whoever loses the key believes no running pod any more, so nothing replaces it lightly."""

from __future__ import annotations

import asyncio
import base64
from typing import cast

import pytest

from gpumem_operator import names
from gpumem_operator.controllers.sealing import SealChangedError, SealKey
from gpumem_operator.kube.api import Api, Object
from gpumem_operator.kube.errors import Conflict


class OneSecret:
    """An API server that has one Secret, and says 409 to whoever read an older version."""

    def __init__(self, data: dict[str, str] | None = None) -> None:
        self.data = data
        self.version = 1

    async def get(self, path: str) -> Object:
        assert path == "/api/v1/namespaces/ns/secrets/seal"
        metadata = {"name": "seal", "resourceVersion": str(self.version)}
        await asyncio.sleep(0)
        return {"metadata": metadata, **({"data": dict(self.data)} if self.data else {})}

    async def replace(self, path: str, body: Object) -> Object:
        await asyncio.sleep(0)
        if body["metadata"]["resourceVersion"] != str(self.version):
            raise Conflict(path, "changed meanwhile", 409)
        self.data, self.version = body["data"], self.version + 1
        return body


def api(secret: OneSecret) -> Api:
    return cast("Api", secret)


def new_key() -> SealKey:
    return SealKey(namespace="ns", name="seal")


def made_with(secret: OneSecret) -> str:
    return asyncio.run(_made_with(secret))


async def _made_with(secret: OneSecret) -> str:
    seal = await new_key().seal(api(secret))
    return seal.of("ns", "main", source="Policy", limit_bytes="1")


def test_an_empty_secret_is_filled_and_every_process_uses_the_same_key() -> None:
    secret = OneSecret()

    assert made_with(secret) == made_with(secret)
    assert secret.version == 2  # written once
    assert len(base64.b64decode((secret.data or {})[names.SEAL_KEY])) == 32


def test_two_clusters_have_two_keys() -> None:
    assert made_with(OneSecret()) != made_with(OneSecret())


def test_of_two_replicas_at_once_one_makes_it() -> None:
    secret = OneSecret()

    async def both() -> list[object]:
        seals = (new_key().seal(api(secret)) for _ in range(2))
        return list(await asyncio.gather(*seals, return_exceptions=True))

    answers = asyncio.run(both())

    assert sum(isinstance(answer, Conflict) for answer in answers) == 1
    assert secret.version == 2


def test_a_key_that_was_taken_out_is_put_back() -> None:
    secret, key = OneSecret(), new_key()

    async def story() -> None:
        await key.seal(api(secret))
        before, secret.data = secret.data, None
        await key.seal(api(secret))
        assert secret.data == before

    asyncio.run(story())


def test_another_key_ends_the_process() -> None:
    secret, key = OneSecret(), new_key()

    async def story() -> None:
        await key.seal(api(secret))
        secret.data = {names.SEAL_KEY: base64.b64encode(b"x" * 32).decode()}
        await key.seal(api(secret))

    with pytest.raises(SealChangedError, match="Secret ns/seal has another key"):
        asyncio.run(story())
