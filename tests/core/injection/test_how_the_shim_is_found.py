"""PYTHONPATH leads to the shim; what the author or the image had in it stays behind it."""

from __future__ import annotations

from typing import Any

import pytest

from builders import (
    Raw,
    admitted,
    container,
    containers_of,
    cpu_container,
    env,
    from_secret,
    pod,
    policy,
    review,
    variables,
)
from gpumem_operator import names
from gpumem_operator.api.records import PolicyRecord

SHIM = names.SHIM_PATH
HINT = names.PYTHON_PATH_ORIGIN_ENV
HIDDEN = policy(injection={"imagePythonPath": "/opt/app:/opt/lib"})


def path_of(raw: Raw, *, policy_record: PolicyRecord | None = None) -> str | None:
    return variables(admitted(raw, policy_record or policy()))[names.PYTHON_PATH_ENV]


def test_it_is_added_where_there_is_none_with_a_hint_and_without_a_warning() -> None:
    found = variables(admitted(pod(), policy()))
    assert found[names.PYTHON_PATH_ENV] == SHIM
    assert found[HINT] == "Added"
    assert review(pod(), policy()).warnings == ()


def test_the_policy_may_say_what_the_images_have() -> None:
    found = variables(admitted(pod(), HIDDEN))
    assert found[names.PYTHON_PATH_ENV] == f"{SHIM}:/opt/app:/opt/lib"
    assert HINT not in found


def test_the_pod_s_annotation_says_it_better() -> None:
    raw = pod(annotations={names.PYTHON_PATH_ANNOTATION: "/srv"})
    assert path_of(raw, policy_record=HIDDEN) == f"{SHIM}:/srv"


@pytest.mark.parametrize("written", ["/app", "/app:/lib", "$(HOME)/lib", ":/app", "/app:", "::"])
def test_the_author_s_own_stays_behind_it_with_its_empty_parts(written: str) -> None:
    raw = pod(container(env=env(PYTHONPATH=written)))
    stored = admitted(raw, policy())
    assert variables(stored)[names.PYTHON_PATH_ENV] == f"{SHIM}:{written}"
    assert HINT not in variables(stored)
    assert "hides" not in " ".join(review(raw, policy()).warnings)


def test_the_author_s_own_hides_the_image_s_without_us_as_well() -> None:
    raw = pod(container(env=env(PYTHONPATH="/app")))
    assert path_of(raw, policy_record=HIDDEN) == f"{SHIM}:/app"


def test_an_empty_one_of_the_author_adds_no_working_directory() -> None:
    raw = pod(container(env=env(PYTHONPATH="")))
    assert path_of(raw) == SHIM
    assert HINT not in variables(admitted(raw, policy()))


def test_a_folder_whose_name_begins_like_ours_is_another_folder() -> None:
    written = f"{SHIM}-extra:/app"
    assert path_of(pod(container(env=env(PYTHONPATH=written)))) == f"{SHIM}:{written}"


def test_a_reference_can_not_be_extended_so_the_container_has_no_shim() -> None:
    raw = pod(container(env=[from_secret("PYTHONPATH")]), container("other"))
    stored = admitted(raw, policy())
    assert variables(stored)[names.PYTHON_PATH_ENV] is None
    assert not containers_of(stored)["train"].get("volumeMounts")
    assert containers_of(stored)["other"]["volumeMounts"]
    warned = " ".join(review(raw, policy()).warnings)
    assert "container train: PYTHONPATH comes from a reference" in warned


def test_where_no_container_can_have_the_shim_nothing_copies_it() -> None:
    stored = admitted(pod(container(env=[from_secret("PYTHONPATH")])), policy())
    assert names.SHIM_CONTAINER not in containers_of(stored)
    assert names.SHIM_VOLUME not in [v["name"] for v in stored["spec"]["volumes"]]


def test_a_policy_may_do_without_the_shim() -> None:
    stored = admitted(pod(), policy(injection={"shim": "Disabled"}))
    assert names.PYTHON_PATH_ENV not in variables(stored)
    assert names.SHIM_CONTAINER not in containers_of(stored)
    assert "volumeMounts" not in containers_of(stored)["train"]


def test_containers_without_a_gpu_do_not_get_it() -> None:
    stored = admitted(pod(container(), cpu_container("web")), policy())
    assert containers_of(stored)["web"] == cpu_container("web")


def test_init_containers_with_a_gpu_get_it() -> None:
    stored = admitted(pod(init=[container("warm")]), policy())
    assert variables(stored, "warm")[names.PYTHON_PATH_ENV] == SHIM
    assert variables(stored, "warm")[names.CONTAINER_ENV] == "warm"


