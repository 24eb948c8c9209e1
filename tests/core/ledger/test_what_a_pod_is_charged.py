"""As written, else frozen x GPUs, else slices, else whole GPUs; then Kubernetes' rule for pods."""

from __future__ import annotations

from itertools import permutations

import pytest

from builders import (
    GIB,
    Raw,
    admitted,
    container,
    cpu_container,
    env,
    mig_container,
    native_sidecar,
    pod,
    policy,
    tenant,
    values,
)
from gpumem_operator import names
from gpumem_operator.api.records import PolicyRecord, TenantRecord
from gpumem_operator.api.values import Values
from gpumem_operator.ledger.charge import (
    ContainerCharge,
    PodCharge,
    Rates,
    charge_pod,
    is_charged,
    rates_of,
)

WHOLE = 80 * GIB
DEFAULTS = Values()


def charge(raw: Raw, *records: PolicyRecord | TenantRecord, chart: Values = DEFAULTS) -> PodCharge:
    """The charge of the pod as it is stored after admission."""
    owner = next((r for r in records if isinstance(r, TenantRecord)), None)
    rates = rates_of(owner.spec.quota, chart) if owner and owner.spec else Rates()
    return charge_pod(admitted(raw, *records, values=chart) if records else raw, chart, rates=rates)


def gibs(raw: Raw, *records: PolicyRecord | TenantRecord, chart: Values = DEFAULTS) -> float:
    amount = charge(raw, *records, chart=chart).charge_bytes
    assert amount is not None
    return amount / GIB


class TestContainer:
    @pytest.mark.parametrize(
        ("one", "annotations", "expected"),
        [
            (container(gpus=3, memory="10Gi"), {}, 10),
            (container(gpus=3), {names.LIMIT_ANNOTATION: "8Gi"}, 24),
            (mig_container(slices=2), {}, 20),
            (mig_container(slices=2, memory="8Gi"), {}, 8),
            (mig_container(slices=2), {names.LIMIT_ANNOTATION: "4Gi"}, 8),
            (mig_container(profile="unheard-of", slices=2), {}, 160),
            (container(gpus=2), {}, 160),
            (cpu_container("train", limits={"nvidia.com/gpu.shared": "2"}), {}, 160),
            (container(limits={"nvidia.com/mig-1g.10gb": "1"}), {}, 90),
            (mig_container(limits={"nvidia.com/mig-3g.40gb": "1"}), {}, 50),
        ],
        ids=[
            "the resource as written, not rounded",
            "an annotation on each GPU",
            "slices",
            "a resource on slices",
            "an annotation on slices",
            "slices of unknown size as whole GPUs",
            "whole GPUs",
            "shared GPUs as whole ones",
            "a card and a slice",
            "each slice by its own size",
        ],
    )
    def test_in_a_tenant(self, one: Raw, annotations: dict[str, str], expected: int) -> None:
        assert gibs(pod(one, annotations=annotations), tenant()) == expected

    def test_the_default_of_a_policy_is_charged_on_each_gpu(self) -> None:
        assert gibs(pod(container(gpus=2)), tenant(), policy(limits={"default": "8Gi"})) == 16

    def test_the_whole_gpu_is_the_tenant_s(self) -> None:
        assert gibs(pod(), tenant(whole="24Gi")) == 24

    def test_without_a_tenant_it_is_what_was_declared(self) -> None:
        assert gibs(pod(container(memory="8Gi")), policy()) == 8

    def test_and_unknown_where_nothing_was(self) -> None:
        found = charge(pod(), policy())
        assert found.charge_bytes is None
        assert found.unknown == ("train",)

    def test_unknown_is_not_zero_beside_something_known(self) -> None:
        found = charge(pod(container("a", memory="8Gi"), container("b")), policy())
        assert found.charge_bytes == 8 * GIB
        assert found.unknown == ("b",)

    def test_each_row_says_where_its_limit_comes_from(self) -> None:
        raw = pod(container("a", gpus=3, memory="10Gi"), mig_container("b"), container("c"))
        assert charge(raw, tenant()).containers == (
            ContainerCharge("a", 3, 3413 * 2**20, "Resource", 10 * GIB),
            ContainerCharge("b", 1, 10 * GIB, "Profile", 10 * GIB),
            ContainerCharge("c", 1, None, "WholeGPU", WHOLE),
        )

    def test_containers_without_a_gpu_have_no_row(self) -> None:
        assert charge(pod(cpu_container())).containers == ()

    def test_memory_without_a_gpu_counts_in_a_pod_that_slipped_past_admission(self) -> None:
        assert gibs(pod(cpu_container("web", memory="8Gi"))) == 8

    def test_a_limit_that_is_no_number_in_a_pod_that_slipped_past_is_none(self) -> None:
        for text in ("9" * 5000, "", "8Gi", "-1", "٣"):
            raw = pod(container(env=env(GPUMEM_LIMIT_BYTES=text)))
            found = charge_pod(raw, Values(), rates=Rates(WHOLE))
            assert found.charge_bytes == WHOLE

    @pytest.mark.parametrize("name", sorted(names.OUR_CONTAINERS))
    @pytest.mark.parametrize("place", ["containers", "initContainers"])
    def test_a_name_of_ours_hides_no_gpu(self, name: str, place: str) -> None:
        raw = pod(cpu_container())
        raw["spec"][place] = [*raw["spec"].get(place, []), container(name, memory="8Gi")]
        assert gibs(raw) == 8


