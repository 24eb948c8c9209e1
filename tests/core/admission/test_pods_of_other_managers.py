"""Kueue, KAI, HAMi and Run:ai are recognised and shown; what a pod is charged never follows."""

from __future__ import annotations

import pytest

from builders import (
    GIB,
    Raw,
    admitted,
    container,
    containers_of,
    frozen,
    gib,
    pod,
    policy,
    refused,
    review,
    tenant,
    values,
    variables,
)
from gpumem_operator import names
from gpumem_operator.api.managers import managers_of
from gpumem_operator.api.values import Values
from gpumem_operator.ledger.charge import charge_pod, rates_of

OURS = {"name": names.QUOTA_GATE}
KUEUE_GATE = {"name": "kueue.x-k8s.io/admission"}
POLICY = policy(limits={"default": "8Gi"})
LISTED = values(foreignManagers=["HAMi", "KAI", "RunAI"])
CAPS = (names.PYTORCH_CONF_ENV, names.CUPY_LIMIT_ENV, names.TENSORFLOW_GROWTH_ENV)

KUEUE = pod(labels={"kueue.x-k8s.io/queue-name": "team"}, schedulingGates=[KUEUE_GATE])
KAI = pod(labels={"kai.scheduler/queue": "team"}, schedulerName="kai-scheduler")
HAMI = pod(
    container(limits={"nvidia.com/gpumem": "3000", "nvidia.com/gpucores": "30"}),
    schedulerName="hami-scheduler",
)
RUN_AI = pod(labels={"runai/queue": "team"}, schedulerName="runai-scheduler")
LIMITING = [
    pytest.param(KAI, "KAI", id="KAI"),
    pytest.param(HAMI, "HAMi", id="HAMi"),
    pytest.param(RUN_AI, "RunAI", id="Run:ai"),
]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (KUEUE, "Kueue (gate kueue.x-k8s.io/admission)"),
        (pod(schedulingGates=[{"name": "kueue.x-k8s.io/topology"}]), "Kueue (gate kueue.x-k8s.io/"),
        (pod(labels={"kueue.x-k8s.io/queue-name": "team"}), "Kueue (label kueue.x-k8s.io/queue-"),
        (pod(annotations={"kueue.x-k8s.io/workload": "w"}), "Kueue (annotation kueue.x-k8s.io/"),
        (KAI, "KAI (scheduler kai-scheduler)"),
        (pod(labels={"kai.scheduler/queue": "team"}), "KAI (label kai.scheduler/queue)"),
        (HAMI, "HAMi (scheduler hami-scheduler)"),
        (pod(container(limits={"nvidia.com/gpumem": "1"})), "HAMi (resource nvidia.com/gpumem)"),
        (
            pod(init=[container("i", limits={"nvidia.com/gpumem-percentage": "1"})]),
            "HAMi (resource nvidia.com/gpumem-percentage)",
        ),
        (pod(annotations={"hami.io/vgpu-node": "n"}), "HAMi (annotation hami.io/vgpu-node)"),
        (RUN_AI, "RunAI (scheduler runai-scheduler)"),
        (pod(labels={"runai/queue": "team"}), "RunAI (label runai/queue)"),
    ],
)
def test_it_is_recognised_by(raw: Raw, expected: str) -> None:
    [manager] = managers_of(raw)
    assert str(manager).startswith(expected)


@pytest.mark.parametrize(
    "raw",
    [
        pod(),
        pod(schedulerName="default-scheduler"),
        pod(labels={"hami.io/webhook": "ignore"}),
        pod(labels={"kueue": "team", "mykueue.x-k8s.io/queue-name": "team"}),
        {"metadata": None, "spec": None},
        {},
    ],
    ids=["plain", "default scheduler", "kept from HAMi", "alike", "empty", "nothing"],
)
def test_nobody_else_is_taken_for_one(raw: Raw) -> None:
    assert managers_of(raw) == ()


def test_the_scheduler_says_whose_the_older_queue_label_is() -> None:
    raw = pod(labels={"runai/queue": "team"}, schedulerName="kai-scheduler")
    assert [one.name for one in managers_of(raw)] == ["KAI"]


def test_a_pod_can_have_several() -> None:
    raw = pod(labels={"kueue.x-k8s.io/queue-name": "a"}, schedulerName="hami-scheduler")
    assert [one.name for one in managers_of(raw)] == ["HAMi", "Kueue"]


