"""Our containers, volumes and fields of the pod."""

from __future__ import annotations

from typing import Any

import pytest

from builders import (
    CERTIFICATE,
    Raw,
    admitted,
    container,
    containers_of,
    cpu_container,
    env,
    init_names,
    native_sidecar,
    pod,
    policy,
    review,
    tenant,
    values,
    variables,
    volume_names,
)
from gpumem_operator import names

SHIM, SIDECAR = names.SHIM_CONTAINER, names.SIDECAR_CONTAINER


def test_the_shim_comes_first_and_the_sidecar_second_before_all_others() -> None:
    raw = pod(init=[native_sidecar("proxy", gpus=None), cpu_container("step")])
    assert init_names(admitted(raw, policy())) == [SHIM, SIDECAR, "proxy", "step"]


def test_what_another_webhook_put_before_them_is_behind_them_again() -> None:
    stored = admitted(pod(), policy())
    stored["spec"]["initContainers"].insert(0, cpu_container("mesh"))
    assert init_names(admitted(stored, policy())) == [SHIM, SIDECAR, "mesh"]


def test_our_containers_satisfy_the_restricted_pod_security_level() -> None:
    stored = containers_of(admitted(pod(), policy()))
    for name in (SHIM, SIDECAR):
        context = stored[name]["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert context["runAsNonRoot"] is True
        assert context["readOnlyRootFilesystem"] is True
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}


@pytest.mark.parametrize(("given", "user"), [({}, 65532), ({"runAsUser": 1000}, 1000)], ids=str)
def test_they_run_as_the_user_that_the_values_name(given: Raw, user: int) -> None:
    stored = containers_of(admitted(pod(), policy(), values=values(sidecar=given)))
    for name in (SHIM, SIDECAR):
        context = stored[name]["securityContext"]
        assert (context["runAsUser"], context["runAsGroup"]) == (user, user)


def test_by_null_the_cluster_chooses_the_user() -> None:
    stored = containers_of(admitted(pod(), policy(), values=values(sidecar={"runAsUser": None})))
    for name in (SHIM, SIDECAR):
        context = stored[name]["securityContext"]
        assert context.keys().isdisjoint({"runAsUser", "runAsGroup"})
        assert context["runAsNonRoot"] is True


def test_in_a_pod_that_runs_as_root_they_have_a_user_also_where_the_cluster_chooses() -> None:
    """The kubelet starts no container as root that says it is not."""
    raw = pod(securityContext={"runAsUser": 0})
    stored = containers_of(admitted(raw, policy(), values=values(sidecar={"runAsUser": None})))
    for name in (SHIM, SIDECAR):
        assert stored[name]["securityContext"]["runAsUser"] == 65532


def test_their_requests_are_their_limits_so_that_a_guaranteed_pod_stays_guaranteed() -> None:
    stored = containers_of(admitted(pod(), policy()))
    for name in (SHIM, SIDECAR):
        resources = stored[name]["resources"]
        assert resources["requests"] == resources["limits"]
        assert {"cpu", "memory"} == resources["limits"].keys()


def test_they_request_nothing_where_all_containers_share_what_the_pod_requests() -> None:
    budget = {"requests": {"cpu": "2", "memory": "8Gi"}, "limits": {"cpu": "2", "memory": "8Gi"}}
    stored = admitted(pod(resources=budget), policy())
    usual = containers_of(admitted(pod(), policy()))
    for name in (SHIM, SIDECAR):
        resources = containers_of(stored)[name]["resources"]
        assert resources == usual[name]["resources"] | {"requests": {"cpu": "0", "memory": "0"}}
    assert admitted(stored, policy()) == stored


def test_they_get_no_gpu_whatever_their_image_says() -> None:
    stored = admitted(pod(), policy())
    for name in (SHIM, SIDECAR):
        assert variables(stored, name)[names.VISIBLE_DEVICES_ENV] == "void"


def test_the_chart_may_give_nvml_to_the_sidecar_and_to_nobody_else() -> None:
    chart = values(sidecar={"toolkitNVML": "Enabled"})
    stored = admitted(pod(), policy(), values=chart)
    given = variables(stored, SIDECAR)
    assert given[names.VISIBLE_DEVICES_ENV] == "all"
    assert given[names.DRIVER_CAPABILITIES_ENV] == "utility"
    assert variables(stored, SHIM)[names.VISIBLE_DEVICES_ENV] == "void"
    assert not variables(stored, "train").keys() & {
        names.VISIBLE_DEVICES_ENV,
        names.DRIVER_CAPABILITIES_ENV,
    }
    assert admitted(stored, policy(), values=chart) == stored, "it is known again as ours"


