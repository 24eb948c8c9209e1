"""Merged key by key under the name that the author used; a string that aborts never passes."""

from __future__ import annotations

import pytest

from builders import (
    admitted,
    container,
    env,
    from_secret,
    pod,
    policy,
    refused,
    review,
    tenant,
    variables,
)
from gpumem_operator import names
from gpumem_operator.api.records import PolicyRecord

OLD, NEW = names.PYTORCH_CONF_ENV, names.PYTORCH_NEW_CONF_ENV
CONFIG = {"max_split_size_mb": "128", "garbage_collection_threshold": "0.8"}
ALL_OURS = "max_split_size_mb:128,garbage_collection_threshold:0.8"


def wanting(existing: str = "Merge", **config: str) -> PolicyRecord:
    return policy(
        frameworks={"pytorch": {"allocatorConfig": config or CONFIG}},
        injection={"existingEnv": existing},
    )


def outcome(existing: str = "Merge", **entries: str) -> dict[str, str | None]:
    return variables(admitted(pod(container(env=env(**entries))), wanting(existing)))


def test_without_one_of_the_author_s_the_older_name_is_set() -> None:
    found = outcome()
    assert found[OLD] == ALL_OURS
    assert NEW not in found


def test_a_policy_without_keys_sets_nothing() -> None:
    assert not {OLD, NEW} & variables(admitted(pod(), policy())).keys()


def test_the_author_s_key_wins_and_ours_are_added() -> None:
    found = outcome(PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:64,expandable_segments:True")
    assert found[OLD] == (
        "max_split_size_mb:64,expandable_segments:True,garbage_collection_threshold:0.8"
    )
    assert f"{OLD}:garbage_collection_threshold" in (found[names.INJECTED_ENV] or "").split(",")


def test_the_name_that_the_author_used_is_the_one_that_is_edited() -> None:
    found = outcome(PYTORCH_ALLOC_CONF="max_split_size_mb:64")
    assert found[NEW] == "max_split_size_mb:64,garbage_collection_threshold:0.8"
    assert OLD not in found


def test_where_both_are_set_the_older_one_is_what_pytorch_reads() -> None:
    found = outcome(PYTORCH_CUDA_ALLOC_CONF="", PYTORCH_ALLOC_CONF="max_split_size_mb:64")
    assert found[OLD] == ALL_OURS
    assert found[NEW] == "max_split_size_mb:64"


def test_keep_leaves_the_author_s_string_alone() -> None:
    written = "max_split_size_mb:64"
    assert outcome("Keep", PYTORCH_CUDA_ALLOC_CONF=written)[OLD] == written


def test_override_replaces_it() -> None:
    assert outcome("Override", PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:64")[OLD] == ALL_OURS


def test_override_replaces_the_newer_name_by_itself() -> None:
    found = outcome("Override", PYTORCH_ALLOC_CONF="max_split_size_mb:64")
    assert found[NEW] == ALL_OURS
    assert OLD not in found


@pytest.mark.parametrize("existing", ["Merge", "Keep", "Override"])
def test_a_reference_stays_with_a_warning(existing: str) -> None:
    raw = pod(container(env=[from_secret(OLD)]))
    assert variables(admitted(raw, wanting(existing)))[OLD] is None
    assert f"{OLD} comes from a reference" in " ".join(review(raw, wanting(existing)).warnings)


@pytest.mark.parametrize(
    "written",
    [
        "max_split_size_mb",
        "max_split_size_mb=64",
        "max_split_size_mb:64;expandable_segments:True",
        "backend:",
        ":64",
        "a:b:c",
        "roundup_power2_divisions:[256:1",
        ",",
        "x" * 100_000,
    ],
)
@pytest.mark.parametrize("existing", ["Merge", "Keep"])
def test_a_string_on_which_import_torch_aborts_is_refused(written: str, existing: str) -> None:
    raw = pod(container(env=env(PYTORCH_CUDA_ALLOC_CONF=written)))
    text = refused(raw, wanting(existing))
    assert f"spec.containers[train].env: {OLD}:" in text
    assert "PyTorch aborts on it inside `import torch`" in text
    assert len(text) < 1000


def test_unless_it_is_replaced() -> None:
    assert outcome("Override", PYTORCH_CUDA_ALLOC_CONF="backend:")[OLD] == ALL_OURS


def test_or_nobody_but_a_tenant_decides() -> None:
    raw = pod(container(env=env(PYTORCH_CUDA_ALLOC_CONF="backend:")))
    assert variables(admitted(raw, tenant()))[OLD] == "backend:"


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("growth_factor:2", "have no key 'growth_factor'"),
        ("max_split_size_mb:20", "it takes a whole number of MiB of at least 21"),
        ("expandable_segments:true", "it takes exactly True or False"),
        ("per_process_memory_fraction:0.5", "PyTorch before 2.10 fails on it"),
    ],
)
def test_what_a_known_pytorch_refuses_stays_with_a_warning(written: str, sentence: str) -> None:
    raw = pod(container(env=env(PYTORCH_CUDA_ALLOC_CONF=written)))
    verdict = review(raw, policy())
    assert verdict.refusal is None
    assert sentence in " ".join(verdict.warnings)
    assert variables(admitted(raw, policy()))[OLD] == written


def test_blanks_and_a_trailing_comma_are_as_pytorch_reads_them() -> None:
    found = outcome(PYTORCH_CUDA_ALLOC_CONF=" max_split_size_mb : 64 ,")
    assert found[OLD] == "max_split_size_mb:64,garbage_collection_threshold:0.8"


def test_a_list_is_one_value() -> None:
    written = "roundup_power2_divisions:[256:1,512:2,>:8]"
    found = outcome(PYTORCH_CUDA_ALLOC_CONF=written)
    assert found[OLD] == f"{written},{ALL_OURS}"


def test_a_string_that_needs_nothing_is_not_rewritten() -> None:
    written = " max_split_size_mb:64, garbage_collection_threshold:0.5 "
    assert outcome(PYTORCH_CUDA_ALLOC_CONF=written)[OLD] == written
