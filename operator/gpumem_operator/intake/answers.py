"""What is answered where a request is not taken: a status and one sentence, nothing of ours."""

from typing import Final

import orjson
from aiohttp import web
from pydantic import ValidationError

JSON: Final = "application/json"
_SHOWN_FAULTS: Final = 5
_LONGEST_TEXT: Final = 1024


class Refusal(Exception):
    """Ends the work on a request with this status and sentence."""

    def __init__(self, status: int, text: str, *, retry_seconds: int = 0) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.retry_seconds = retry_seconds

    def response(self) -> web.Response:
        body = orjson.dumps({"error": self.text[:_LONGEST_TEXT]})
        answer = web.Response(status=self.status, body=body, content_type=JSON)
        if self.retry_seconds:
            answer.headers["Retry-After"] = str(self.retry_seconds)
        if self.status == 401:
            answer.headers["WWW-Authenticate"] = "Bearer"
        return answer


def faults_of(error: ValidationError) -> str:
    """The first faults with their paths; never what was sent, which may be anything."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    shown = [f"{_path(fault['loc'])}: {fault['msg']}" for fault in faults[:_SHOWN_FAULTS]]
    if len(faults) > _SHOWN_FAULTS:
        shown.append(f"and {len(faults) - _SHOWN_FAULTS} more")
    return "; ".join(shown).encode("ascii", "replace").decode("ascii")


def _path(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part)[:64] for part in location) or "body"
