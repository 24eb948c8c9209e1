from __future__ import annotations

from typing import Any

import pytest
from kubernetes.client import (
    V1Container,
    V1EphemeralContainer,
    V1PodSpec,
    V1ResourceRequirements,
)

from cli_objects import container, pod, policy
from gpumem_operator.cli.fields import (
    CONTAINER_FIELDS,
    EPHEMERAL_FIELDS,
    POD_FIELDS,
    RESOURCES_FIELDS,
)


@pytest.mark.parametrize(
    ("fields", "model"),
    [
        pytest.param(CONTAINER_FIELDS, V1Container, id="container"),
        pytest.param(EPHEMERAL_FIELDS, V1EphemeralContainer, id="ephemeral container"),
        pytest.param(RESOURCES_FIELDS, V1ResourceRequirements, id="resources"),
        pytest.param(POD_FIELDS, V1PodSpec, id="pod"),
    ],
)
def test_the_known_fields_are_those_of_kubernetes(fields: frozenset[str], model: Any) -> None:
    assert fields == set(model.attribute_map.values())


LIMITS = {"limits": {"nvidia.com/gpu": 1}}


@pytest.mark.parametrize("command", ["render", "charge"])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param(
            pod({"name": "main", "resource": LIMITS}),
            "spec.containers[main].resource: unknown field: did you mean resources?",
            id="resource",
        ),
        pytest.param(
            pod({"name": "main", "Resources": LIMITS}),
            "spec.containers[main].Resources: unknown field: did you mean resources?",
            id="upper case",
        ),
        pytest.param(
            pod({"name": "main", "resources": {"limit": {"nvidia.com/gpu": 1}}}),
            "spec.containers[main].resources.limit: unknown field: did you mean limits?",
            id="limit",
        ),
        pytest.param(
            pod({"name": "main", "gpu": 1}),
            "spec.containers[main].gpu: unknown field, it is not read",
            id="nothing near",
        ),
        pytest.param(
            pod(initContainers=[{"name": "fetch", "enviroment": [], "envs": []}]),
            "spec.initContainers[fetch].envs: unknown field: did you mean env?",
            id="init container",
        ),
        pytest.param(
            pod(initContainer=[container("fetch", gpu=1)]),
            "spec.initContainer: unknown field: did you mean initContainers?",
            id="field of the pod",
        ),
    ],
)
def test_a_field_that_kubernetes_drops_is_named_with_the_one_that_was_meant(
    run: Any, command: str, given: dict[str, Any], said: str
) -> None:
    result = run(command, [policy(), given])
    assert result.exit_code == 0
    assert f"warning: ml/train: {said}\n" in result.stderr


def test_known_fields_and_new_ones_of_the_pod_are_not_warned_of(run: Any) -> None:
    full = {**container(gpu=1), "lifecycle": {}, "ports": [], "restartPolicy": "Always"}
    look = {"name": "look", "targetContainerName": "main"}
    one = pod(full, ephemeralContainers=[look], somethingOfTomorrow=1)
    assert "unknown field" not in run("render", [policy(), one]).stderr