class TestExclusiveGPU:
    """`Whole` charges a card that nobody else can use as a whole one."""

    CHART = values(exclusiveResources=["nvidia.com/gpu"])

    @pytest.mark.parametrize(
        ("one", "expected"),
        [
            (container(gpus=2, memory="16Gi"), 160),
            (container(gpus=2), 160),
            (mig_container(), 10),
            (cpu_container("train", limits={"nvidia.com/gpu.shared": "1"}, memory="8Gi"), 8),
            (container(limits={"nvidia.com/mig-1g.10gb": "1"}, memory="8Gi"), 84),
        ],
    )
    def test_whatever_was_declared(self, one: Raw, expected: int) -> None:
        assert gibs(pod(one), tenant(exclusive="Whole"), chart=self.CHART) == expected

    def test_an_annotation_does_not_change_it(self) -> None:
        raw = pod(annotations={names.LIMIT_ANNOTATION: "8Gi"})
        assert gibs(raw, tenant(exclusive="Whole"), chart=self.CHART) == 80

    def test_declared_is_the_default(self) -> None:
        assert gibs(pod(container(memory="8Gi")), tenant(), chart=self.CHART) == 8

    def test_the_chart_says_which_resources_are_exclusive(self) -> None:
        assert gibs(pod(container(memory="8Gi")), tenant(exclusive="Whole")) == 8


def step(amount: int, name: str) -> Raw:
    return container(name, memory=f"{amount}Gi")


def side(amount: int, name: str) -> Raw:
    return native_sidecar(name, memory=f"{amount}Gi")


