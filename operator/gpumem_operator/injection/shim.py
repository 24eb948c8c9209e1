"""The start-up shim: one init container copies it, every GPU container finds it by PYTHONPATH.

A container's PYTHONPATH replaces the one of its image, which admission can not see. So what the
image has can be named by the policy or by an annotation, and is appended where the author set no
PYTHONPATH; an author's own hides the image's with or without the shim.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from gpumem_operator import names
from gpumem_operator.api.pods import ContainerFacts
from gpumem_operator.api.values import SidecarValues
from gpumem_operator.injection.container import our_container
from gpumem_operator.injection.environment import Environment, Own, Setting, Variables
from gpumem_operator.injection.paths import is_above
from gpumem_operator.injection.target import Target


def unreadable_path(environment: Environment) -> str | None:
    """Why the container's variables leave no place for the shim, for people; None where they do."""
    name = names.PYTHON_PATH_ENV
    if environment.has(name) and environment.literal(name) is None:
        return f"{name} comes from a reference, which can not be extended: the shim is left out"
    return None


def read_only_mount(container: ContainerFacts, read_only_volumes: frozenset[str]) -> str | None:
    """Why the container's mounts leave no place for the shim, for people; None where they do."""
    for mount in container.mounts:
        # The runtime makes the folders to mount ours on: in there it could not, and would fail.
        fixed = bool(mount.get("readOnly")) or mount.get("name") in read_only_volumes
        path = mount.get("mountPath") or ""
        if fixed and any(is_above(path, ours) for ours in (names.SHIM_PATH, names.RUN_PATH)):
            return f"the read-only mount {path[:64]} has no room for the shim: it is left out"
    return None


def variables(target: Target, environment: Environment) -> Variables:
    """PYTHONPATH with the shim in front, and what the shim has to know."""
    written = environment.has(names.PYTHON_PATH_ENV)
    rest = environment.literal(names.PYTHON_PATH_ENV) if written else target.image_python_path
    path = f"{names.SHIM_PATH}:{rest}" if rest else names.SHIM_PATH
    wanted: list[Own | Setting] = [
        Own(names.CONTAINER_ENV, target.container_name),
        Own(names.RESERVE_BYTES_ENV, str(target.spec.limits.context_reserve_bytes)),
        Own(names.TENSORFLOW_MODE_ENV, target.spec.frameworks.tensorflow.mode),
    ]
    if target.spec.injection.server_args == "Enabled":
        wanted.append(Own(names.SERVER_ARGS_ENV, "Enabled"))
    if target.processes_per_gpu > 1:
        wanted.append(Own(names.PROCESSES_PER_GPU_ENV, str(target.processes_per_gpu)))
    # Empty parts stay where the author wrote them: they mean the working directory.
    wanted.append((Own if written else Setting)(names.PYTHON_PATH_ENV, path))
    if not written and not rest:
        wanted.append(Own(names.PYTHON_PATH_ORIGIN_ENV, "Added"))
    return Variables(tuple(wanted))


def mounts() -> tuple[Mapping[str, Any], ...]:
    """What a GPU container mounts: the shim read-only."""
    return ({"name": names.SHIM_VOLUME, "mountPath": names.SHIM_PATH, "readOnly": True},)


def volumes() -> tuple[Mapping[str, Any], ...]:
    """Volumes that the shim needs."""
    return (
        {"name": names.SHIM_VOLUME, "emptyDir": {"sizeLimit": "16Mi"}},
        {"name": names.NO_TOKEN_VOLUME, "emptyDir": {"sizeLimit": "1Mi"}},
    )


@lru_cache(maxsize=8)
def init_container(values: SidecarValues, *, requests: bool, as_root: bool) -> Mapping[str, Any]:
    """The container that copies the shim; it must be the first one of the pod."""
    return our_container(
        names.SHIM_CONTAINER,
        values,
        resources=values.shim_resources,
        command=["python", "-m", "gpumem_shim", "install", names.SHIM_PATH],
        mounts=[
            {"name": names.SHIM_VOLUME, "mountPath": names.SHIM_PATH},
            {"name": names.NO_TOKEN_VOLUME, "mountPath": names.TOKEN_PATH, "readOnly": True},
        ],
        requests=requests,
        as_root=as_root,
    )
