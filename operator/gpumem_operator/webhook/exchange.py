"""One question of the API server and its answer, as data.

kopf finds a patch by comparing the pod with a changed copy, which is most of what an admission
costs there. The core knows the operations already: a handler puts its verdict into the exchange,
and the response is made from it.
"""

import base64
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Self

import orjson

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
    subresource: str
    pod: Mapping[str, Any]
    old_pod: Mapping[str, Any]
    """Empty where the pod is being created."""
    dry_run: bool = False
    """Whether nothing may be written anywhere on its account."""
    verdict: Verdict | None = None

    @classmethod
    def parse(cls, body: bytes) -> Self:
        """Raises BadReviewError with a sentence that names what is wrong."""
        try:
            review = orjson.loads(body)
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
        resource = request.get("resource")
        if not isinstance(resource, dict) or resource.get("resource") != "pods":
            raise BadReviewError(f"request.resource is {resource!r:.200}: only pods are reviewed")
        if not isinstance(request.get("object"), dict):
            raise BadReviewError("request.object is missing: only pods being written are reviewed")
        return cls(
            uid=request["uid"],
            namespace=request.get("namespace") or "",
            operation=request.get("operation") or "",
            subresource=request.get("subResource") or "",
            pod=request["object"],
            old_pod=request.get("oldObject") or {},
            dry_run=request.get("dryRun") is True,
        )

    @property
    def title(self) -> str:
        metadata = self.pod.get("metadata") or {}
        name = metadata.get("name") or f"{metadata.get('generateName') or ''}*"
        return f"{self.namespace}/{name}"


current: ContextVar[Exchange] = ContextVar("current")
"""The exchange that the running handler belongs to."""


def response(uid: str, verdict: Verdict) -> bytes:
    """The body of the answer."""
    answer: dict[str, Any] = {"uid": uid, "allowed": verdict.refusal is None}
    if verdict.warnings:
        answer["warnings"] = verdict.warnings
    if verdict.refusal is not None:
        answer["status"] = {"message": verdict.refusal, "code": verdict.code}
    elif verdict.operations:
        patch = orjson.dumps(verdict.operations)
        answer["patch"] = base64.b64encode(patch).decode("ascii")
        answer["patchType"] = "JSONPatch"
    review = {"apiVersion": REVIEW_API_VERSION, "kind": REVIEW_KIND, "response": answer}
    return orjson.dumps(review)