class TestPod:
    """Effective requests: what runs together, or the largest step with the sidecars before it."""

    @pytest.mark.parametrize(
        ("init", "apps", "expected"),
        [
            ([], [step(8, "a"), step(4, "b")], 12),
            ([step(8, "i")], [step(4, "a")], 8),
            ([step(3, "i"), step(8, "j")], [step(4, "a")], 8),
            ([step(8, "i")], [step(8, "a"), step(4, "b")], 12),
            ([side(2, "s")], [step(4, "a")], 6),
            ([side(2, "s"), step(8, "i")], [step(4, "a")], 10),
            ([step(8, "i"), side(2, "s")], [step(4, "a")], 8),
            ([step(5, "i"), side(2, "s"), step(4, "j"), side(3, "t")], [step(1, "a")], 6),
            ([side(2, "s"), side(3, "t"), step(4, "j")], [step(1, "a")], 9),
            ([step(8, "i")], [cpu_container("a")], 8),
            ([side(9, "s")], [cpu_container("a")], 9),
        ],
        ids=[
            "containers add up",
            "a larger step",
            "the largest step",
            "a smaller step",
            "a sidecar runs beside the containers",
            "a step after a sidecar runs beside it",
            "a step before a sidecar does not",
            "sidecars between steps",
            "all sidecars before a step",
            "a step alone",
            "a sidecar alone",
        ],
    )
    def test_its_shape_decides(self, init: list[Raw], apps: list[Raw], expected: int) -> None:
        assert gibs(pod(*apps, init=init)) == expected
        assert gibs(pod(*apps, init=init), tenant()) == expected

    def test_our_own_containers_change_nothing(self) -> None:
        raw = pod(step(4, "a"), init=[step(8, "i"), side(2, "s")])
        assert gibs(raw, policy()) == gibs(raw)

    @pytest.mark.parametrize("place", range(4))
    def test_a_native_sidecar_counts_from_its_place_on(self, place: int) -> None:
        steps = [step(3, "i"), step(7, "j"), step(5, "k")]
        init = [*steps[:place], side(2, "s"), *steps[place:]]
        beside = [2 * (number >= place) for number in range(3)]
        largest = max(size + extra for size, extra in zip((3, 7, 5), beside, strict=True))
        assert gibs(pod(step(1, "a"), init=init), tenant()) == largest

    def test_every_kind_of_gpu_counts_at_every_place(self) -> None:
        init = [
            mig_container("i", slices=3),
            native_sidecar("s", gpus=None, limits={"nvidia.com/mig-1g.10gb": "1"}),
        ]
        shared = cpu_container("c", limits={"nvidia.com/gpu.shared": "1"}, memory="4Gi")
        apps = [container("a", gpus=2, memory="16Gi"), container("b"), shared]
        assert gibs(pod(*apps, init=init), tenant()) == 10 + 16 + 80 + 4
        assert gibs(pod(cpu_container("a"), init=init), tenant()) == 30

    def test_the_order_of_app_containers_does_not_matter(self) -> None:
        apps = [step(1, "a"), step(2, "b"), container("c")]
        found = {charge(pod(*some), tenant()).charge_bytes for some in permutations(apps)}
        assert found == {83 * GIB}


class TestWhetherItCounts:
    @pytest.mark.parametrize(
        ("phase", "counts"),
        [
            ("Pending", True),
            ("Running", True),
            ("Unknown", True),
            (None, True),
            ("Succeeded", False),
            ("Failed", False),
        ],
    )
    def test_until_its_phase_says_that_it_has_finished(
        self, phase: str | None, counts: bool
    ) -> None:
        assert is_charged(pod(status={"phase": phase} if phase else {})) is counts

    def test_a_terminating_pod_counts(self) -> None:
        raw = pod(status={"phase": "Running"})
        raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        assert is_charged(raw)

    def test_not_while_it_carries_our_gate(self) -> None:
        ours, other = {"name": names.QUOTA_GATE}, {"name": "example.com/other"}
        assert not is_charged(pod(schedulingGates=[ours]))
        assert not is_charged(pod(schedulingGates=[other, ours]))

    def test_the_gates_of_others_do_not_matter(self) -> None:
        assert is_charged(pod(schedulingGates=[{"name": "example.com/other"}]))
        assert is_charged(pod(schedulingGates=None))

    @pytest.mark.parametrize("grace", [None, 0, 3600])
    def test_however_long_its_end_may_take(self, grace: int | None) -> None:
        raw = pod(status={"phase": "Running"})
        raw["metadata"] |= {
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": grace,
        }
        assert is_charged(raw)
        raw["status"]["phase"] = "Succeeded"
        assert not is_charged(raw)

    def test_an_evicted_pod_counts_until_its_phase_says_that_it_is_over(self) -> None:
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
        }
        raw = pod(status={"phase": "Running", "reason": "Evicted", "conditions": [condition]})
        assert is_charged(raw)
        assert not is_charged(pod(status={"phase": "Failed", "reason": "Evicted"}))

    def test_a_pod_on_a_node_that_is_gone_counts_until_it_is_gone_too(self) -> None:
        """Nobody knows whether it still runs: its node may be back."""
        lost = {"type": "Ready", "status": "False", "reason": "NodeLost"}
        raw = pod(nodeName="gone", status={"phase": "Running", "reason": "NodeLost"})
        raw["status"]["conditions"] = [lost]
        assert is_charged(raw)
        raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        assert is_charged(raw)

    def test_a_finished_pod_with_our_gate_does_not_count(self) -> None:
        raw = pod(status={"phase": "Failed"}, schedulingGates=[{"name": names.QUOTA_GATE}])
        assert not is_charged(raw)