def test_a_sidecar_of_ones_own_that_sees_devices_is_replaced_by_ours() -> None:
    own = {"name": SIDECAR, "image": "mine", "env": [
        {"name": names.VISIBLE_DEVICES_ENV, "value": "all"}
    ]}  # fmt: skip
    raw = pod()
    raw["spec"]["initContainers"] = [own]
    stored = admitted(raw, policy())
    assert containers_of(stored)[SIDECAR]["image"] != "mine"
    assert variables(stored, SIDECAR)[names.VISIBLE_DEVICES_ENV] == "void"


def test_both_mount_something_where_the_api_server_would_add_the_pod_s_token() -> None:
    stored = containers_of(admitted(pod(), policy()))
    for name in (SHIM, SIDECAR):
        paths = [mount["mountPath"] for mount in stored[name]["volumeMounts"]]
        assert names.TOKEN_PATH in paths


def test_the_sidecar_has_a_token_for_reports_alone() -> None:
    stored = admitted(pod(), policy())
    volume = next(v for v in stored["spec"]["volumes"] if v["name"] == names.TOKEN_VOLUME)
    token = volume["projected"]["sources"][0]["serviceAccountToken"]
    assert token["audience"] == names.TOKEN_AUDIENCE


def test_the_sidecar_knows_where_to_report() -> None:
    chart = values(report={"url": "https://reports.example:8443", "ca": CERTIFICATE})
    found = variables(admitted(pod(), policy(), values=chart), SIDECAR)
    assert found[names.REPORT_URL_ENV] == "https://reports.example:8443"
    assert found[names.REPORT_CA_ENV] == CERTIFICATE


def test_offline_it_has_no_ca() -> None:
    assert names.REPORT_CA_ENV not in variables(admitted(pod(), policy()), SIDECAR)


@pytest.mark.parametrize(
    ("chart", "said", "expected"),
    [
        ("Sidecar", None, True),
        ("NodeAgent", None, False),
        ("NodeAgent", "Sidecar", True),
        ("Sidecar", "NodeAgent", False),
        ("Sidecar", "None", False),
    ],
)
def test_the_policy_says_how_use_is_measured_and_the_chart_where_it_does_not(
    chart: str, said: str | None, expected: bool
) -> None:
    monitoring = {"mode": said} if said else {}
    stored = admitted(
        pod(), policy(monitoring=monitoring), values=values(monitoring={"mode": chart})
    )
    assert (SIDECAR in containers_of(stored)) is expected
    assert (names.TOKEN_VOLUME in volume_names(stored)) is expected
    assert (stored["spec"].get("shareProcessNamespace") is True) is expected


def test_labels_say_that_the_pod_is_managed_and_by_which_policy() -> None:
    stored = admitted(pod(labels={"app": "x"}), policy("research"))
    assert stored["metadata"]["labels"] == {
        "app": "x",
        names.MANAGED_LABEL: "true",
        names.POLICY_LABEL: "research",
    }


def test_a_forged_policy_label_goes_where_no_policy_decides() -> None:
    forged = {names.POLICY_LABEL: "other", names.MANAGED_LABEL: "false"}
    stored = admitted(pod(labels=forged), tenant())
    assert stored["metadata"]["labels"] == {names.MANAGED_LABEL: "true"}


def test_the_fingerprint_of_another_policy_goes_where_none_decides() -> None:
    forged = {names.POLICY_HASH_ANNOTATION: "0", "mine": "x"}
    found = admitted(pod(annotations=forged), tenant())["metadata"]["annotations"]
    assert found.keys() == {"mine", names.SUMMARY_ANNOTATION}


def test_annotations_tell_people_what_happened_and_which_policy_it_was() -> None:
    record = policy(limits={"default": "8Gi"})
    assert record.spec is not None
    found = admitted(pod(container(gpus=2)), record)["metadata"]["annotations"]
    summary = "policy ml/research (Active): train 8Gi on each of 2 GPUs (Policy)"
    assert found[names.SUMMARY_ANNOTATION] == summary
    assert found[names.POLICY_HASH_ANNOTATION] == record.spec.pod_fingerprint


def test_the_author_s_containers_volumes_and_fields_stay() -> None:
    web = cpu_container("web", env=env(A="b"), volumeMounts=[{"name": "d", "mountPath": "/d"}])
    fields: dict[str, Any] = {
        "volumes": [{"name": "d", "emptyDir": {}}],
        "nodeSelector": {"a": "b"},
        "tolerations": [{"operator": "Exists"}],
        "serviceAccountName": "me",
        "schedulingGates": [{"name": "example.com/other"}],
    }
    raw = pod(container(), web, init=[cpu_container("step")], **fields)
    stored = admitted(raw, policy())
    assert containers_of(stored)["web"] == web
    assert containers_of(stored)["step"] == cpu_container("step")
    assert stored["spec"]["volumes"][0] == fields.pop("volumes")[0]
    assert {key: stored["spec"][key] for key in fields} == fields


