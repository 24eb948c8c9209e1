"""What people type wrong about memory, and the hint that they get."""

import pytest

from builders import container, pod, policy, refused, review


@pytest.mark.parametrize(
    ("written", "meant"),
    [pytest.param("8", "8Gi", id="GiB"), pytest.param("8192", "8192Mi", id="MiB")],
)
def test_an_amount_without_a_unit_is_asked_about(written: str, meant: str) -> None:
    text = refused(pod(container(gpu=1, memory=written)), policy())
    assert f"did you mean {meant}?" in text
    annotated = pod(container(gpu=1), annotations={"gpumemory.dev/limit": written})
    assert f"did you mean {meant}?" in refused(annotated, policy())


@pytest.mark.parametrize(
    ("key", "said"),
    [
        pytest.param("gpumemory.dev/limits", "did you mean gpumemory.dev/limit?", id="plural"),
        pytest.param("gpumemory.dev/Limit", "did you mean gpumemory.dev/limit?", id="upper case"),
        pytest.param("gpumemory.dev/memory", "known are gpumemory.dev/limit", id="another word"),
    ],
)
def test_an_annotation_that_means_nothing_is_warned_of(key: str, said: str) -> None:
    warned = review(pod(container(gpu=1), annotations={key: "8Gi"}), policy()).warnings
    [about] = [text for text in warned if "means nothing" in text]
    assert f"annotation {key} means nothing" in about
    assert said in about


def test_annotations_that_mean_something_and_foreign_ones_are_not_warned_of() -> None:
    annotations = {
        "gpumemory.dev/limit": "8Gi",
        "gpumemory.dev/limit.train": "8Gi",
        "gpumemory.dev/processes-per-gpu": "2",
        "gpumemory.dev/python-path": "/app",
        "example.com/limit": "x",
    }
    warned = review(pod(container(gpu=1), annotations=annotations), policy()).warnings
    assert "means nothing" not in " ".join(warned)


def test_a_bare_number_beside_gpus_is_in_bytes() -> None:
    text = refused(pod(container(gpu=1, memory="8")), policy())
    assert "8 bytes over 1 GPU = 8 bytes per GPU, less than 1Mi" in text
    assert "did you mean 8Gi?" in text


@pytest.mark.parametrize(
    ("gpus", "memory", "said"),
    [
        (1, "1", "1 byte over 1 GPU = 1 byte per GPU, less than 1Mi"),
        (8, "4Mi", "4Mi over 8 GPUs = 512Ki per GPU, less than 1Mi: declare more"),
        (1, "500k", "500000 bytes over 1 GPU = 500000 bytes per GPU, less than 1Mi: declare more"),
    ],
)
def test_an_amount_that_is_too_small_is_told_as_it_was_meant(
    gpus: int, memory: str, said: str
) -> None:
    assert said in refused(pod(container(gpus=gpus, memory=memory)), policy())


def test_an_annotation_with_a_unit_is_not_taken_for_one_without() -> None:
    text = refused(pod(annotations={"gpumemory.dev/limit": "64Ki"}), policy())
    assert "64Ki per GPU, less than 1Mi: declare more, or remove the declaration" in text


def test_more_than_the_largest_limit_says_how_much_is_allowed() -> None:
    largest = policy(limits={"max": "40Gi"})
    one = refused(pod(container(gpu=1, memory="41Gi")), largest)
    assert "more than the largest limit per GPU, 40Gi: declare at most 40Gi" in one
    two = refused(pod(container(gpus=2, memory="100Gi")), largest)
    assert "per GPU, 40Gi: declare at most 80Gi over 2 GPUs" in two
