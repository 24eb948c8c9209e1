"""A GPU pod: any container has a limit for a GPU or the memory resource, or could see devices."""

from __future__ import annotations

import pytest

from builders import (
    Raw,
    admitted,
    container,
    cpu_container,
    from_secret,
    mig_container,
    pod,
    policy,
    refused,
    review,
    values,
)
from gpumem_operator import names
from gpumem_operator.api.pods import is_gpu_pod


def seeing(value: str | None) -> Raw:
    entry: Raw = {"name": names.VISIBLE_DEVICES_ENV}
    return cpu_container(env=[entry if value is None else {**entry, "value": value}])


GPU_CONTAINERS = {
    "a whole card": container(),
    "a shared card": cpu_container(limits={"nvidia.com/gpu.shared": "1"}),
    "a MIG slice": mig_container(profile="1g.10gb"),
    "a MIG slice with an unknown name": mig_container(profile="weird"),
    "zero cards": container(gpus=0),
    "the memory resource alone": cpu_container(memory="8Gi"),
    "devices by number": seeing("0"),
    "all devices": seeing("all"),
    "an empty list of devices": seeing(""),
    "a list of devices without a value": seeing(None),
    "devices by reference": cpu_container(env=[from_secret(names.VISIBLE_DEVICES_ENV)]),
    "devices in a repeated variable": cpu_container(
        env=[
            {"name": names.VISIBLE_DEVICES_ENV, "value": "void"},
            {"name": names.VISIBLE_DEVICES_ENV, "value": "all"},
        ]
    ),
}
OTHER_CONTAINERS = {
    "nothing": cpu_container(),
    "cpu and memory": cpu_container(limits={"cpu": "1", "memory": "1Gi"}),
    "another vendor's card": cpu_container(limits={"amd.com/gpu": "1"}),
    "a resource whose name goes on": cpu_container(limits={"nvidia.com/gpus": "1"}),
    "void devices": seeing("void"),
    "no devices": seeing("none"),
    "a request without a limit": cpu_container(resources={"requests": {"nvidia.com/gpu": "1"}}),
}


@pytest.mark.parametrize("kind", ["containers", "initContainers", "ephemeralContainers"])
@pytest.mark.parametrize("one", GPU_CONTAINERS.values(), ids=GPU_CONTAINERS)
def test_one_container_of_any_kind_makes_a_gpu_pod(one: Raw, kind: str) -> None:
    raw = pod(cpu_container("other"))
    raw["spec"][kind] = [*raw["spec"].get(kind, []), one]
    assert is_gpu_pod(raw, names.MEMORY_RESOURCE)


@pytest.mark.parametrize("one", OTHER_CONTAINERS.values(), ids=OTHER_CONTAINERS)
def test_other_pods_are_not_changed(one: Raw) -> None:
    raw = pod(one)
    assert not is_gpu_pod(raw, names.MEMORY_RESOURCE)
    verdict = review(raw, policy(limits={"default": "8Gi"}))
    assert (verdict.operations, verdict.refusal, verdict.warnings) == ((), None, ())


def test_the_memory_resource_has_the_name_that_the_chart_gives_it() -> None:
    raw = pod(cpu_container(limits={"example.com/vram": "8Gi"}))
    assert not is_gpu_pod(raw, names.MEMORY_RESOURCE)
    assert is_gpu_pod(raw, "example.com/vram")


def test_the_chart_s_name_of_the_memory_resource_is_where_the_limit_comes_from() -> None:
    chart = values(memoryResource="example.com/vram")
    raw = pod(container(limits={"example.com/vram": "8Gi"}))
    stored = admitted(raw, policy(), values=chart)
    assert {"name": names.LIMIT_SOURCE_ENV, "value": "Resource"} in (
        stored["spec"]["containers"][0]["env"]
    )


def test_containers_that_admission_put_there_make_no_gpu_pod() -> None:
    stored = admitted(pod(container("train")), policy())
    stored["spec"]["containers"] = [cpu_container()]
    assert not is_gpu_pod(stored, names.MEMORY_RESOURCE)


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
@pytest.mark.parametrize("name", sorted(names.OUR_CONTAINERS))
def test_a_gpu_container_with_one_of_our_names_is_refused(name: str, kind: str) -> None:
    raw = pod(cpu_container())
    raw["spec"][kind] = [*raw["spec"].get(kind, []), container(name)]
    assert is_gpu_pod(raw, names.MEMORY_RESOURCE)
    assert f"spec.{kind}[{name}].name: the name is kept" in refused(raw, policy())


def test_the_name_of_ours_is_refused_for_other_containers_of_a_gpu_pod() -> None:
    raw = pod(container(), cpu_container(names.SIDECAR_CONTAINER))
    assert "choose another one" in refused(raw, policy(monitoring={"mode": "NodeAgent"}))
