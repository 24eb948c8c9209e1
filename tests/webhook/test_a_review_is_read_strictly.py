"""What is not an AdmissionReview about a pod is named, and never answered as if it were one."""

import base64
import json

import pytest

from gpumem_operator.admission.verdict import Verdict
from gpumem_operator.webhook.exchange import BadReviewError, Exchange, response
from webhook.builders import gpu_pod, review


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        pytest.param(b"{", "not JSON", id="cut off"),
        pytest.param(b"\xff", "not JSON", id="not text"),
        pytest.param(b"[]", "not of kind AdmissionReview", id="a list"),
        pytest.param(b"{}", "not of kind AdmissionReview", id="an empty object"),
        pytest.param(
            b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1"}',
            "must be 'admission.k8s.io/v1'",
            id="an old version",
        ),
        pytest.param(
            b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}',
            "request.uid is missing",
            id="no request",
        ),
        pytest.param(review(gpu_pod(), object=None), "request.object is missing", id="a deletion"),
        pytest.param(
            review(gpu_pod(), resource={"resource": "services"}), "only pods", id="a service"
        ),
    ],
)
def test_a_body_that_is_no_review_of_a_pod_is_named(body: bytes, complaint: str) -> None:
    with pytest.raises(BadReviewError, match=complaint):
        Exchange.parse(body)


def test_a_pod_without_a_name_is_called_by_its_generate_name() -> None:
    pod = gpu_pod()
    pod["metadata"] = {"generateName": "train-"}
    assert Exchange.parse(review(pod)).title == "team-a/train-*"


def test_an_answer_carries_the_operations_as_they_were_planned() -> None:
    operations = ({"op": "add", "path": "/metadata/labels", "value": {"a": "ä"}},)
    answer = json.loads(response("u", Verdict(operations=operations, warnings=("w",))))["response"]
    assert json.loads(base64.b64decode(answer.pop("patch"))) == list(operations)
    assert answer == {"uid": "u", "allowed": True, "warnings": ["w"], "patchType": "JSONPatch"}


def test_a_refusal_has_a_code_and_no_patch() -> None:
    answer = json.loads(response("u", Verdict(refusal="no", code=403)))["response"]
    assert answer == {"uid": "u", "allowed": False, "status": {"message": "no", "code": 403}}
