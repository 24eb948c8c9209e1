"""hostPID, shareProcessNamespace, Windows, hostNetwork: what is possible, and a message."""

from __future__ import annotations

from typing import Any

import pytest

from builders import (
    Raw,
    admitted,
    container,
    containers_of,
    frozen,
    gib,
    init_names,
    pod,
    policy,
    review,
    variables,
    volume_names,
)
from gpumem_operator import names

SHIM, SIDECAR = names.SHIM_CONTAINER, names.SIDECAR_CONTAINER


def test_host_pid_and_a_shared_namespace_exclude_each_other() -> None:
    stored = admitted(pod(hostPID=True), policy())
    assert "shareProcessNamespace" not in stored["spec"]
    assert SIDECAR in containers_of(stored)
    assert any("hostPID" in text for text in review(pod(hostPID=True), policy()).warnings)


def test_an_explicit_false_is_kept_with_a_warning() -> None:
    raw = pod(shareProcessNamespace=False)
    assert admitted(raw, policy())["spec"]["shareProcessNamespace"] is False
    warned = " ".join(review(raw, policy()).warnings)
    assert "shareProcessNamespace is false" in warned


def test_true_needs_no_operation() -> None:
    paths = [op["path"] for op in review(pod(shareProcessNamespace=True), policy()).operations]
    assert "/spec/shareProcessNamespace" not in paths


@pytest.mark.parametrize(
    "said",
    [{"os": {"name": "windows"}}, {"nodeSelector": {"kubernetes.io/os": "windows"}}],
    ids=["its system", "its nodes"],
)
def test_a_windows_pod_gets_variables_only(said: dict[str, Any]) -> None:
    raw = pod(container(memory="8Gi"), **said)
    cache = {"mountPath": "/mnt/ramdisk", "sizeLimit": "1Gi"}
    stored = admitted(raw, policy(datasetCache=cache))
    assert "volumeMounts" not in containers_of(stored)["train"]
    assert init_names(stored) == []
    assert volume_names(stored) == []
    assert "shareProcessNamespace" not in stored["spec"]
    assert frozen(stored) == ("Resource", gib(8))
    assert names.CUPY_LIMIT_ENV in variables(stored)
    assert names.PYTHON_PATH_ENV not in variables(stored)
    assert any("Windows" in text for text in review(raw, policy()).warnings)


def test_a_pod_for_linux_on_nodes_that_say_so_gets_everything() -> None:
    raw = pod(nodeSelector={"kubernetes.io/os": "linux"})
    assert init_names(admitted(raw, policy())) == [SHIM, SIDECAR]


@pytest.mark.parametrize(
    "raw",
    [
        pod(hostNetwork=True),
        pod(container(ports=[{"containerPort": 9433}])),
    ],
    ids=["host network", "a port of the author's"],
)
def test_the_sidecar_has_no_probe_where_someone_else_would_answer(raw: Raw) -> None:
    assert "livenessProbe" in containers_of(admitted(pod(), policy()))[SIDECAR]
    assert "livenessProbe" not in containers_of(admitted(raw, policy()))[SIDECAR]
