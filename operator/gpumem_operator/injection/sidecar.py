"""The monitoring sidecar: a native sidecar with a token of its own and nothing of the pod's."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.api.pods import PodFacts
from gpumem_operator.api.values import ReportValues, SidecarValues, Values
from gpumem_operator.injection.container import our_container

HEALTH_PORT: Final = 9433
_TOKEN_SECONDS: Final = 3600


def sidecar_container(
    facts: PodFacts, values: Values, *, interval_seconds: int, shares_processes: bool
) -> Mapping[str, Any]:
    """The container; it runs from its place in the init containers until the pod ends.

    `shares_processes` is whether the pod's processes are shared for its sake.
    """
    return _container(
        values.sidecar,
        values.report,
        interval_seconds=interval_seconds,
        marked=shares_processes and not facts.share_process_namespace,
        probed=not _port_is_taken(facts),
        namespace_of_pod=not facts.host_pid
        and (shares_processes or bool(facts.share_process_namespace)),
        requests=not facts.pod_resources,
        as_root=facts.as_root,
    )


@lru_cache(maxsize=64)
def _container(
    sidecar: SidecarValues,
    report: ReportValues,
    *,
    interval_seconds: int,
    marked: bool,
    probed: bool,
    namespace_of_pod: bool,
    requests: bool,
    as_root: bool,
) -> Mapping[str, Any]:
    env = [
        _field("GPUMEM_POD_NAME", "metadata.name"),
        _field("GPUMEM_POD_NAMESPACE", "metadata.namespace"),
        _field("GPUMEM_POD_UID", "metadata.uid"),
        {"name": names.REPORT_INTERVAL_ENV, "value": str(interval_seconds)},
    ]
    if namespace_of_pod:
        # With hostPID the namespace is the node's, and who is in it may be of any pod.
        env.append({"name": names.PID_NAMESPACE_ENV, "value": "Pod"})
    if report.url:
        env.append({"name": names.REPORT_URL_ENV, "value": report.url})
    if report.ca:
        env.append({"name": names.REPORT_CA_ENV, "value": report.ca})
    if marked:
        # When the pod is created again under another policy, its author did not ask for it.
        env.append({"name": names.INJECTED_ENV, "value": names.SHARED_PROCESSES_MARK})
    toolkit = sidecar.toolkit_nvml == "Enabled"
    if toolkit:
        # NVML, and not the library that programs compute with.
        env.append({"name": names.DRIVER_CAPABILITIES_ENV, "value": "utility"})
    container = our_container(
        names.SIDECAR_CONTAINER,
        sidecar,
        resources=sidecar.resources,
        command=["python", "-m", "gpumem_sidecar"],
        mounts=[
            {"name": names.RUN_VOLUME, "mountPath": names.RUN_PATH},
            {"name": names.TOKEN_VOLUME, "mountPath": names.TOKEN_PATH, "readOnly": True},
        ],
        env=env,
        visible_devices="all" if toolkit else "void",
        requests=requests,
        as_root=as_root,
    )
    container["restartPolicy"] = "Always"
    if probed:
        container["livenessProbe"] = _probe()
    return container


def _port_is_taken(facts: PodFacts) -> bool:
    """On the host's network, and beside an author's own port, a probe would ask someone else."""
    return facts.host_network or any(
        port.get("containerPort") == HEALTH_PORT
        for container in facts.containers
        for port in container.raw.get("ports") or ()
    )


def _probe() -> dict[str, Any]:
    return {
        "httpGet": {"path": "/healthz", "port": HEALTH_PORT, "scheme": "HTTP"},
        "initialDelaySeconds": 10,
        "periodSeconds": 60,
        "timeoutSeconds": 5,
        "successThreshold": 1,
        "failureThreshold": 3,
    }


def _field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def token_volume() -> Mapping[str, Any]:
    """A token that is good for reports alone, and ends with the pod."""
    source = {
        "serviceAccountToken": {
            "audience": names.TOKEN_AUDIENCE,
            "expirationSeconds": _TOKEN_SECONDS,
            "path": "token",
        }
    }
    return {"name": names.TOKEN_VOLUME, "projected": {"defaultMode": 420, "sources": [source]}}
