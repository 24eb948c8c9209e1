"""The DaemonSet of the agent: what it may do, how it gets NVML, and whom it reports to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import yaml

from builders import CERTIFICATE
from chart_rendering import NAMESPACE, RELEASE, Object, of_kind, refusal, render
from devcluster.installation import Installation
from gpumem_operator import names
from gpumem_sidecar import settings as agent_settings
from gpumem_sidecar.sampler import EMPTY_DIR

NAME = f"{RELEASE}-agent"
WAYS = ("RuntimeClass", "CDIAnnotation", "HostPath")
PROVIDED = {"mode": "Provided", "secretName": "mine", "caBundle": CERTIFICATE}


def manifests(driver: dict[str, Any] | None = None, **values: Any) -> list[Object]:
    return render({"agent": {"enabled": True, "driver": driver or {}}, **values})


def template(driver: dict[str, Any] | None = None, **values: Any) -> Object:
    [found] = of_kind(manifests(driver, **values), "DaemonSet")
    spec: Object = found["spec"]["template"]
    return spec


def container(driver: dict[str, Any] | None = None, **values: Any) -> Object:
    [found] = template(driver, **values)["spec"]["containers"]
    only: Object = found
    return only


def variables(found: Object) -> dict[str, str]:
    return {one["name"]: one["value"] for one in found["env"]}


def volume(name: str, **values: Any) -> Object:
    [found] = [one for one in template(**values)["spec"]["volumes"] if one["name"] == name]
    only: Object = found
    return only


# Whether there is one -----------------------------------------------------------------------


def test_there_is_none_unless_it_is_asked_for() -> None:
    assert of_kind(render(), "DaemonSet") == []
    assert NAME not in {one["metadata"]["name"] for one in of_kind(render(), "ServiceAccount")}


def test_the_chart_refuses_to_leave_measurement_to_agents_that_are_not_there() -> None:
    assert "agent.enabled" in refusal({"monitoring": {"mode": "NodeAgent"}})


def test_it_is_refused_where_it_could_report_to_nobody() -> None:
    elsewhere = {"operator": {"deploy": False}, "webhook": {"url": "https://127.0.0.1:9443"}}
    assert "report.url" in refusal({**elsewhere, "agent": {"enabled": True}})


# What it may do -----------------------------------------------------------------------------


def test_its_account_may_do_nothing_at_the_api_server_and_has_no_token_for_it() -> None:
    bound = [
        subject["name"]
        for binding in of_kind(manifests(), "RoleBinding", "ClusterRoleBinding")
        for subject in binding["subjects"]
    ]
    [account] = [
        one for one in of_kind(manifests(), "ServiceAccount") if one["metadata"]["name"] == NAME
    ]
    assert NAME not in bound
    assert account["automountServiceAccountToken"] is False
    assert template()["spec"]["automountServiceAccountToken"] is False


def test_its_token_is_good_for_reports_alone_and_its_account_is_the_one_the_leader_knows() -> None:
    [source] = volume("token")["projected"]["sources"]
    assert source["serviceAccountToken"]["audience"] == names.TOKEN_AUDIENCE
    [mount] = [one for one in container()["volumeMounts"] if one["name"] == "token"]
    assert f"{mount['mountPath']}/token" == agent_settings.DEFAULT_TOKEN_FILE
    assert template()["spec"]["serviceAccountName"] == NAME
    [controller] = [
        one for one in of_kind(render(), "Deployment") if "controller" in one["metadata"]["name"]
    ]
    arguments = controller["spec"]["template"]["spec"]["containers"][0]["args"]
    assert f"--agent-account={NAME}" in arguments


@pytest.mark.parametrize("way", ["RuntimeClass", "CDIAnnotation"])
def test_with_nvidias_toolkit_it_has_no_privilege_beyond_root_and_the_nodes_process_ids(
    way: str,
) -> None:
    pod = template({"from": way})["spec"]
    assert container({"from": way})["securityContext"] == {
        "readOnlyRootFilesystem": True,
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["hostPID"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not pod.keys() & {"hostNetwork", "hostIPC"}


def test_it_reads_two_folders_of_the_kubelet_and_cgroups_and_nothing_else_of_the_node() -> None:
    assert paths_of_the_node() == {
        "pods": "/var/lib/kubelet/pods",
        "pod-resources": "/var/lib/kubelet/pod-resources",
        "cgroups": "/sys/fs/cgroup",
    }
    mounts = {one["name"]: one for one in container()["volumeMounts"]}
    assert all(mount["readOnly"] is True for mount in mounts.values())
    # Else volumes of ended pods would stay mounted in the agent, and their disks in use.
    assert mounts["pods"]["mountPropagation"] == "HostToContainer"


def paths_of_the_node(*, reads: Sequence[str] = ("Driver",)) -> dict[str, str]:
    values = {"agent": {"enabled": True, "readsLimitsOf": list(reads)}}
    [found] = of_kind(render(values), "DaemonSet")
    volumes = found["spec"]["template"]["spec"]["volumes"]
    return {one["name"]: one["hostPath"]["path"] for one in volumes if "hostPath" in one}


def capabilities(*, reads: Sequence[str]) -> Any:
    values = {"agent": {"enabled": True, "readsLimitsOf": list(reads)}}
    [found] = of_kind(render(values), "DaemonSet")
    [only] = found["spec"]["template"]["spec"]["containers"]
    return only["securityContext"].get("capabilities")


def test_only_for_the_limits_of_the_driver_it_gets_the_cgroups_of_the_node() -> None:
    assert "cgroups" not in paths_of_the_node(reads=())
    assert "cgroups" not in paths_of_the_node(reads=("MPS",))
    [mount] = [one for one in container()["volumeMounts"] if one["name"] == "cgroups"]
    assert mount["mountPath"] == agent_settings.DEFAULT_CGROUP_PATH
    assert (mount["readOnly"], mount["recursiveReadOnly"]) == (True, "IfPossible")


def test_only_for_the_limits_of_mps_it_may_look_into_processes() -> None:
    assert capabilities(reads=("Driver",)) == {"drop": ["ALL"]}
    assert capabilities(reads=("MPS",)) == {
        "drop": ["ALL"],
        "add": ["SYS_PTRACE", "DAC_READ_SEARCH"],
    }


def test_another_enforcer_is_refused() -> None:
    assert "readsLimitsOf" in refusal({"agent": {"enabled": True, "readsLimitsOf": ["Framework"]}})


def test_another_folder_of_the_kubelet_is_found_at_the_usual_place() -> None:
    moved = {"agent": {"enabled": True, "kubeletFolder": "/data/kubelet"}}
    [found] = of_kind(render(moved), "DaemonSet")
    pod = found["spec"]["template"]["spec"]
    paths = [one["hostPath"]["path"] for one in pod["volumes"] if "hostPath" in one]
    assert paths[:2] == ["/data/kubelet/pods", "/data/kubelet/pod-resources"]
    mounted = [one["mountPath"] for one in container()["volumeMounts"]]
    assert agent_settings.DEFAULT_PODS_PATH in mounted
    assert agent_settings.DEFAULT_POD_RESOURCES.rpartition("/")[0] in mounted


def test_it_looks_for_state_files_in_the_volume_that_admission_adds() -> None:
    assert EMPTY_DIR.rpartition("/")[2] == names.RUN_VOLUME


# How it gets NVML -----------------------------------------------------------------------------


def test_the_runtime_class_brings_nvml_and_no_library_to_compute_with() -> None:
    found = variables(container())
    assert template()["spec"]["runtimeClassName"] == "nvidia"
    assert found["NVIDIA_VISIBLE_DEVICES"] == "all"
    assert found["NVIDIA_DRIVER_CAPABILITIES"] == "utility"


def test_the_default_runtime_may_bring_it_too() -> None:
    assert "runtimeClassName" not in template({"runtimeClassName": ""})["spec"]


def test_the_toolkits_plugin_is_asked_by_an_annotation() -> None:
    found = template({"from": "CDIAnnotation"})
    assert found["metadata"]["annotations"] == {
        "nvidia.cdi.k8s.io/container.agent": "management.nvidia.com/gpu=all"
    }
    assert "runtimeClassName" not in found["spec"]
    assert variables(container({"from": "CDIAnnotation"}))["NVIDIA_VISIBLE_DEVICES"] == "void"


def test_only_with_a_file_of_the_node_it_is_privileged() -> None:
    driver = {"from": "HostPath", "libraryPath": "/usr/lib64/libnvidia-ml.so.1"}
    found = container(driver)
    [mount] = [one for one in found["volumeMounts"] if one["name"] == "nvml"]
    folder, _, name = mount["mountPath"].rpartition("/")

    assert found["securityContext"]["privileged"] is True
    assert variables(found)["LD_LIBRARY_PATH"] == folder
    assert name == "libnvidia-ml.so.1", "the name by which pynvml looks for it"
    assert {"path": "/usr/lib64/libnvidia-ml.so.1", "type": "File"} in [
        one.get("hostPath") for one in template(driver)["spec"]["volumes"]
    ]
    assert "privileged: true" not in yaml.safe_dump(template())


# Where it runs, and how it is replaced ----------------------------------------------------------


def test_it_runs_on_gpu_nodes_with_their_taints() -> None:
    pod = template()["spec"]
    assert pod["nodeSelector"] == {"nvidia.com/gpu.deploy.client": "true"}
    assert pod["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]


def test_the_documented_way_to_another_label_leaves_none_of_the_default() -> None:
    labels = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.deploy.client": None}
    [found] = of_kind(render({"agent": {"enabled": True, "nodeSelector": labels}}), "DaemonSet")
    selector = found["spec"]["template"]["spec"]["nodeSelector"]
    assert selector == {"nvidia.com/gpu.present": "true"}


def test_it_is_guaranteed_its_resources_and_probed() -> None:
    found = container()
    assert found["resources"]["requests"] == found["resources"]["limits"]
    [port] = found["ports"]
    assert port["containerPort"] == agent_settings.DEFAULT_HEALTH_PORT
    for probe in ("livenessProbe", "readinessProbe"):
        assert found[probe]["httpGet"] == {"path": "/healthz", "port": port["name"]}


# Whom it reports to -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("certificates", "secret"),
    [({}, f"{RELEASE}-webhook-cert"), (PROVIDED, "mine")],
    ids=["Managed", "Provided"],
)
def test_it_trusts_the_ca_of_the_operator_and_never_sees_its_key(
    certificates: dict[str, Any], secret: str
) -> None:
    assert volume("ca", certificates=certificates)["secret"] == {
        "secretName": secret,
        "items": [{"key": "ca.crt", "path": "ca.crt"}],
    }
    [mount] = [one for one in container()["volumeMounts"] if one["name"] == "ca"]
    file = variables(container())[agent_settings.REPORT_CA_FILE_ENV]
    assert file == f"{mount['mountPath']}/ca.crt"


def test_another_address_comes_with_its_own_ca() -> None:
    found = variables(container(report={"url": "https://elsewhere/v1/reports", "ca": CERTIFICATE}))
    assert found[agent_settings.REPORT_URL_ENV] == "https://elsewhere/v1/reports"
    assert found[agent_settings.REPORT_CA_ENV] == CERTIFICATE
    assert agent_settings.REPORT_CA_FILE_ENV not in found


def test_its_settings_are_those_that_its_program_reads() -> None:
    found = variables(container())
    read = agent_settings.read(["--agent"], found)
    assert (read.interval_seconds, read.report_url) == (5, found[agent_settings.REPORT_URL_ENV])


# A real API server -------------------------------------------------------------------------------


@pytest.mark.cluster
@pytest.mark.parametrize("reads", [[], ["Driver", "MPS"]], ids=["least", "most"])
@pytest.mark.parametrize("way", WAYS)
def test_a_real_api_server_takes_it(bare: Installation, way: str, reads: list[str]) -> None:
    agent = {"enabled": True, "driver": {"from": way}, "readsLimitsOf": reads}
    [found] = of_kind(render({"agent": agent}), "DaemonSet")
    dry_run = ["apply", "--dry-run=server", "--validate=strict", "-n", NAMESPACE, "-f", "-"]
    answer = bare.cluster.kubectl(*dry_run, input=yaml.safe_dump(found))
    assert "created" in answer.stdout
