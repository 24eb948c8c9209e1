"""Whoever wants more memory or a lower charge, and whoever was only unlucky."""

from __future__ import annotations

import pytest

from builders import (
    GIB,
    Raw,
    admitted,
    container,
    containers_of,
    cpu_container,
    env,
    frozen,
    gib,
    mig_container,
    native_sidecar,
    pod,
    policy,
    refused,
    review,
    tenant,
    variables,
)
from gpumem_operator import names
from gpumem_operator.api.values import Values
from gpumem_operator.ledger.charge import charge_pod, rates_of

TENANT = tenant(limit="640Gi", whole="80Gi")
DEFAULT = policy(limits={"default": "8Gi"})


def charged(raw: Raw) -> float:
    """GiB that the tenant is charged for the pod as it is stored."""
    assert TENANT.spec is not None
    rates = rates_of(TENANT.spec.quota, Values())
    amount = charge_pod(admitted(raw, TENANT), Values(), rates=rates).charge_bytes
    assert amount is not None
    return amount / GIB


class TestALowerCharge:
    @pytest.mark.parametrize(
        "forged",
        [
            env(GPUMEM_LIMIT_BYTES="1"),
            env(GPUMEM_LIMIT_SOURCE="Policy", GPUMEM_LIMIT_BYTES="1048576"),
            env(GPUMEM_LIMIT_BYTES="1") * 5,
            env(GPUMEM_INJECTED="GPUMEM_LIMIT_BYTES,GPUMEM_LIMIT_SOURCE", GPUMEM_LIMIT_BYTES="1"),
            [{"name": names.LIMIT_BYTES_ENV, "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
        ],
    )
    def test_no_forged_variable_gives_it(self, forged: list[Raw]) -> None:
        assert charged(pod(container(env=forged))) == 80
        assert charged(pod(mig_container(env=forged))) == 10
        assert charged(pod(cpu_container("web"), init=[native_sidecar("s", env=forged)])) == 80

    @pytest.mark.parametrize("name", sorted(names.OUR_CONTAINERS))
    @pytest.mark.parametrize("place", ["containers", "initContainers"])
    def test_no_name_of_ours_gives_it(self, name: str, place: str) -> None:
        raw = pod(cpu_container())
        raw["spec"][place] = [*raw["spec"].get(place, []), container(name, gpus=8)]
        assert "the name is kept" in refused(raw, TENANT)

    def test_no_small_amount_beside_many_gpus_gives_it(self) -> None:
        """Rounded down to nothing per GPU, it would limit nothing."""
        assert "less than 1Mi" in refused(pod(container(gpus=8, memory="1Mi")), TENANT)

    def test_zero_gpus_beside_a_real_one_change_nothing(self) -> None:
        assert charged(pod(container(limits={"nvidia.com/mig-1g.10gb": "0"}))) == 80

    @pytest.mark.parametrize("profile", ["1g.0gb", "1g.00gb", "0g.0gb", "x.1gb", "1g.1gb.evil"])
    def test_a_mig_name_that_means_nothing_counts_as_a_whole_card(self, profile: str) -> None:
        assert charged(pod(mig_container(profile=profile))) == 80

    def test_a_mig_name_with_a_very_large_number_is_a_name_that_means_nothing(self) -> None:
        profile = f"1g.{'9' * 40}gb"
        assert charged(pod(mig_container(profile=profile))) == 80

    def test_the_status_and_labels_of_a_new_pod_do_not_count(self) -> None:
        raw = pod(labels={names.MANAGED_LABEL: "false"}, annotations={names.SUMMARY_ANNOTATION: ""})
        raw["status"] = {"phase": "Running"}
        assert charged(raw) == 80

    @pytest.mark.parametrize("amount", ["8e9", "8000000k", "8000M", "8G"])
    def test_an_unusual_quantity_is_the_same_amount(self, amount: str) -> None:
        assert charged(pod(container(memory=amount))) == 8e9 / GIB

    def test_a_huge_count_is_a_huge_charge_and_no_error(self) -> None:
        assert "more than the whole quota" in refused(pod(container(gpus=10**12)), TENANT)

    def test_a_count_beyond_all_numbers_is_refused_as_unreadable(self) -> None:
        assert "more than the largest quantity" in refused(pod(container(gpus=10**30)), TENANT)

    def test_a_request_without_a_limit_is_no_gpu_because_the_server_refuses_it(self) -> None:
        raw = pod(cpu_container(resources={"requests": {"nvidia.com/gpu": "8"}}))
        assert review(raw, TENANT).operations == ()

    def test_devices_that_nobody_pays_for_are_refused_wherever_they_are_set(self) -> None:
        seeing = cpu_container(
            "web", env=env(NVIDIA_VISIBLE_DEVICES="void") + env(NVIDIA_VISIBLE_DEVICES="all")
        )
        for raw in (pod(seeing), pod(cpu_container("a"), init=[seeing]), pod(container(), seeing)):
            assert "did not ask for" in refused(raw, TENANT)


class TestMoreMemory:
    def test_a_forged_list_of_ours_frees_from_no_cap(self) -> None:
        listed = f"{names.CUPY_LIMIT_ENV},{names.MPS_LIMIT_ENV},{names.PYTHON_PATH_ENV}"
        forged = env(
            GPUMEM_INJECTED=listed,
            CUPY_GPU_MEMORY_LIMIT="0",
            CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="0=80G",
            PYTHONPATH="/evil",
        )
        found = variables(admitted(pod(container(env=forged)), DEFAULT))
        assert found[names.CUPY_LIMIT_ENV] == gib(7)
        assert found[names.MPS_LIMIT_ENV] == "0=8192M"
        assert found[names.PYTHON_PATH_ENV] == names.SHIM_PATH

    def test_a_forged_list_removes_no_other_variable(self) -> None:
        forged = env(GPUMEM_INJECTED="HOME,NVIDIA_VISIBLE_DEVICES,,", HOME="/root")
        found = variables(admitted(pod(container(env=forged)), DEFAULT))
        assert found["HOME"] == "/root"

    @pytest.mark.parametrize("order", [1, -1])
    def test_of_two_caps_neither_is_above_ours(self, order: int) -> None:
        twice = [*env(CUPY_GPU_MEMORY_LIMIT="1000"), *env(CUPY_GPU_MEMORY_LIMIT="0")][::order]
        stored = admitted(pod(container(env=twice)), DEFAULT)
        caps = [
            int(entry["value"])
            for entry in stored["spec"]["containers"][0]["env"]
            if entry["name"] == names.CUPY_LIMIT_ENV
        ]
        assert len(caps) == 2
        assert all(0 < cap <= 7 * GIB for cap in caps)

    def test_many_processes_are_not_a_way_to_more(self) -> None:
        raw = pod(annotations={names.PROCESSES_PER_GPU_ANNOTATION: "0"})
        assert "is not a whole number from 1 to 64" in refused(raw, DEFAULT)

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("gpumemory.dev/limit.", "8Gi"),
            ("gpumemory.dev/limit..train", "8Gi"),
            ("gpumemory.dev/limit.TRAIN", "8Gi"),
            ("gpumemory.dev/limit.train", "1Ei"),
            ("gpumemory.dev/limit", "8Gi 8Gi"),
            ("gpumemory.dev/limit", "0x200000000"),
            ("gpumemory.dev/limit", "١٠Gi"),
            ("gpumemory.dev/limit", "8Gi\n"),
        ],
    )
    def test_an_odd_annotation_is_refused_and_not_passed_over(self, key: str, value: str) -> None:
        raw = pod(annotations={key: value})
        assert key in refused(raw, policy(limits={"default": "8Gi", "max": "40Gi"}))

    def test_a_key_that_only_looks_like_ours_declares_nothing(self) -> None:
        keys = ("gpumemory.dev/limits", "gpumemory.dev/Limit", "evil.gpumemory.dev/limit")
        raw = pod(annotations=dict.fromkeys(keys, "80Gi"))
        assert frozen(admitted(raw, DEFAULT)) == ("Policy", gib(8))

    @pytest.mark.parametrize("name", [names.SHIM_CONTAINER, names.SIDECAR_CONTAINER])
    def test_a_container_of_ours_with_another_image_is_replaced(self, name: str) -> None:
        fake = cpu_container(name, image="evil", command=["sh"], restartPolicy="Always")
        assert admitted(pod(init=[fake]), DEFAULT) == admitted(pod(), DEFAULT)

    def test_a_resource_on_a_container_of_ours_does_not_stay(self) -> None:
        fake = cpu_container(names.SIDECAR_CONTAINER, limits={"example.com/fpga": "1"})
        assert admitted(pod(init=[fake]), DEFAULT) == admitted(pod(), DEFAULT)

    def test_the_shim_can_not_be_hidden_behind_another_volume(self) -> None:
        fakes = [
            {"name": "gpumem-shim", "mountPath": names.SHIM_PATH, "subPath": "empty"},
            {"name": "mine", "mountPath": f"{names.SHIM_PATH}//"},
            {"name": "mine", "mountPath": f"{names.SHIM_PATH}/gpumem_shim"},
        ]
        volumes = [{"name": "mine", "emptyDir": {}}, {"name": "gpumem-shim", "emptyDir": {}}]
        raw = pod(container(volumeMounts=fakes), volumes=volumes)
        plain = pod(volumes=[{"name": "mine", "emptyDir": {}}])
        mounts = containers_of(admitted(raw, DEFAULT))["train"]["volumeMounts"]
        assert mounts == containers_of(admitted(plain, DEFAULT))["train"]["volumeMounts"]
        assert {"name": "gpumem-shim", "emptyDir": {"sizeLimit": "16Mi"}} in (
            admitted(raw, DEFAULT)["spec"]["volumes"]
        )


