"""The monitoring sidecar: a native sidecar with a token of its own and nothing of the pod's."""

from collections.abc import Mapping
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.api.pods import PodFacts
from gpumem_operator.api.values import Values
from gpumem_operator.injection.container import our_container

HEALTH_PORT: Final = 9433
_TOKEN_SECONDS: Final = 3600


def sidecar_container(facts: PodFacts, values: Values, *, interval_seconds: int) -> dict[str, Any]:
    """The container; it runs from its place in the init containers until the pod ends."""
    env = [
        _field("GPUMEM_POD_NAME", "metadata.name"),
        _field("GPUMEM_POD_NAMESPACE", "metadata.namespace"),
        _field("GPUMEM_POD_UID", "metadata.uid"),
        {"name": names.REPORT_INTERVAL_ENV, "value": str(interval_seconds)},
    ]
    if values.report.url:
        env.append({"name": names.REPORT_URL_ENV, "value": values.report.url})
    if values.report.ca:
        env.append({"name": names.REPORT_CA_ENV, "value": values.report.ca})
    container = our_container(
        names.SIDECAR_CONTAINER,
        values.sidecar,
        resources=values.sidecar.resources,
        command=["python", "-m", "gpumem_sidecar"],
        mounts=[
            {"name": names.RUN_VOLUME, "mountPath": names.RUN_PATH},
            {"name": names.TOKEN_VOLUME, "mountPath": names.TOKEN_PATH, "readOnly": True},
        ],
        env=env,
    )
    container["restartPolicy"] = "Always"
    if not _port_is_taken(facts):
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
