"""What `envFrom` brings can not be read, and in a tenant's namespace nobody takes GPUs by it."""

from __future__ import annotations

from typing import Any

import pytest

from builders import (
    Raw,
    admitted,
    applied,
    around,
    container,
    cpu_container,
    env,
    pod,
    policy,
    review,
    tenant,
    values,
    variables,
)
from gpumem_operator import names
from gpumem_operator.admission.review import review_ephemeral_containers

FROM: Raw = {"envFrom": [{"configMapRef": {"name": "devices"}}]}
DEVICES = names.VISIBLE_DEVICES_ENV


@pytest.mark.parametrize(
    "records",
    [
        pytest.param([tenant()], id="a tenant alone"),
        pytest.param([policy(), tenant()], id="a policy and a tenant"),
        pytest.param([policy(mode="Observe"), tenant()], id="a policy that observes"),
    ],
)
@pytest.mark.parametrize("gpus", [0, None], ids=["no GPU, but said so", "nothing"])
def test_a_container_beside_a_gpu_sees_none(records: list[Any], gpus: int | None) -> None:
    beside = container("beside", gpus=gpus, **FROM)
    raw = pod(container(**FROM), beside, init=[cpu_container("first", **FROM)])
    stored = admitted(raw, *records)
    assert variables(stored, "beside")[DEVICES] == "void"
    assert variables(stored, "first")[DEVICES] == "void"
    assert DEVICES not in variables(stored, "train")  # the device plugin says which
    assert any("these win over it" in text for text in review(raw, *records).warnings)


def test_nor_one_in_a_pod_that_asks_for_none() -> None:
    stored = admitted(pod(container(gpus=0, **FROM)), tenant())
    assert variables(stored)[DEVICES] == "void"


def test_an_author_who_says_it_himself_is_left_alone() -> None:
    beside = cpu_container(env=env(NVIDIA_VISIBLE_DEVICES="none"), **FROM)
    stored = admitted(pod(container(), beside), tenant())
    assert variables(stored, "web") == {DEVICES: "none"}


def test_without_a_tenant_and_without_env_from_nothing_is_added() -> None:
    raw = pod(container(), cpu_container(**FROM), cpu_container("plain"))
    assert DEVICES not in variables(admitted(raw, policy()), "web")
    assert DEVICES not in variables(admitted(raw, tenant()), "plain")


def test_what_a_tenant_hid_is_shown_again_where_there_is_none() -> None:
    raw = pod(container(), cpu_container(**FROM))
    exported = admitted(raw, tenant())
    assert "web" in str(exported)
    assert variables(admitted(exported, policy()), "web") == {}


def test_an_ephemeral_container_sees_none() -> None:
    old = admitted(pod(), tenant())
    new = {**old, "spec": {**old["spec"], "ephemeralContainers": [{"name": "debug", **FROM}]}}
    for record, expected in ((tenant(), {DEVICES: "void"}), (policy(), {})):
        verdict = review_ephemeral_containers(new, old, around(record), values())
        assert variables(applied(new, verdict), "debug").items() >= expected.items()
        assert (DEVICES in variables(applied(new, verdict), "debug")) is bool(expected)
