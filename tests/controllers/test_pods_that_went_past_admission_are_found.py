"""Which label a stored pod should carry."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.stored import Raw, pod, policies, policy, tenant, tenant_of
from gpumem_operator.admission.slipped import Relabel, is_right_whatever_decides, relabel
from gpumem_operator.api.records import NamespaceRecord, PolicyRecord, Surroundings, TenantRecord
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.entries import pod_entry

LABEL = "gpumemory.dev/managed"
POLICY = policies(policy(selector={"matchLabels": {"workload": "training"}}))
TENANT = (tenant_of(tenant()),)
TRAINING = {"workload": "training"}


def wanted(
    raw: Raw,
    *,
    policies: tuple[PolicyRecord, ...] = (),
    tenants: tuple[TenantRecord, ...] = (),
) -> str | None:
    change = relabel(raw, Surroundings(NamespaceRecord("team", {}), policies, tenants), Values())
    if change is not None:
        assert change == Relabel("team", "train-0", raw["metadata"]["uid"], change.value)
    return change.value if change else None


def test_a_gpu_pod_that_a_policy_selects_is_labelled() -> None:
    assert wanted(pod(labels=TRAINING), policies=POLICY) == "false"
    assert wanted(pod(labels={"workload": "web"}), policies=POLICY) is None


def test_every_gpu_pod_of_a_tenant_is_labelled() -> None:
    assert wanted(pod(), tenants=TENANT) == "false"
    assert wanted(pod()) is None


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Running"])
def test_finished_pods_are_labelled_too(phase: str) -> None:
    assert wanted(pod(phase=phase), tenants=TENANT) == "false"


def test_a_pod_that_asks_for_no_gpu_is_never_touched() -> None:
    assert wanted(pod(gpus=None, labels={LABEL: "true"}), tenants=TENANT) is None


def test_a_pod_that_admission_handled_gets_its_label_back() -> None:
    assert wanted(pod(source="Policy")) == "true"
    assert wanted(pod(source="Policy", labels={LABEL: "false"})) == "true"
    assert wanted(pod(source="Policy", labels={LABEL: "true"})) is None


@given(
    gpus=st.sampled_from([None, 1]),
    source=st.sampled_from([None, "Policy"]),
    label=st.sampled_from([None, "true", "false"]),
)
def test_a_pod_that_is_right_whatever_decides_is_never_touched(
    gpus: int | None, source: str | None, label: str | None
) -> None:
    raw = pod(gpus=gpus, source=source, labels={} if label is None else {LABEL: label})
    entry = pod_entry(raw, Values())
    right = is_right_whatever_decides(entry.labels, gpu=entry.gpu, handled=entry.handled)
    assert right == ((gpus, source, label) == (1, "Policy", "true"))
    for tenants in ((), TENANT):
        assert not right or wanted(raw, policies=POLICY, tenants=tenants) is None


def test_a_label_that_claims_what_admission_did_not_do_is_corrected() -> None:
    assert wanted(pod(labels={LABEL: "true"}), tenants=TENANT) == "false"
    assert wanted(pod(labels={LABEL: "false"}), tenants=TENANT) is None


def test_policies_and_tenants_that_can_not_be_read_claim_no_pods() -> None:
    broken_policy = policies(policy(limits={"default": "8GB"}))
    broken_tenant = (tenant_of(tenant(limit="8GB")),)
    assert wanted(pod(), policies=broken_policy, tenants=broken_tenant) is None
