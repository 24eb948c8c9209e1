"""GPUMEM_LIMIT_SOURCE on every GPU container, GPUMEM_LIMIT_BYTES where somebody declared."""

from __future__ import annotations

import pytest

from builders import (
    Raw,
    admitted,
    around,
    broken_policy,
    container,
    cpu_container,
    env,
    from_secret,
    gib,
    pod,
    policy,
    tenant,
    variables,
)
from gpumem_operator import names
from gpumem_operator.admission.review import review_ephemeral_containers
from gpumem_operator.admission.verdict import Verdict
from gpumem_operator.api.pods import is_handled
from gpumem_operator.api.records import PolicyRecord, TenantRecord
from gpumem_operator.api.values import Values

FORGED = env(
    GPUMEM_LIMIT_SOURCE="Resource",
    GPUMEM_LIMIT_BYTES="1",
    GPUMEM_ANYTHING="x",
    GPUMEM_INJECTED="HOME",
    HOME="/root",
)


def test_every_gpu_container_is_handled_whatever_its_place() -> None:
    raw = pod(container(), init=[container("step"), container("side", restartPolicy="Always")])
    stored = admitted(raw, tenant())
    for name in ("train", "step", "side"):
        assert names.LIMIT_SOURCE_ENV in variables(stored, name)
    assert is_handled(stored)


@pytest.mark.parametrize("source", ["Profile", "WholeGPU"])
def test_a_profile_and_a_whole_gpu_speak_for_themselves(source: str) -> None:
    limits = {"nvidia.com/mig-1g.10gb" if source == "Profile" else "nvidia.com/gpu": "1"}
    found = variables(admitted(pod(cpu_container("train", limits=limits)), tenant()))
    assert found == {names.LIMIT_SOURCE_ENV: source}


@pytest.mark.parametrize("mode", ["Active", "Observe"])
def test_the_author_s_own_are_replaced_or_removed_and_nothing_else(mode: str) -> None:
    raw = pod(container(env=FORGED, memory="8Gi"))
    found = variables(admitted(raw, policy(mode=mode)))
    assert found[names.LIMIT_SOURCE_ENV] == "Resource"
    assert found[names.LIMIT_BYTES_ENV] == gib(8)
    assert "GPUMEM_ANYTHING" not in found
    assert found["HOME"] == "/root"


def test_a_forged_limit_goes_where_there_is_none() -> None:
    assert names.LIMIT_BYTES_ENV not in variables(admitted(pod(container(env=FORGED)), tenant()))


@pytest.mark.parametrize("place", ["containers", "initContainers", "sidecars"])
def test_they_are_removed_from_containers_without_a_gpu(place: str) -> None:
    web = cpu_container("web", env=[*FORGED, from_secret("GPUMEM_SECRET")])
    if place == "sidecars":
        web["restartPolicy"] = "Always"
    raw = pod(container(), web) if place == "containers" else pod(container(), init=[web])
    stored = admitted(raw, tenant())
    assert variables(stored, "web") == {"HOME": "/root"}


def test_several_with_the_same_name_become_one() -> None:
    repeated = env(GPUMEM_LIMIT_BYTES="1") * 3
    stored = admitted(pod(container(env=repeated, memory="8Gi")), tenant())
    values = [
        entry["value"]
        for entry in stored["spec"]["containers"][0]["env"]
        if entry["name"] == names.LIMIT_BYTES_ENV
    ]
    assert values == [gib(8)]


def test_one_by_reference_is_replaced_by_a_value() -> None:
    raw = pod(container(env=[from_secret(names.LIMIT_BYTES_ENV)], memory="8Gi"))
    assert variables(admitted(raw, tenant()))[names.LIMIT_BYTES_ENV] == gib(8)


class TestDriverLimits:
    """NVIDIA_GPU_MEMORY_REQUEST and _LIMIT could raise what the driver holds."""

    OWN = env(NVIDIA_GPU_MEMORY_REQUEST="99999", NVIDIA_GPU_MEMORY_LIMIT="99999")

    @pytest.mark.parametrize("decider", [policy(), tenant()], ids=["policy", "tenant"])
    def test_the_author_s_are_removed(self, decider: PolicyRecord | TenantRecord) -> None:
        raw = pod(container(env=self.OWN))
        found = variables(admitted(raw, decider))
        assert not {names.DRIVER_REQUEST_ENV, names.DRIVER_LIMIT_ENV} & found.keys()


class TestEphemeralContainers:
    """They can ask for no GPU; what pretends to come from admission is taken away."""

    def verdict_on(
        self, one: Raw, *records: PolicyRecord | TenantRecord, stored: Raw | None = None
    ) -> Verdict:
        old = stored or admitted(pod(), policy())
        new = {**old, "spec": {**old["spec"], "ephemeralContainers": [one]}}
        return review_ephemeral_containers(new, old, around(*records), Values())

    def test_ours_are_removed_and_the_rest_stays(self) -> None:
        entries = [*FORGED, *TestDriverLimits.OWN]
        verdict = self.verdict_on(cpu_container("debug", env=entries), policy())
        assert verdict.refusal is None
        assert verdict.operations == (
            {
                "op": "add",
                "path": "/spec/ephemeralContainers/0/env",
                "value": env(HOME="/root"),
            },
        )

    def test_a_clean_one_is_not_changed(self) -> None:
        verdict = self.verdict_on(cpu_container("debug", env=env(A="b")), policy())
        assert verdict.operations == ()

    def test_one_with_a_name_of_ours_is_not_passed_over(self) -> None:
        verdict = self.verdict_on(cpu_container(names.SIDECAR_CONTAINER, env=FORGED), policy())
        assert verdict.operations

    def test_devices_are_refused_in_a_tenant_s_namespace(self) -> None:
        seeing = cpu_container("debug", env=env(NVIDIA_VISIBLE_DEVICES="all"))
        verdict = self.verdict_on(seeing, tenant(), stored=pod())
        assert "spec.ephemeralContainers[debug].env[NVIDIA_VISIBLE_DEVICES]" in (
            verdict.refusal or ""
        )

    def test_those_that_were_there_before_are_not_judged_again(self) -> None:
        old = pod()
        old["spec"]["ephemeralContainers"] = [
            cpu_container("old", env=env(NVIDIA_VISIBLE_DEVICES="all"))
        ]
        new = {**old, "spec": {**old["spec"]}}
        new["spec"]["ephemeralContainers"] = [
            *old["spec"]["ephemeralContainers"],
            cpu_container("debug"),
        ]
        verdict = review_ephemeral_containers(new, old, around(tenant()), Values())
        assert verdict.refusal is None

    def test_a_pod_that_nobody_handles_is_left_alone(self) -> None:
        verdict = self.verdict_on(cpu_container("debug", env=FORGED), policy(), stored=pod())
        assert (verdict.operations, verdict.refusal) == ((), None)

    def test_a_policy_that_can_not_be_read_keeps_nobody_from_debugging(self) -> None:
        verdict = self.verdict_on(cpu_container("debug"), broken_policy(mode="Foo"))
        assert verdict.refusal is None
