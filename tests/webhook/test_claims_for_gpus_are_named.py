"""Pods that take GPUs by resource claims, or by resources that a DeviceClass stands behind."""

from typing import Any

import pytest

from gpumem_operator.admission.verdict import Verdict
from gpumem_operator.api.records import Surroundings, namespace_record, policy_record
from gpumem_operator.api.values import Values
from gpumem_operator.kube.errors import ApiError, NotFound
from gpumem_operator.kube.rest import RawObject
from gpumem_operator.webhook.exchange import Exchange
from gpumem_operator.webhook.reviewer import Reviewer
from gpumem_operator.webhook.surroundings import UnreadableError
from webhook.builders import claim_pod, cpu_pod, gpu_pod, namespace, pod, policy, review

GPU_CLASS, OTHER_CLASS = "gpu.nvidia.com", "nic.example.com"


class Server:
    """Has the objects that it was given, by the end of their path."""

    def __init__(self, objects: dict[str, RawObject], *, down: bool = False) -> None:
        self._objects = objects
        self._down = down

    async def get(self, path: str, **_: object) -> RawObject:
        if self._down:
            raise ApiError("GET", "connection refused")
        end = path.removeprefix("/apis/resource.k8s.io/v1/").removeprefix("namespaces/team-a/")
        if (found := self._objects.get(end)) is None:
            raise NotFound("GET", "not found", 404)
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


OBJECTS: dict[str, RawObject] = {
    "deviceclasses/gpu.nvidia.com": {"spec": {"extendedResourceName": "example.com/card"}},
    "deviceclasses/nic.example.com": {"spec": {"extendedResourceName": "example.com/nic"}},
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
    server = Server(OBJECTS, down=down)
    reviewer = Reviewer(around or Around(), server, values)  # type: ignore[arg-type]
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


IMPLICIT = "deviceclass.resource.kubernetes.io/"


@pytest.mark.parametrize(
    ("resource", "device_class"),
    [
        pytest.param(f"{IMPLICIT}gpu.nvidia.com", "gpu.nvidia.com", id="the name of every class"),
        pytest.param(f"{IMPLICIT}mig.nvidia.com", "mig.nvidia.com", id="of one that is not there"),
        pytest.param("example.com/card", "gpu.nvidia.com", id="the name that a class was given"),
    ],
)
async def test_a_gpu_by_an_extended_resource_is_warned_of_or_refused(
    resource: str, device_class: str
) -> None:
    asking = pod("p", namespace="team-a", limits={resource: "1"})
    sentence = (
        f"takes a GPU through resource {resource} of class {device_class}: its memory is neither"
        " limited nor counted here"
    )
    assert await judge(asking) == Verdict(warnings=(sentence,))
    refused = await judge(asking, resource_claims="Refuse")
    assert sentence in (refused.refusal or "")
    first = cpu_pod()
    first["spec"]["initContainers"] = asking["spec"]["containers"]
    assert await judge(first) == Verdict(warnings=(sentence,))


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param({"example.com/nic": "1"}, id="of a class that is about something else"),
        pytest.param({f"{IMPLICIT}nic.example.com": "1"}, id="the name of such a class"),
        pytest.param({"rdma/hca": "1"}, id="of a device plugin"),
        pytest.param({"example.com/card": "0"}, id="none of them"),
        pytest.param({"nvidia.com/gpu": "1"}, id="what is counted anyway"),
        pytest.param({"cpu": "1", "hugepages-2Mi": "4Mi"}, id="of the node itself"),
    ],
)
async def test_an_extended_resource_for_something_else_passes(limits: dict[str, str]) -> None:
    asking = pod("p", namespace="team-a", limits=limits)

    assert await judge(asking, resource_claims="Refuse") == Verdict()


async def test_classes_are_read_only_for_names_that_a_class_can_have() -> None:
    for limits in ({"cpu": "1"}, {f"{IMPLICIT}nic.example.com": "1"}):
        asking = pod("p", namespace="team-a", limits=limits)
        assert await judge(asking, down=True) == Verdict()
    asking = pod("p", namespace="team-a", limits={"rdma/hca": "1"})
    assert "was not read" in (await judge(asking, down=True)).warnings[0]


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
    assert "takes GPUs by a class was not read" in (refused.refusal or ""), "not its policy"


async def test_a_gpu_pod_whose_policy_can_not_be_read_is_refused() -> None:
    reviewer = Reviewer(Around(unreadable=True), None, Values())  # type: ignore[arg-type]
    verdict = await reviewer.pod(Exchange.parse(review(gpu_pod())))
    assert verdict.code == 500
    assert verdict.refusal is not None
    assert "namespace team-a could not be read (connection refused)" in verdict.refusal


async def test_a_pod_without_a_gpu_passes_whatever_can_be_read() -> None:
    reviewer = Reviewer(Around(unreadable=True), None, Values())  # type: ignore[arg-type]
    assert await reviewer.pod(Exchange.parse(review(cpu_pod()))) == Verdict()
