"""A policy's dataset cache: a volume in memory, beside what the author mounts."""

from __future__ import annotations

from typing import ClassVar

import pytest

from builders import admitted, container, containers_of, cpu_container, pod, policy, review
from gpumem_operator import names


class TestDatasetCache:
    """A tmpfs in every GPU container."""

    POLICY = policy(datasetCache={"mountPath": "/mnt/ramdisk", "sizeLimit": "16Gi"})
    MOUNT: ClassVar = {"name": names.DATASET_VOLUME, "mountPath": "/mnt/ramdisk"}

    def test_it_is_mounted_in_gpu_containers_alone(self) -> None:
        stored = admitted(pod(container(), cpu_container("web")), self.POLICY)
        assert self.MOUNT in containers_of(stored)["train"]["volumeMounts"]
        assert "volumeMounts" not in containers_of(stored)["web"]
        assert {
            "name": names.DATASET_VOLUME,
            "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"},
        } in stored["spec"]["volumes"]

    @pytest.mark.parametrize("path", ["/mnt/ramdisk", "/mnt/ramdisk/"])
    def test_data_that_the_author_has_there_comes_first(self, path: str) -> None:
        own = {"name": "data", "mountPath": path}
        raw = pod(container(volumeMounts=[own]), volumes=[{"name": "data", "emptyDir": {}}])
        mounts = containers_of(admitted(raw, self.POLICY))["train"]["volumeMounts"]
        assert own in mounts
        assert self.MOUNT not in mounts
        assert "no dataset cache there" in " ".join(review(raw, self.POLICY).warnings)

    def test_a_folder_in_it_stays(self) -> None:
        own = {"name": "data", "mountPath": "/mnt/ramdisk/fixed"}
        raw = pod(container(volumeMounts=[own]))
        mounts = containers_of(admitted(raw, self.POLICY))["train"]["volumeMounts"]
        assert own in mounts
        assert self.MOUNT in mounts

    def test_its_size_is_written_as_the_server_gives_it_back(self) -> None:
        record = policy(datasetCache={"mountPath": "/c", "sizeLimit": "1G"})
        volume = admitted(pod(), record)["spec"]["volumes"][-1]
        assert volume["emptyDir"]["sizeLimit"] == "1G"
