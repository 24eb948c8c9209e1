"""Fields of pods that Kubernetes does not know: it drops them, and what they said is not there.

`resource:` for `resources:` makes of a GPU pod one that asks for nothing.
"""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from gpumem_operator.api.pods import KINDS

CONTAINER_FIELDS: Final = frozenset(
    {
        "args", "command", "env", "envFrom", "image", "imagePullPolicy", "lifecycle",
        "livenessProbe", "name", "ports", "readinessProbe", "resizePolicy", "resources",
        "restartPolicy", "restartPolicyRules", "securityContext", "startupProbe", "stdin",
        "stdinOnce", "terminationMessagePath", "terminationMessagePolicy", "tty", "volumeDevices",
        "volumeMounts", "workingDir",
    }
)  # fmt: skip
"""Of a v1 Container, Kubernetes 1.36."""
EPHEMERAL_FIELDS: Final = CONTAINER_FIELDS | {"targetContainerName"}
RESOURCES_FIELDS: Final = frozenset({"claims", "limits", "requests"})
POD_FIELDS: Final = frozenset(
    {
        "activeDeadlineSeconds", "affinity", "automountServiceAccountToken", "containers",
        "dnsConfig", "dnsPolicy", "enableServiceLinks", "ephemeralContainers",
        "evictionResponders", "hostAliases", "hostIPC", "hostNetwork", "hostPID", "hostUsers",
        "hostname", "hostnameOverride", "imagePullSecrets", "initContainers", "nodeName",
        "nodeSelector", "os", "overhead", "preemptionPolicy", "priority", "priorityClassName",
        "readinessGates", "resourceClaims", "resources", "restartPolicy", "runtimeClassName",
        "schedulerName", "schedulingGates", "schedulingGroup", "securityContext",
        "serviceAccount", "serviceAccountName", "setHostnameAsFQDN", "shareProcessNamespace",
        "subdomain", "terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints",
        "volumes",
    }
)  # fmt: skip
"""Of a v1 PodSpec, Kubernetes 1.36."""
_NEAR: Final = 0.75


def unknown_fields(pod: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each; of the pod's spec only for those that look like a known one, because a
    newer Kubernetes adds some there with every release."""
    spec = pod.get("spec") or {}
    for field in _unknown(spec, POD_FIELDS):
        if nearest(field, POD_FIELDS) is not None:
            yield _sentence(f"spec.{field}", field, POD_FIELDS)
    for kind in KINDS:
        known = EPHEMERAL_FIELDS if kind == "ephemeralContainers" else CONTAINER_FIELDS
        for container in spec.get(kind) or ():
            path = f"spec.{kind}[{container['name']}]"
            for field in _unknown(container, known):
                yield _sentence(f"{path}.{field}", field, known)
            for field in _unknown(container.get("resources") or {}, RESOURCES_FIELDS):
                yield _sentence(f"{path}.resources.{field}", field, RESOURCES_FIELDS)


def nearest(word: str, known: Iterable[str], *, cutoff: float = _NEAR) -> str | None:
    """The known word that was most likely meant, upper and lower case apart; None where none is
    near."""
    by_lower = {one.lower(): one for one in known}
    near = get_close_matches(word.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[near[0]] if near else None


def _unknown(mapping: Mapping[str, Any], known: frozenset[str]) -> list[str]:
    return [field for field in mapping if field not in known]


def _sentence(path: str, field: str, known: frozenset[str]) -> str:
    near = nearest(field, known)
    hint = f": did you mean {near}?" if near else ""
    return f"{path}: unknown field{hint or ', it is not read'}"
