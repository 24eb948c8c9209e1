"""One question of the API server and its answer, as data.

kopf hands a request to the handlers and makes a response of its own: it copies the whole pod and
finds the patch by comparing two of them, which is most of what an admission costs there. The core
knows the operations already. So the pod travels beside kopf, in the exchange, and the response is
made from the verdict.
"""

import base64
import json
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Self

from gpumem_operator.admission.verdict import Verdict

REVIEW_API_VERSION: Final = "admission.k8s.io/v1"
REVIEW_KIND: Final = "AdmissionReview"


class BadReviewError(Exception):
    """The body of a request is not an AdmissionReview about a pod."""


@dataclass
class Exchange:
    """Mutable in one place: a handler sets `verdict`. Without one the request is refused."""

    uid: str
    namespace: str
    operation: str
    dry_run: bool
    pod: Mapping[str, Any]
    old_pod: Mapping[str, Any]
    """Empty where the pod is being created."""
    raw: Mapping[str, Any]
    """The `request` of the review."""
    verdict: Verdict | None = None

    @classmethod
    def parse(cls, body: bytes) -> Self:
        """Raises BadReviewError with a sentence that names what is wrong."""
        try:
            review = json.loads(body)
        except ValueError as error:
            raise BadReviewError(f"the body is not JSON: {error}") from None
        if not isinstance(review, dict) or review.get("kind") != REVIEW_KIND:
            raise BadReviewError(f"the body is not of kind {REVIEW_KIND}")
        if review.get("apiVersion") != REVIEW_API_VERSION:
            given = review.get("apiVersion")
            raise BadReviewError(f"apiVersion is {given!r:.80} and must be {REVIEW_API_VERSION!r}")
        request = review.get("request")
        if not isinstance(request, dict) or not isinstance(request.get("uid"), str):
            raise BadReviewError("request.uid is missing")
        if not isinstance(request.get("resource"), dict):
            raise BadReviewError("request.resource is missing")
        if not isinstance(request.get("object"), dict):
            raise BadReviewError("request.object is missing: only pods being written are reviewed")
        return cls(
            uid=request["uid"],
            namespace=request.get("namespace") or "",
            operation=request.get("operation") or "",
            dry_run=bool(request.get("dryRun")),
            pod=request["object"],
            old_pod=request.get("oldObject") or {},
            raw=request,
        )

    @property
    def title(self) -> str:
        metadata = self.pod.get("metadata") or {}
        name = metadata.get("name") or f"{metadata.get('generateName') or ''}*"
        return f"{self.namespace}/{name}"

    def for_kopf(self) -> Any:
        """A review that is cheap to copy and has all that kopf needs to find the handler.

        It has no uid: kopf would keep a memory of every pod that it is asked about, for ever.
        """
        metadata = self.pod.get("metadata") or {}
        stand_in = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"namespace": self.namespace, "name": metadata.get("name")},
        }
        keys = ("uid", "resource", "subResource", "operation", "dryRun")
        request = {key: self.raw.get(key) for key in keys}
        request |= {"userInfo": self.raw.get("userInfo") or {}, "object": stand_in}
        return {"apiVersion": REVIEW_API_VERSION, "kind": REVIEW_KIND, "request": request}


current: ContextVar[Exchange] = ContextVar("current")
"""The exchange that the running handler belongs to."""


def response(uid: str, verdict: Verdict) -> bytes:
    """The body of the answer."""
    answer: dict[str, Any] = {"uid": uid, "allowed": verdict.refusal is None}
    if verdict.warnings:
        answer["warnings"] = list(verdict.warnings)
    if verdict.refusal is not None:
        answer["status"] = {"message": verdict.refusal, "code": verdict.code}
    elif verdict.operations:
        patch = json.dumps(verdict.operations, separators=(",", ":"), default=dict).encode()
        answer["patch"] = base64.b64encode(patch).decode("ascii")
        answer["patchType"] = "JSONPatch"
    review = {"apiVersion": REVIEW_API_VERSION, "kind": REVIEW_KIND, "response": answer}
    return json.dumps(review, separators=(",", ":")).encode()