class TestBadLuck:
    """Nothing of the author's is lost, and nothing refuses a pod that was right."""

    def test_a_pod_without_labels_annotations_env_and_volumes(self) -> None:
        raw = pod(
            {
                "name": "train",
                "resources": {"limits": {"nvidia.com/gpu": 1}},
                "env": None,
                "volumeMounts": None,
            }
        )
        raw["metadata"].update(labels=None, annotations=None)
        raw["spec"].update(volumes=None, initContainers=None)
        assert frozen(admitted(raw, DEFAULT)) == ("Policy", gib(8))

    def test_a_template_without_metadata(self) -> None:
        raw = pod()
        del raw["metadata"]
        stored = admitted(raw, DEFAULT)
        assert stored["metadata"]["labels"][names.MANAGED_LABEL] == "true"

    def test_an_init_container_that_runs_as_another_kind_of_sidecar(self) -> None:
        raw = pod(init=[cpu_container("vpn", restartPolicy="Always"), cpu_container("step")])
        stored = admitted(raw, DEFAULT)
        assert stored["spec"]["initContainers"][2:] == raw["spec"]["initContainers"]

    def test_a_mount_at_run_of_the_author(self) -> None:
        own = {"name": "run", "mountPath": "/run"}
        raw = pod(container(volumeMounts=[own]), volumes=[{"name": "run", "emptyDir": {}}])
        mounts = containers_of(admitted(raw, DEFAULT))["train"]["volumeMounts"]
        assert mounts[0] == own
        assert len(mounts) == 3

    def test_a_subfolder_of_run_gpumem_s_neighbour(self) -> None:
        own = {"name": "run", "mountPath": "/run/gpumem-data"}
        raw = pod(container(volumeMounts=[own]), volumes=[{"name": "run", "emptyDir": {}}])
        assert own in containers_of(admitted(raw, DEFAULT))["train"]["volumeMounts"]

    def test_a_limit_without_a_policy_or_tenant_is_nobody_s_business(self) -> None:
        raw = pod(container(memory="lots"), annotations={names.LIMIT_ANNOTATION: "lots"})
        assert review(raw).refusal is None