class TestReservedNames:
    """Whoever uses our names gets ours in their place."""

    def test_init_containers_are_replaced(self) -> None:
        fake = cpu_container(SIDECAR, image="evil", restartPolicy="Always", command=["sleep"])
        stored = admitted(pod(init=[cpu_container(SHIM), cpu_container("x"), fake]), policy())
        assert stored == admitted(pod(init=[cpu_container("x")]), policy())

    def test_they_are_removed_where_we_put_none(self) -> None:
        stored = admitted(pod(init=[cpu_container(SHIM, image="evil")]), tenant())
        assert init_names(stored) == []

    @pytest.mark.parametrize("name", sorted(names.OUR_VOLUMES))
    def test_volumes_are_replaced_or_removed(self, name: str) -> None:
        fake = {"name": name, "hostPath": {"path": "/"}}
        stored = admitted(pod(volumes=[fake]), policy())
        assert fake not in stored["spec"]["volumes"]
        assert volume_names(stored) == volume_names(admitted(pod(), policy()))

    def test_a_container_that_someone_changed_is_put_right(self) -> None:
        stored = admitted(pod(), policy())
        stored["spec"]["initContainers"][1]["image"] = "evil"
        stored["spec"]["initContainers"][1]["env"].append({"name": "A", "value": "b"})
        assert admitted(stored, policy()) == admitted(pod(), policy())

    def test_what_the_server_s_own_admission_decided_for_it_stays(self) -> None:
        stored = admitted(pod(), policy())
        for ours in stored["spec"]["initContainers"]:
            ours["imagePullPolicy"] = "Always"
            ours["resources"]["limits"]["ephemeral-storage"] = "1Gi"
            ours["resources"]["requests"]["ephemeral-storage"] = "1Gi"
        assert review(stored, policy()).operations == ()

    def test_so_does_the_user_that_the_cluster_gave_it(self) -> None:
        chart = values(sidecar={"runAsUser": None})
        stored = admitted(pod(), policy(), values=chart)
        for ours in stored["spec"]["initContainers"]:
            ours["securityContext"] |= {"runAsUser": 1000700000, "runAsGroup": 1000700000}
        assert review(stored, policy(), values=chart).operations == ()

    @pytest.mark.parametrize("changed", [{"runAsUser": 0}, {"privileged": True}], ids=str)
    def test_but_nothing_else_of_how_it_runs(self, changed: Raw) -> None:
        chart = values(sidecar={"runAsUser": None})
        stored = admitted(pod(), policy(), values=chart)
        stored["spec"]["initContainers"][1]["securityContext"] |= changed
        assert admitted(stored, policy(), values=chart) == admitted(pod(), policy(), values=chart)

    def test_where_the_values_name_a_user_it_is_that_one(self) -> None:
        stored = admitted(pod(), policy())
        stored["spec"]["initContainers"][1]["securityContext"]["runAsUser"] = 1000700000
        assert admitted(stored, policy()) == admitted(pod(), policy())

    def test_but_no_resource_that_counts(self) -> None:
        stored = admitted(pod(), policy())
        stored["spec"]["initContainers"][1]["resources"]["limits"]["example.com/fpga"] = "1"
        assert admitted(stored, policy()) == admitted(pod(), policy())


def test_500_containers_are_decided_with_few_words() -> None:
    raw = pod(*(container(f"c{i}", env=env(A="b")) for i in range(500)))
    record = policy(limits={"default": "8Gi"})
    verdict = review(raw, record)
    assert verdict.refusal is None
    assert len(verdict.warnings) < 20
    assert len(admitted(raw, record)["metadata"]["annotations"][names.SUMMARY_ANNOTATION]) < 1000


def test_every_warning_is_one_that_kubectl_shows_whole() -> None:
    entries = [
        *env(PYTORCH_CUDA_ALLOC_CONF=",".join(f"{'k' * 300}{i}:1" for i in range(40))),
        *env(TF_FORCE_GPU_ALLOW_GROWTH="x" * 999),
    ]
    raw = pod(container("c" * 63, env=entries, envFrom=[{"secretRef": {"name": "s"}}]))
    warned = review(raw, policy(limits={"max": "40Gi"})).warnings
    assert all(len(text) <= 256 for text in warned)
    assert sum(len(text) for text in warned) <= 4352
    assert warned[-1].endswith("more warnings")
