"""Pods that take GPUs by resource claims."""

from typing import Any

import pytest

from gpumem_operator.admission.verdict import Verdict
from gpumem_operator.api.records import Surroundings, namespace_record, policy_record
from gpumem_operator.api.values import Values
from gpumem_operator.kube.rest import ApiError, RawObject
from gpumem_operator.webhook.claims import ClaimReader
from gpumem_operator.webhook.exchange import Exchange
from gpumem_operator.webhook.reviewer import Reviewer
from gpumem_operator.webhook.surroundings import UnreadableError
from webhook.builders import claim_pod, cpu_pod, gpu_pod, namespace, policy, review

GPU_CLASS, OTHER_CLASS = "gpu.nvidia.com", "nic.example.com"


class Server:
    """Has the claims that it was given, by the end of their path."""

    def __init__(self, claims: dict[str, RawObject], *, down: bool = False) -> None:
        self._claims = claims
        self._down = down

    async def get(self, path: str, **_: object) -> RawObject:
        if self._down:
            raise ApiError("connection refused")
        if (found := self._claims.get(path.partition("/team-a/")[2])) is None:
            raise ApiError("not found", code=404)
        return found


class Around:
    """Surroundings with a policy, with nothing, or that can not be read."""

    def __init__(self, *, policies: int = 1, unreadable: bool = False) -> None:
        self._policies = tuple(policy_record(policy(f"p{number}")) for number in range(policies))
        self._unreadable = unreadable

    async def of(self, name: str) -> Surroundings:
        if self._unreadable:
            raise UnreadableError("connection refused")
        return Surroundings(namespace_record(namespace(name)), self._policies, ())


def claim(device_class: str) -> RawObject:
    return {"spec": {"devices": {"requests": [{"exactly": {"deviceClassName": device_class}}]}}}


CLAIMS: dict[str, RawObject] = {
    "resourceclaims/card": claim(GPU_CLASS),
    "resourceclaims/nic": claim(OTHER_CLASS),
    "resourceclaimtemplates/cards": {"spec": claim(GPU_CLASS)},
    "resourceclaims/either": {
        "spec": {
            "devices": {
                "requests": [
                    {
                        "firstAvailable": [
                            {"deviceClassName": OTHER_CLASS},
                            {"deviceClassName": GPU_CLASS},
                        ]
                    }
                ]
            }
        }
    },
}


async def judge(
    pod: dict[str, Any],
    *,
    resource_claims: str = "Warn",
    around: Around | None = None,
    down: bool = False,
) -> Verdict:
    values = Values.model_validate({"resourceClaims": resource_claims})
    claims = ClaimReader(Server(CLAIMS, down=down))  # type: ignore[arg-type]
    reviewer = Reviewer(around or Around(), claims, values)
    return await reviewer.resource_claims(Exchange.parse(review(pod)))


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(claim_pod(claim="card"), id="a claim"),
        pytest.param(claim_pod(template="cards"), id="a template"),
        pytest.param(claim_pod(claim="either"), id="one of several alternatives"),
    ],
)
async def test_a_gpu_by_claim_is_warned_of_or_refused(pod: dict[str, Any]) -> None:
    sentence = (
        "takes a GPU through claim card of class gpu.nvidia.com: its memory is neither limited nor"
        " counted here"
    )
    assert await judge(pod) == Verdict(warnings=(sentence,))
    refused = await judge(pod, resource_claims="Refuse")
    assert refused.refusal is not None
    assert sentence in refused.refusal
    assert "resourceClaims to Warn" in refused.refusal


async def test_a_claim_for_something_else_passes() -> None:
    assert await judge(claim_pod(claim="nic"), resource_claims="Refuse") == Verdict()


async def test_a_claim_that_does_not_exist_yet_could_be_for_a_gpu() -> None:
    warned = await judge(claim_pod(claim="later"))
    assert "does not exist yet" in warned.warnings[0]
    assert (await judge(claim_pod(claim="later"), resource_claims="Refuse")).refusal is not None


async def test_a_namespace_without_policy_and_tenant_is_left_alone() -> None:
    verdict = await judge(
        claim_pod(claim="card"), resource_claims="Refuse", around=Around(policies=0)
    )
    assert verdict == Verdict()


@pytest.mark.parametrize(
    "fault", [{"down": True}, {"around": Around(unreadable=True)}], ids=["claims", "policies"]
)
async def test_what_can_not_be_read_warns_or_refuses(fault: dict[str, Any]) -> None:
    assert "was not read" in (await judge(claim_pod(claim="card"), **fault)).warnings[0]
    refused = await judge(claim_pod(claim="card"), resource_claims="Refuse", **fault)
    assert (refused.code, "Try again" in (refused.refusal or "")) == (500, True)


async def test_a_gpu_pod_whose_policy_can_not_be_read_is_refused() -> None:
    reviewer = Reviewer(Around(unreadable=True), None, Values())  # type: ignore[arg-type]
    verdict = await reviewer.pod(Exchange.parse(review(gpu_pod())))
    assert verdict.code == 500
    assert verdict.refusal is not None
    assert "namespace team-a could not be read (connection refused)" in verdict.refusal


async def test_a_pod_without_a_gpu_passes_whatever_can_be_read() -> None:
    reviewer = Reviewer(Around(unreadable=True), None, Values())  # type: ignore[arg-type]
    assert await reviewer.pod(Exchange.parse(review(cpu_pod()))) == Verdict()
