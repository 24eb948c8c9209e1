"""Who sends: the API server's word about a token that is good for us alone.

Tokens come with audience gpumemory.dev, bound to a pod. The API server is asked about each one, and
its answer is believed for a minute: under the token's hash, so that no token is kept. Questions in
flight are bounded. Of an address that keeps sending bad tokens only those are looked at for a while
that were good before, and a few that claim to be of a sender that is expected: so nobody keeps its
neighbours from being heard, whose tokens are new ones every hour.
"""

import asyncio
import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from gpumem_operator import names
from gpumem_operator.kube.api import Object
from gpumem_operator.kube.errors import ApiError
from gpumem_operator.kube.resources import TOKEN_REVIEWS

BELIEVED_SECONDS: Final = 60.0
MOST_BELIEVED: Final = 20_000
_LONGEST_TOKEN: Final = 8192
_QUESTIONS_AT_ONCE: Final = 32
_QUESTION_SECONDS: Final = 5.0
_MOST_WAITING: Final = 1000
_EXTRA: Final = "authentication.kubernetes.io/"


@dataclass(frozen=True)
class Identity:
    """The account of a token, and what the token is bound to; empty where it is not."""

    user: str
    pod_uid: str = ""
    node: str = ""


@dataclass(frozen=True)
class Claim:
    """What a token says of itself, by nobody's word; empty for what it does not say."""

    user: str
    pod_uid: str
    node: str


class NotAuthenticated(Exception):
    """There is no token, or it is not good for us."""


class CanNotAsk(Exception):
    """The API server did not answer, or too many questions are waiting already."""


class TokenReviews(Protocol):
    """The part of the API that is needed here."""

    async def create(self, path: str, body: Object, *, seconds: float = ...) -> Object: ...


class Identities:
    """Identities by token."""

    def __init__(self, api: TokenReviews, monotonic: Callable[[], float]) -> None:
        self._api = api
        self._monotonic = monotonic
        self._known: dict[bytes, tuple[float, Identity | None]] = {}
        self._asking: dict[bytes, asyncio.Task[Identity | None]] = {}
        self._turns = asyncio.Semaphore(_QUESTIONS_AT_ONCE)

    async def of(self, token: str) -> Identity:
        """Raises NotAuthenticated and CanNotAsk."""
        if claim_in(token) is None:
            raise NotAuthenticated(f"a token with audience {names.TOKEN_AUDIENCE} is needed")
        digest = _digest(token)
        until, identity = self._known.get(digest, (0.0, None))
        if self._monotonic() >= until:
            identity = await self._ask_once(digest, token)
        if identity is None:
            raise NotAuthenticated("the API server does not take the token for a valid one")
        return identity

    def familiar(self, token: str) -> bool:
        """Whether the token was good when the API server was last asked about it."""
        _, identity = self._known.get(_digest(token), (0.0, None))
        return identity is not None

    async def _ask_once(self, digest: bytes, token: str) -> Identity | None:
        """All who come with the same token wait for the same answer."""
        task = self._asking.get(digest)
        if task is None:
            if len(self._asking) >= _MOST_WAITING:
                raise CanNotAsk("too many tokens wait to be looked at")
            task = self._asking[digest] = asyncio.create_task(self._ask(token))
            task.add_done_callback(lambda done: self._answered(digest, done))
        try:
            return await asyncio.shield(task)
        except ApiError as error:
            raise CanNotAsk(str(error)) from error

    async def _ask(self, token: str) -> Identity | None:
        body = {
            "apiVersion": f"{TOKEN_REVIEWS.group}/{TOKEN_REVIEWS.version}",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [names.TOKEN_AUDIENCE]},
        }
        async with self._turns:
            review = await self._api.create(TOKEN_REVIEWS.path(), body, seconds=_QUESTION_SECONDS)
        return identity_in(review.get("status") or {})

    def _answered(self, digest: bytes, task: asyncio.Task[Identity | None]) -> None:
        del self._asking[digest]
        if task.cancelled() or task.exception() is not None:
            return
        while len(self._known) >= MOST_BELIEVED:
            del self._known[next(iter(self._known))]
        self._known.pop(digest, None)
        self._known[digest] = (self._monotonic() + BELIEVED_SECONDS, task.result())


def identity_in(status: Mapping[str, Any]) -> Identity | None:
    """The identity in a TokenReview's status; None where the token was not taken for us."""
    if not status.get("authenticated"):
        return None
    if names.TOKEN_AUDIENCE not in (status.get("audiences") or ()):
        return None
    user = status.get("user") or {}
    extra = user.get("extra") or {}
    return Identity(
        user=user.get("username") or "",
        pod_uid=_one(extra.get(f"{_EXTRA}pod-uid")),
        node=_one(extra.get(f"{_EXTRA}node-name")),
    )


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()


def _one(values: Any) -> str:
    return str(values[0]) if values and len(values) == 1 else ""


def claim_in(token: str) -> Claim | None:
    """What a token with our audience says of itself; None for anything else."""
    parts = token.split(".")
    if len(token) > _LONGEST_TOKEN or len(parts) != 3 or not token.isascii():
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=="))
        audiences = claims["aud"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if names.TOKEN_AUDIENCE not in (audiences if isinstance(audiences, list) else [audiences]):
        return None
    bound = _part(claims, "kubernetes.io")
    return Claim(
        user=_text(claims.get("sub")),
        pod_uid=_text(_part(bound, "pod").get("uid")),
        node=_text(_part(bound, "node").get("name")),
    )


def _part(claims: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = claims.get(key)
    return found if isinstance(found, dict) else {}


def _text(found: object) -> str:
    return found if isinstance(found, str) else ""
