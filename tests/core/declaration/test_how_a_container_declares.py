"""Order: Resource, Annotation, Profile, Policy, WholeGPU. Limits are per GPU, in whole MiB."""

from __future__ import annotations

import pytest

from builders import (
    GIB,
    MIB,
    Raw,
    admitted,
    container,
    cpu_container,
    frozen,
    gib,
    mig_container,
    pod,
    policy,
    refused,
    review,
    tenant,
    values,
    variables,
)
from gpumem_operator import names

ALL = names.LIMIT_ANNOTATION
OWN = names.container_limit_annotation("train")


@pytest.mark.parametrize(
    ("one", "annotations", "default", "expected"),
    [
        (container(memory="8Gi"), {ALL: "8Gi"}, "4Gi", ("Resource", gib(8))),
        (container(), {ALL: "8Gi"}, "4Gi", ("Annotation", gib(8))),
        (mig_container(), {ALL: "8Gi"}, "4Gi", ("Annotation", gib(8))),
        (mig_container(), {}, "4Gi", ("Profile", None)),
        (container(), {}, "4Gi", ("Policy", gib(4))),
        (container(), {}, None, ("WholeGPU", None)),
    ],
    ids=[
        "the resource comes first",
        "then the annotation",
        "an annotation comes before a profile",
        "a profile comes before the policy's default",
        "then the default",
        "then a whole GPU",
    ],
)
def test_the_first_declaration_that_is_there_counts(
    one: Raw, annotations: dict[str, str], default: str | None, expected: tuple[str, str | None]
) -> None:
    stored = admitted(pod(one, annotations=annotations), policy(limits={"default": default}))
    assert frozen(stored) == expected


@pytest.mark.parametrize(
    ("memory", "gpus", "per_gpu"),
    [
        ("16Gi", 2, 8 * GIB),
        ("8Gi", 1, 8 * GIB),
        ("10Gi", 3, 3413 * MIB),
        ("8G", 1, 7629 * MIB),
        ("8589934592", 1, 8 * GIB),
        ("1e10", 1, 9536 * MIB),
        ("8.5Gi", 1, 8704 * MIB),
    ],
)
def test_a_resource_is_a_total_and_its_share_per_gpu_is_rounded_down_to_whole_mib(
    memory: str, gpus: int, per_gpu: int
) -> None:
    stored = admitted(pod(container(gpus=gpus, memory=memory)), policy())
    assert frozen(stored) == ("Resource", str(per_gpu))


def test_an_annotation_is_per_gpu_and_rounded_down_to_whole_mib() -> None:
    stored = admitted(pod(container(gpus=4), annotations={ALL: "8G"}), policy())
    assert frozen(stored) == ("Annotation", str(7629 * MIB))


def test_a_container_s_own_annotation_wins_over_that_of_the_pod() -> None:
    raw = pod(container("train"), container("other"), annotations={ALL: "8Gi", OWN: "6Gi"})
    stored = admitted(raw, policy())
    assert frozen(stored, "train") == ("Annotation", gib(6))
    assert frozen(stored, "other") == ("Annotation", gib(8))


def test_an_annotation_reaches_init_containers_too() -> None:
    raw = pod(container(), init=[container("warm")], annotations={ALL: "8Gi"})
    assert frozen(admitted(raw, policy()), "warm") == ("Annotation", gib(8))


def test_containers_without_a_gpu_get_nothing() -> None:
    raw = pod(container(), cpu_container("web"), annotations={ALL: "8Gi"})
    assert variables(admitted(raw, policy()), "web") == {}


def test_resource_and_annotation_may_say_the_same() -> None:
    raw = pod(container(gpus=2, memory="16Gi"), annotations={ALL: "8Gi"})
    assert frozen(admitted(raw, policy())) == ("Resource", gib(8))


def test_they_may_differ_by_less_than_the_rounding() -> None:
    raw = pod(container(gpus=3, memory="10Gi"), annotations={ALL: "3413Mi"})
    assert frozen(admitted(raw, policy())) == ("Resource", str(3413 * MIB))


def test_a_disagreement_is_refused_and_shows_both() -> None:
    raw = pod(container(gpus=2, memory="16Gi"), annotations={ALL: "16Gi"})
    text = refused(raw, policy())
    assert 'spec.containers[train].resources.limits["nvidia.com/memory"]' in text
    assert "16Gi over 2 GPUs = 8Gi per GPU" in text
    assert "annotation says 16Gi per GPU" in text