@pytest.mark.parametrize("chart", [values(), LISTED], ids=["not listed", "listed"])
@pytest.mark.parametrize("raw", [KUEUE, KAI, HAMI, RUN_AI], ids=["Kueue", "KAI", "HAMi", "Run:ai"])
def test_gate_charge_and_frozen_declaration_are_as_for_any_pod(raw: Raw, chart: Values) -> None:
    owner = tenant()
    stored = admitted(raw, owner, POLICY, values=chart)
    foreign = [gate for gate in raw["spec"].get("schedulingGates", ()) if gate != OURS]
    assert stored["spec"]["schedulingGates"] == [*foreign, OURS]
    assert frozen(stored) == ("Policy", gib(8))
    assert stored["metadata"]["labels"][names.MANAGED_LABEL] == "true"
    assert owner.spec is not None
    charged = charge_pod(stored, chart, rates=rates_of(owner.spec.quota, chart))
    assert charged.charge_bytes == 8 * GIB
    assert review(stored, owner, POLICY, values=chart).operations == ()


@pytest.mark.parametrize(("raw", "name"), LIMITING)
def test_where_it_is_not_listed_it_is_shown_and_limited_like_any_pod(raw: Raw, name: str) -> None:
    stored = admitted(raw, POLICY)
    assert containers_of(stored).keys() >= names.OUR_CONTAINERS
    assert variables(stored)[names.CUPY_LIMIT_ENV] == gib(7)
    summary = stored["metadata"]["annotations"][names.SUMMARY_ANNOTATION]
    assert f"also managed by {name} (" in summary
    assert "left out" not in summary


@pytest.mark.parametrize(("raw", "name"), LIMITING)
def test_where_it_is_listed_limiting_the_pod_is_left_to_it(raw: Raw, name: str) -> None:
    stored = admitted(raw, POLICY, values=LISTED)
    assert names.OUR_CONTAINERS.isdisjoint(containers_of(stored))
    assert not {volume["name"] for volume in stored["spec"].get("volumes", ())}
    assert not set(CAPS) & variables(stored).keys()
    assert names.PYTHON_PATH_ENV not in variables(stored)
    assert "shareProcessNamespace" not in stored["spec"]
    summary = stored["metadata"]["annotations"][names.SUMMARY_ANNOTATION]
    assert f"shim, framework variables and sidecar are left out for {name}" in summary


def test_only_those_that_are_listed_are_left_alone() -> None:
    stored = admitted(HAMI, POLICY, values=values(foreignManagers=["KAI"]))
    assert containers_of(stored).keys() >= names.OUR_CONTAINERS


def test_kueue_limits_nothing_and_so_its_pods_get_everything() -> None:
    stored = admitted(KUEUE, POLICY, values=LISTED)
    assert containers_of(stored).keys() >= names.OUR_CONTAINERS
    assert variables(stored)[names.CUPY_LIMIT_ENV] == gib(7)


def test_what_an_earlier_admission_put_in_goes_once_it_is_listed() -> None:
    again = admitted(admitted(KAI, POLICY), POLICY, values=LISTED)
    assert containers_of(again).keys() == {"train"}
    assert variables(again) == variables(admitted(KAI, POLICY, values=LISTED))
    assert not again["spec"]["volumes"]
    assert "shareProcessNamespace" not in again["spec"]


def test_the_variables_by_which_kai_limits_stay_only_where_it_is_listed() -> None:
    limits = [{"name": names.DRIVER_LIMIT_ENV, "value": "4096"}]
    raw = pod(container(env=limits), schedulerName="kai-scheduler")
    assert variables(admitted(raw, POLICY, values=LISTED))[names.DRIVER_LIMIT_ENV] == "4096"
    assert names.DRIVER_LIMIT_ENV not in variables(admitted(raw, POLICY))
    both = values(foreignManagers=["KAI"], driverLimits="Enabled")
    assert variables(admitted(raw, POLICY, values=both))[names.DRIVER_LIMIT_ENV] == "8192"


def test_a_share_of_a_card_that_no_resource_asks_for_is_refused_in_a_tenant() -> None:
    """KAI and Run:ai hand a fraction out by an annotation; nobody could count it."""
    by_map = {"configMapKeyRef": {"name": "gpus", "key": "NVIDIA_VISIBLE_DEVICES"}}
    devices = {"name": names.VISIBLE_DEVICES_ENV, "valueFrom": by_map}
    raw = pod(
        container(gpus=None, env=[devices]),
        annotations={"gpu-fraction": "0.5"},
        schedulerName="kai-scheduler",
    )
    assert "gives the container GPUs that it did not ask for" in refused(raw, tenant())
