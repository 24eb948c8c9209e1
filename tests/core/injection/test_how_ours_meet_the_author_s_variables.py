"""Merge adds what the author did not set, Keep leaves what was set, Override replaces it."""

from __future__ import annotations

from typing import Any

import pytest

from builders import (
    Raw,
    admitted,
    container,
    env,
    from_secret,
    pod,
    policy,
    review,
    tenant,
    variables,
)
from gpumem_operator import names

PREALLOCATE = names.JAX_PREALLOCATE_ENV


def with_jax(entries: list[Raw], existing: str, **fields: Any) -> Raw:
    return admitted(
        pod(container(env=entries, **fields)), policy(injection={"existingEnv": existing})
    )


@pytest.mark.parametrize("existing", ["Merge", "Keep", "Override"])
def test_what_the_author_did_not_set_is_added(existing: str) -> None:
    found = variables(with_jax([], existing))
    assert found[PREALLOCATE] == "false"
    assert PREALLOCATE in (found[names.INJECTED_ENV] or "").split(",")


@pytest.mark.parametrize(
    ("existing", "expected"), [("Merge", "true"), ("Keep", "true"), ("Override", "false")]
)
def test_what_the_author_set_stays_unless_it_is_overridden(existing: str, expected: str) -> None:
    found = variables(with_jax(env(XLA_PYTHON_CLIENT_PREALLOCATE="true"), existing))
    assert found[PREALLOCATE] == expected
    assert PREALLOCATE not in (found[names.INJECTED_ENV] or "").split(",")


@pytest.mark.parametrize("existing", ["Merge", "Keep", "Override"])
@pytest.mark.parametrize(
    "entry",
    [from_secret(PREALLOCATE), {"name": PREALLOCATE, "value": "$(OTHER)"}],
    ids=["a reference to an object", "a reference to a variable"],
)
def test_a_reference_stays_with_a_warning(entry: Raw, existing: str) -> None:
    raw = pod(container(env=[entry]))
    verdict = review(raw, policy(injection={"existingEnv": existing}))
    assert f"{PREALLOCATE} comes from a reference" in " ".join(verdict.warnings)
    stored = with_jax([entry], existing)
    assert entry in stored["spec"]["containers"][0]["env"]


def test_an_empty_variable_is_one_that_the_author_set() -> None:
    assert variables(with_jax([{"name": PREALLOCATE}], "Merge"))[PREALLOCATE] == ""


def test_of_a_repeated_variable_the_last_one_is_the_author_s_as_for_kubelet() -> None:
    entries = [*env(CUPY_GPU_MEMORY_LIMIT="1000000000000"), *env(CUPY_GPU_MEMORY_LIMIT="1000")]
    stored = admitted(pod(container(env=entries, memory="8Gi")), policy())
    found = [e for e in stored["spec"]["containers"][0]["env"] if e["name"] == names.CUPY_LIMIT_ENV]
    assert [entry["value"] for entry in found] == ["1000", "1000"]


def test_a_variable_stays_in_its_place_because_others_may_refer_to_it() -> None:
    entries = [*env(A="1"), *env(XLA_PYTHON_CLIENT_PREALLOCATE="true"), *env(B="$(A)")]
    stored = with_jax(entries, "Override")
    order = [entry["name"] for entry in stored["spec"]["containers"][0]["env"]]
    assert order[:3] == ["A", PREALLOCATE, "B"]


def test_variables_that_have_nothing_to_do_with_us_stay_as_they_are() -> None:
    entries = [*env(PATH="/bin", NVIDIA_DRIVER_CAPABILITIES="all"), from_secret("TOKEN")]
    stored = with_jax(entries, "Override")
    assert stored["spec"]["containers"][0]["env"][:3] == entries


def test_env_from_can_not_be_read_so_ours_win_with_one_warning() -> None:
    source = [{"configMapRef": {"name": "settings"}}]
    raw = pod(container(envFrom=source))
    verdict = review(raw, policy())
    told = [text for text in verdict.warnings if "envFrom" in text]
    assert len(told) == 1
    assert PREALLOCATE in told[0]
    stored = admitted(raw, policy())
    assert variables(stored)[PREALLOCATE] == "false"
    assert stored["spec"]["containers"][0]["envFrom"] == source


def test_a_tenant_alone_sets_no_framework_variable() -> None:
    found = variables(admitted(pod(container(memory="8Gi")), tenant()))
    assert found.keys() == {names.LIMIT_SOURCE_ENV, names.LIMIT_BYTES_ENV}


@pytest.mark.parametrize(
    ("preallocation", "expected"), [("Disabled", "false"), ("Enabled", "true"), ("Default", None)]
)
def test_jax_takes_its_share_at_once_only_where_the_policy_wants_it(
    preallocation: str, expected: str | None
) -> None:
    frameworks = {"jax": {"preallocation": preallocation}}
    found = variables(admitted(pod(), policy(frameworks=frameworks)))
    assert found.get(PREALLOCATE) == expected


@pytest.mark.parametrize(
    ("mode", "growth"), [("Limit", None), ("Growth", "true"), ("Default", None)]
)
def test_tensorflow_gets_growth_as_a_variable_and_its_mode_through_the_shim(
    mode: str, growth: str | None
) -> None:
    found = variables(admitted(pod(), policy(frameworks={"tensorflow": {"mode": mode}})))
    assert found.get(names.TENSORFLOW_GROWTH_ENV) == growth
    assert found[names.TENSORFLOW_MODE_ENV] == mode


def test_tensorflow_needs_no_mode_without_the_shim() -> None:
    found = variables(admitted(pod(), policy(injection={"shim": "Disabled"})))
    assert names.TENSORFLOW_MODE_ENV not in found


@pytest.mark.parametrize("value", ["1", "True", "TRUE", ""])
def test_a_growth_that_tensorflow_ignores_gets_a_warning(value: str) -> None:
    verdict = review(pod(container(env=env(TF_FORCE_GPU_ALLOW_GROWTH=value))), policy())
    assert "takes exactly true or false" in " ".join(verdict.warnings)


@pytest.mark.parametrize("value", ["true", "false"])
def test_one_that_it_takes_gets_none(value: str) -> None:
    verdict = review(pod(container(env=env(TF_FORCE_GPU_ALLOW_GROWTH=value))), policy())
    assert "takes exactly" not in " ".join(verdict.warnings)