class TestMounts:
    """The shim read-only at its place, the run volume beside it, and nothing over either."""

    OURS = (
        {"name": "gpumem-run", "mountPath": "/run/gpumem"},
        {"name": "gpumem-shim", "mountPath": "/opt/gpumem/shim", "readOnly": True},
    )

    def mounts_with(self, *mounts: Raw, **spec: Any) -> list[Raw]:
        raw = pod(container(volumeMounts=list(mounts)), **spec)
        found: list[Raw] = containers_of(admitted(raw, policy()))["train"]["volumeMounts"]
        return found

    def test_ours_come_after_the_author_s(self) -> None:
        own = {"name": "data", "mountPath": "/data"}
        assert self.mounts_with(own) == [own, *self.OURS]

    @pytest.mark.parametrize(
        "path",
        [
            "/opt/gpumem/shim",
            "/opt/gpumem/shim/",
            "//opt//gpumem/./shim",
            "opt/gpumem/shim",
            "/opt/x/../gpumem/shim",
            "/opt/gpumem/shim/gpumem_shim",
            "/opt/gpumem/shim/sitecustomize.py",
            "/run/gpumem",
            "/run/gpumem/train/",
        ],
    )
    def test_the_author_s_mount_over_or_in_ours_goes(self, path: str) -> None:
        assert self.mounts_with({"name": "evil", "mountPath": path}) == list(self.OURS)

    @pytest.mark.parametrize(
        "mount",
        [
            {"name": "gpumem-shim", "mountPath": "/elsewhere"},
            {"name": "gpumem-shim", "mountPath": "/opt/gpumem/shim"},
            {"name": "gpumem-shim", "mountPath": "/opt/gpumem/shim", "subPath": "x"},
            {"name": "gpumem-run", "mountPath": "/run/gpumem", "subPathExpr": "$(A)"},
            {"name": "gpumem-token", "mountPath": "/token"},
            {"name": "gpumem-no-token", "mountPath": "/token"},
        ],
    )
    def test_a_mount_of_our_volumes_that_is_not_ours_goes(self, mount: Raw) -> None:
        assert self.mounts_with(mount) == list(self.OURS)

    def test_it_goes_from_containers_without_a_gpu_too(self) -> None:
        web = cpu_container("web", volumeMounts=[{"name": "gpumem-run", "mountPath": "/x"}])
        stored = admitted(pod(container(), web), policy())
        assert containers_of(stored)["web"]["volumeMounts"] == []

    @pytest.mark.parametrize("path", ["/", "/opt", "/opt/gpumem/", "/run", "/opt/other"])
    def test_a_folder_above_ours_stays_because_ours_lie_over_it(self, path: str) -> None:
        own = {"name": "tools", "mountPath": path}
        assert self.mounts_with(own) == [own, *self.OURS]

    @pytest.mark.parametrize(
        ("mount", "volume"),
        [
            ({"readOnly": True}, {"emptyDir": {}}),
            ({}, {"configMap": {"name": "tools"}}),
            ({}, {"secret": {"secretName": "tools"}}),
            ({}, {"image": {"reference": "tools:1"}}),
            ({}, {"persistentVolumeClaim": {"claimName": "tools", "readOnly": True}}),
        ],
    )
    @pytest.mark.parametrize("path", ["/opt", "/opt/gpumem/", "run"])
    def test_a_read_only_folder_above_ours_costs_the_shim_and_not_the_container(
        self, path: str, mount: Raw, volume: Raw
    ) -> None:
        """The runtime could not make the folder to mount ours on, and would start nothing."""
        own = {"name": "tools", "mountPath": path, **mount}
        raw = pod(container(volumeMounts=[own]), volumes=[{"name": "tools", **volume}])
        stored = admitted(raw, policy())
        assert containers_of(stored)["train"]["volumeMounts"] == [own]
        assert names.PYTHON_PATH_ENV not in variables(stored)
        assert "has no room for the shim" in " ".join(review(raw, policy()).warnings)

    def test_a_read_only_folder_elsewhere_does_not_matter(self) -> None:
        own = {"name": "tools", "mountPath": "/opt/tools", "readOnly": True}
        assert self.mounts_with(own) == [own, *self.OURS]


def test_it_lowers_servers_only_where_the_policy_says_so() -> None:
    lowering = policy(injection={"serverArgs": "Enabled"})
    assert variables(admitted(pod(), lowering))[names.SERVER_ARGS_ENV] == "Enabled"
    own = pod(container(env=env(**{names.SERVER_ARGS_ENV: "Enabled"})))
    assert names.SERVER_ARGS_ENV not in variables(admitted(own, policy()))
