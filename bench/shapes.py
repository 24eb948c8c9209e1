"""Pods that are created over and over."""

from collections.abc import Callable
from typing import Any, Final

from gpumem_operator import names

Pod = dict[str, Any]
EACH: Final = "<number of the pod>"
"""Stands in a pod for a number that each one that is created has for itself."""


def gpu_pod() -> Pod:
    """As a training job has one: a GPU, an amount of its memory, a few variables."""
    return _pod([_container("main", gpus=1)])


def own_gpu_pod() -> Pod:
    """The same with variables that no other pod has: what becomes of them is not known yet."""
    pod = gpu_pod()
    for variable in pod["spec"]["containers"][0]["env"]:
        variable["value"] = f"{EACH}-{variable['value']}"
    return pod


def cpu_pod() -> Pod:
    """As the first, without a GPU: the webhook's configuration leaves it out."""
    return _pod([_container("main", gpus=0)])


def large_gpu_pod() -> Pod:
    """40 containers, each with a GPU and 10 variables."""
    return _pod([_container(f"worker-{index}", gpus=1) for index in range(40)])


SHAPES: Final[dict[str, Callable[[], Pod]]] = {
    "GPU pod": gpu_pod,
    "GPU pod, each with its own variables": own_gpu_pod,
    "CPU pod": cpu_pod,
    "GPU pod of 40 containers": large_gpu_pod,
}


def _pod(containers: list[Pod]) -> Pod:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "bench-", "labels": {"app": "bench"}},
        # It waits for a gate that nobody opens, so that the scheduler costs every run the same.
        "spec": {"containers": containers, "schedulingGates": [{"name": "bench/never"}]},
    }


def _container(name: str, *, gpus: int) -> Pod:
    limits: dict[str, str] = {"cpu": "1", "memory": "1Gi"}
    if gpus:
        limits |= {names.GPU_RESOURCE: str(gpus), names.MEMORY_RESOURCE: f"{8 * gpus}Gi"}
    return {
        "name": name,
        "image": "bench",
        "env": [{"name": f"SETTING_{index}", "value": str(index)} for index in range(10)],
        "resources": {"limits": limits},
    }
