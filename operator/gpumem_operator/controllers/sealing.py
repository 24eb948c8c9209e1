"""The key that declarations are sealed with: made once, and put back where somebody emptied it.

Any replica may make it, because the Secret is replaced as it was read: of two replicas that find it
empty one gets a conflict, and reads what the other wrote.
"""

import base64
import logging
import secrets
from typing import Final

from gpumem_operator import names
from gpumem_operator.api.seal import KEY_BYTES, Seal
from gpumem_operator.kube.api import Api, Object
from gpumem_operator.kube.resources import SECRETS

_LOG = logging.getLogger(__name__)


class SealChangedError(Exception):
    """The Secret has another key than this process works with: it has to start from nothing."""


class SealKey:
    """The key in one Secret."""

    def __init__(self, *, namespace: str, name: str) -> None:
        self._path: Final = SECRETS.path(name, namespace=namespace)
        self._title: Final = f"Secret {namespace}/{name}"
        self._key: bytes | None = None

    async def seal(self, api: Api) -> Seal:
        """The seal of the stored key, which is made or put back where there is none.

        Raises ApiError, or SealChangedError where the key is not the one that was there before.
        """
        secret = await api.get(self._path)
        stored = base64.b64decode((secret.get("data") or {}).get(names.SEAL_KEY) or "")
        if not stored:
            stored = await self._fill(api, secret)
        if self._key not in (None, stored):
            raise SealChangedError(
                f"{self._title} has another key than before: declarations of running pods are "
                "checked anew with it"
            )
        self._key = stored
        return Seal(stored)

    async def _fill(self, api: Api, secret: Object) -> bytes:
        key = self._key or secrets.token_bytes(KEY_BYTES)
        encoded = base64.b64encode(key).decode()
        await api.replace(self._path, {**secret, "data": {names.SEAL_KEY: encoded}})
        _LOG.info("%s: the key was %s", self._title, "put back" if self._key else "made")
        return key
