"""Outcomes are remembered from pod to pod. Whoever came before, a pod gets the same answer."""

from __future__ import annotations

from hypothesis import given

from builders import Raw, admitted, around, container, env, pod, policy, tenant, variables
from core.admission.properties import VALUES, Records, thorough
from core.generated import deciders, pods
from gpumem_operator import names
from gpumem_operator.admission.container_environment import remembered
from gpumem_operator.admission.review import review_pod
from gpumem_operator.admission.verdict import Verdict


def as_if_first(raw: Raw, records: Records) -> Verdict:
    remembered.cache_clear()
    return review_pod(raw, around(*records), VALUES)


@thorough
@given(pods(), deciders, deciders)
def test_a_pod_is_answered_as_if_it_was_the_first(raw: Raw, some: Records, other: Records) -> None:
    expected = [as_if_first(raw, some), as_if_first(raw, other)]

    remembered.cache_clear()
    found = [review_pod(raw, around(*records), VALUES) for records in (some, other)]

    assert found == expected


def test_pods_of_one_workload_share_an_outcome() -> None:
    remembered.cache_clear()
    for name in ("job-0", "job-1"):
        raw = pod(container(env=env(A="1")))
        raw["metadata"]["name"] = name
        admitted(raw, policy())

    assert remembered.cache_info().hits == 1


def test_a_policy_that_changed_decides_at_once() -> None:
    limits = [admitted(pod(), policy(limits={"default": text})) for text in ("8Gi", "9Gi")]

    assert len({variables(one)[names.LIMIT_BYTES_ENV] for one in limits}) == 2


def test_a_tenant_does_not_answer_for_a_policy_that_observes() -> None:
    raw = pod(container(env=env(**{names.DRIVER_LIMIT_ENV: "1"})))

    assert names.DRIVER_LIMIT_ENV in variables(admitted(raw, policy(mode="Observe")))
    assert names.DRIVER_LIMIT_ENV not in variables(admitted(raw, tenant()))


def test_long_variables_are_worked_out_and_not_kept() -> None:
    remembered.cache_clear()
    stored = admitted(pod(container(env=env(LONG="x" * 10_000))), policy())

    assert variables(stored)["LONG"] == "x" * 10_000
    assert remembered.cache_info().currsize == 0