def test_memory_without_a_gpu_is_refused() -> None:
    text = refused(pod(container("train"), cpu_container("web", memory="8Gi")), policy())
    assert 'spec.containers[web].resources.limits["nvidia.com/memory"]: 8Gi' in text
    assert "without a GPU" in text


def test_memory_without_a_gpu_is_refused_by_a_tenant_as_well() -> None:
    assert "without a GPU" in refused(pod(cpu_container("web", memory="8Gi")), tenant())


def test_memory_beside_zero_gpus_is_memory_without_a_gpu() -> None:
    assert "without a GPU" in refused(pod(container(gpus=0, memory="8Gi")), policy())


def test_an_annotation_for_a_container_that_is_not_there_is_refused_with_those_that_are() -> None:
    raw = pod(container(), annotations={names.container_limit_annotation("tarin"): "8Gi"})
    text = refused(raw, policy())
    assert 'metadata.annotations["gpumemory.dev/limit.tarin"]' in text
    assert "no container 'tarin' (it has: train)" in text


def test_that_refusal_says_what_to_do_about_names_that_are_too_long_for_a_key() -> None:
    name = "a" * 58
    raw = pod(container(name), annotations={names.container_limit_annotation(name[:57]): "8Gi"})
    text = refused(raw, policy())
    assert "longer than 57 characters can only be limited by resources or by" in text


def test_a_name_of_57_characters_fits() -> None:
    name = "a" * 57
    key = names.container_limit_annotation(name)
    assert len(key.partition("/")[2]) == names.LONGEST_ANNOTATION_NAME
    assert frozen(admitted(pod(container(name), annotations={key: "8Gi"}), policy()), name) == (
        "Annotation",
        gib(8),
    )


def test_an_annotation_for_a_container_without_a_gpu_is_refused() -> None:
    raw = pod(
        container(), cpu_container("web"), annotations={f"{names.LIMIT_ANNOTATION}.web": "8Gi"}
    )
    assert "container 'web' asks for no GPU" in refused(raw, policy())


def test_an_annotation_in_a_pod_whose_containers_all_ask_for_zero_gpus_is_refused() -> None:
    raw = pod(container(gpus=0), annotations={ALL: "8Gi"})
    assert "no container of the pod asks for a GPU" in refused(raw, policy())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("8GB", "did you mean 8Gi?"),
        ("8 gib", "did you mean 8Gi?"),
        ("lots", "is not a quantity"),
        ("", "is not a quantity"),
        ("-8Gi", "is negative"),
        ("0.5", "is not a whole number of bytes"),
        ("9" * 30, "is more than the largest quantity"),
        ("9" * 5000, "is not a quantity"),
        ("0", "less than 1Mi"),
        ("1", "less than 1Mi"),
    ],
)
def test_an_annotation_that_is_no_amount_is_refused_with_a_hint(text: str, sentence: str) -> None:
    message = refused(pod(annotations={ALL: text}), policy())
    assert sentence in message
    assert len(message) < 600


def test_a_memory_resource_of_zero_is_refused() -> None:
    """It would be charged nothing and limit nothing."""
    assert "less than 1Mi" in refused(pod(container(memory="0")), tenant())


def test_a_gpu_count_that_can_not_be_read_is_refused() -> None:
    text = refused(pod(container(gpus="500m")), policy())
    assert 'spec.containers[train].resources.limits["nvidia.com/gpu"]' in text


def test_more_than_the_profile_is_refused() -> None:
    text = refused(pod(mig_container(profile="1g.10gb", memory="12Gi")), policy())
    assert "12Gi over 1 GPU = 12Gi per GPU, more than a slice of nvidia.com/mig-1g.10gb" in text
    assert "10Gi" in text


def test_more_than_the_smallest_of_several_profiles_is_refused_and_names_it() -> None:
    slices = {"nvidia.com/mig-3g.40gb": "1", "nvidia.com/mig-1g.10gb": "1"}
    raw = pod(cpu_container("train", limits=slices), annotations={ALL: "20Gi"})
    assert "a slice of nvidia.com/mig-1g.10gb has, 10Gi" in refused(raw, policy())


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("1g.10gb", "Profile"),
        ("1c.3g.40gb", "Profile"),
        ("1g.10gb.me", "Profile"),
        ("1g.10gb.gfx", "Profile"),
        ("1g.10gb.shared", "Profile"),
        ("1g.10gb.me.shared", "Profile"),
        ("1g.0gb", "WholeGPU"),
        ("1g.10", "WholeGPU"),
        ("1g.10gb.huge", "WholeGPU"),
        ("", "WholeGPU"),
    ],
)
def test_a_mig_name_says_how_much_a_slice_has_or_it_counts_as_a_whole_gpu(
    profile: str, expected: str
) -> None:
    assert frozen(admitted(pod(mig_container(profile=profile)), tenant())) == (expected, None)


