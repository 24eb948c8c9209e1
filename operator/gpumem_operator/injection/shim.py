"""The start-up shim: one init container copies it, every GPU container finds it by PYTHONPATH.

A container's PYTHONPATH replaces the one of its image, which admission can not see. So what the
image has can be named by the policy or by an annotation, and is appended.
"""

from collections.abc import Mapping
from typing import Any

from gpumem_operator import names
from gpumem_operator.api.values import SidecarValues
from gpumem_operator.injection.container import our_container
from gpumem_operator.injection.environment import Environment, Own, Setting, Variables
from gpumem_operator.injection.target import Target


def applies(environment: Environment) -> bool:
    """Whether the shim can be found: a PYTHONPATH by reference can not be extended."""
    name = names.PYTHON_PATH_ENV
    return not environment.has(name) or environment.literal(name) is not None


def variables(target: Target, environment: Environment) -> Variables:
    """PYTHONPATH with the shim in front, and what the shim has to know."""
    if not applies(environment):
        warning = f"{names.PYTHON_PATH_ENV} comes from a reference: the shim is left out"
        return Variables(warnings=(warning,))
    rest = _behind_shim(environment.literal(names.PYTHON_PATH_ENV), target.image_python_path)
    path = f"{names.SHIM_PATH}:{rest}" if rest else names.SHIM_PATH
    wanted: list[Own | Setting] = [
        Own(names.CONTAINER_ENV, target.container.name),
        Own(names.RESERVE_BYTES_ENV, str(target.spec.limits.context_reserve_bytes)),
    ]
    if target.processes_per_gpu > 1:
        wanted.append(Own(names.PROCESSES_PER_GPU_ENV, str(target.processes_per_gpu)))
    if environment.has(names.PYTHON_PATH_ENV):
        wanted.append(Own(names.PYTHON_PATH_ENV, path))
    else:
        wanted.append(Setting(names.PYTHON_PATH_ENV, path))
    if not rest:
        wanted.append(Own(names.PYTHON_PATH_ORIGIN_ENV, "Added"))
    return Variables(tuple(wanted))


def _behind_shim(written: str | None, image_path: str) -> str:
    """The author's part of PYTHONPATH, then the image's; neither twice on re-creation.

    Empty parts are left alone where the author wrote them: they mean the working directory.
    """
    theirs = (written or "").removeprefix(names.SHIM_PATH).removeprefix(":")
    if not theirs or not image_path:
        return theirs or image_path
    if theirs == image_path or theirs.endswith(f":{image_path}"):
        return theirs
    return f"{theirs}:{image_path}"


def mounts() -> tuple[Mapping[str, Any], ...]:
    """What a GPU container mounts: the shim read-only."""
    return ({"name": names.SHIM_VOLUME, "mountPath": names.SHIM_PATH, "readOnly": True},)


def volumes() -> tuple[Mapping[str, Any], ...]:
    """Volumes that the shim needs."""
    return (
        {"name": names.SHIM_VOLUME, "emptyDir": {"sizeLimit": "16Mi"}},
        {"name": names.NO_TOKEN_VOLUME, "emptyDir": {"sizeLimit": "1Mi"}},
    )


def init_container(values: SidecarValues) -> Mapping[str, Any]:
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
    )
