"""What our own containers in users' pods have in common.

Every default that the API server would fill in is written out: a pod that comes back to admission
is then compared as a whole, and anything that someone changed in our containers is put right.

Whoever makes one keeps it: it follows from the chart's values, and pods share it. So nobody may
change what is in it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.api.values import ContainerResources, SidecarValues

USER_FIELDS: Final = ("runAsUser", "runAsGroup")
_NOT_ROOT: Final = 65532


def our_container(
    name: str,
    values: SidecarValues,
    *,
    resources: ContainerResources,
    command: Sequence[str],
    mounts: Sequence[Mapping[str, Any]],
    env: Sequence[Mapping[str, Any]] = (),
    visible_devices: str = "void",
    requests: bool = True,
    as_root: bool = False,
) -> dict[str, Any]:
    """A container that the restricted Pod Security level admits and that asks for no GPU.

    NVIDIA_VISIBLE_DEVICES is always said, because images made from CUDA images set it to `all`.
    Without `requests` it takes of what is requested for the pod as a whole: all containers
    together may not request more than spec.resources does. `as_root`: the pod says that its
    containers run as root, so where the cluster chooses users it chooses none for ours.
    """
    chosen = _NOT_ROOT if as_root and values.run_as_user is None else values.run_as_user
    user = {key: chosen for key in USER_FIELDS if chosen is not None}
    amounts = {"cpu": resources.cpu, "memory": resources.memory}
    requested = amounts if requests else dict.fromkeys(amounts, "0")
    return {
        "name": name,
        "image": values.image,
        "imagePullPolicy": values.pull_policy,
        "command": list(command),
        "env": [{"name": names.VISIBLE_DEVICES_ENV, "value": visible_devices}, *env],
        "resources": {"limits": dict(amounts), "requests": dict(requested)},
        "volumeMounts": list(mounts),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "privileged": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            **user,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