class TestBounds:
    """min and max judge what somebody declared."""

    def test_less_than_min_is_refused_in_both_forms_with_what_was_meant(self) -> None:
        text = refused(pod(container(gpus=8, memory="8Gi")), policy(limits={"min": "2Gi"}))
        assert "8Gi over 8 GPUs = 1Gi per GPU" in text
        assert "less than the least limit per GPU, 2Gi" in text
        assert "did you mean 64Gi?" in text

    def test_the_question_is_not_asked_where_its_answer_would_be_refused_too(self) -> None:
        limits = {"min": "2Gi", "max": "4Gi"}
        text = refused(pod(container(gpus=8, memory="8Gi")), policy(limits=limits))
        assert "did you mean" not in text
        assert "it takes at least 16Gi" in text

    def test_with_one_gpu_total_and_limit_are_the_same_and_nothing_else_was_meant(self) -> None:
        text = refused(pod(container(memory="1Gi")), policy())
        assert "1Gi over 1 GPU = 1Gi per GPU" in text
        assert "did you mean" not in text

    def test_more_than_max_is_refused_in_both_forms(self) -> None:
        text = refused(pod(container(gpus=2, memory="100Gi")), policy(limits={"max": "40Gi"}))
        assert "100Gi over 2 GPUs = 50Gi per GPU, more than the largest limit per GPU, 40Gi" in text

    def test_a_total_in_the_annotation_is_recognised(self) -> None:
        raw = pod(container(gpus=8), annotations={ALL: "64Gi"})
        text = refused(raw, policy(limits={"max": "40Gi"}))
        assert "the annotation is per GPU: did you mean 8Gi?" in text

    @pytest.mark.parametrize("memory", ["2Gi", "40Gi"])
    def test_the_bounds_themselves_are_allowed(self, memory: str) -> None:
        admitted(pod(container(memory=memory)), policy(limits={"min": "2Gi", "max": "40Gi"}))

    def test_a_bound_that_is_no_whole_mib_is_allowed_as_well(self) -> None:
        limits = {"min": "2500000000", "default": "2500000000", "max": "2500000000"}
        admitted(pod(annotations={ALL: "2500000000"}), policy(limits=limits))

    def test_they_say_nothing_about_profiles(self) -> None:
        admitted(pod(mig_container(profile="7g.80gb")), policy(limits={"max": "40Gi"}))

    def test_they_need_a_policy(self) -> None:
        admitted(pod(container(memory="1Gi")), tenant())

    def test_a_whole_gpu_under_a_max_gets_a_warning(self) -> None:
        verdict = review(pod(), policy(limits={"max": "40Gi"}))
        assert verdict.refusal is None
        assert any("has spec.limits.max but no default, and train" in w for w in verdict.warnings)

    def test_of_many_that_declare_nothing_some_are_named_and_the_rest_counted(self) -> None:
        raw = pod(*(container(f"c{number}") for number in range(5)))
        [warned] = [w for w in review(raw, policy(limits={"max": "40Gi"})).warnings if "max" in w]
        assert "c0, c1, c2 and 2 more declare nothing: whole cards may be taken" in warned


class TestExclusiveResources:
    """Resources that hand out whole cards, by the chart's value."""

    VALUES = values(exclusiveResources=["nvidia.com/gpu"])

    def test_who_declares_nothing_on_them_gets_no_default_limit(self) -> None:
        stored = admitted(pod(), policy(limits={"default": "8Gi"}), values=self.VALUES)
        assert frozen(stored) == ("WholeGPU", None)

    def test_who_declares_something_gets_it(self) -> None:
        raw = pod(annotations={ALL: "8Gi"})
        stored = admitted(raw, policy(limits={"default": "4Gi"}), values=self.VALUES)
        assert frozen(stored) == ("Annotation", gib(8))

    def test_other_resources_are_not_concerned(self) -> None:
        raw = pod(cpu_container("train", limits={"nvidia.com/gpu.shared": "1"}))
        stored = admitted(raw, policy(limits={"default": "8Gi"}), values=self.VALUES)
        assert frozen(stored) == ("Policy", gib(8))
