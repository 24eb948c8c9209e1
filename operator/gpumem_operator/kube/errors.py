"""What can go wrong between us and the API server, said in one way by both clients.

There are two, because they serve different ends: `rest.py` is small, follows watches and stores
room for the webhook, `api.py` logs in as kubectl does and writes, for the controller and the
command line.
"""

import json
from collections.abc import Mapping
from typing import Any, Final


class ApiError(Exception):
    """The API server was not reached, or refused.

    ApiError
    +-- Unreached  no connection came about, so nothing else can be asked either
    +-- NotFound   404: the object, or its whole kind, is not there
    +-- Conflict   409: it changed meanwhile, is another one (uid), or exists already
    +-- Gone       410: the resourceVersion or continue token is too old
    """

    def __init__(
        self, what: str, message: str, status: int = 0, *, causes: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(f"{what}: {message}")
        self.status = status
        """HTTP status; 0 where no answer came."""
        self.causes: Mapping[str, str] = causes or {}
        """Sentences of the API server about what stood in the way, by its word for the reason."""


class Unreached(ApiError):
    """See ApiError."""


class NotFound(ApiError):
    """See ApiError."""


class Conflict(ApiError):
    """See ApiError."""


class Gone(ApiError):
    """See ApiError."""


_BY_STATUS: Final[Mapping[int, type[ApiError]]] = {404: NotFound, 409: Conflict, 410: Gone}


def refused(what: str, content: bytes, status: int) -> ApiError:
    """The error for an answer with this body and HTTP status."""
    try:
        return of_status(what, json.loads(content), status)
    # A proxy before the API server answers in its own words.
    except (ValueError, KeyError, TypeError, AttributeError):
        message = f"{status} {_beginning(content)}"
        return _BY_STATUS.get(status, ApiError)(what, message, status)


def object_in(what: str, content: bytes) -> dict[str, Any]:
    """The JSON object in an answer that is none of an error. Raises ApiError where there is none:
    it is not the API server's then."""
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ApiError(what, f"an answer that is no JSON object: {_beginning(content)}")
    return found


def _beginning(content: bytes) -> str:
    return content[:200].decode(errors="replace")


def of_status(what: str, found: Mapping[str, Any], status: int) -> ApiError:
    """The error for a Status object. Raises KeyError where it has no message."""
    causes = {
        str(cause.get("reason")): str(cause["message"])
        for cause in (found.get("details") or {}).get("causes") or ()
        if cause.get("message")
    }
    message = f"{status} {found['message']}"
    return _BY_STATUS.get(status, ApiError)(what, message, status, causes=causes)
