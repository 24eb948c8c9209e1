"""Which pods take their memory ahead of need: by the servers that they run, as their commands and
images say, and by the frameworks that the shim found in their processes.

Sources: documentation and code of the servers and frameworks. vLLM, SGLang and TGI fill a share of
the card at their start; JAX and TensorFlow do unless they are told to grow.
"""

from collections.abc import Mapping
from typing import Any, Final

from gpumem_operator.api.pods import env_value
from gpumem_operator.injection.servers import server_of
from gpumem_operator.reports.process_hold import HOLDS_NOTHING
from gpumem_operator.reports.uses import PodUse

_SERVERS: Final = frozenset({"vLLM", "SGLang", "Text Generation Inference"})
_GROWS_WITH: Final = {
    "jax": ("XLA_PYTHON_CLIENT_PREALLOCATE", frozenset({"false", "False", "0"})),
    "tensorflow": ("TF_FORCE_GPU_ALLOW_GROWTH", frozenset({"true"})),
}
"""By framework as the shim names it: the variable and its values that make it grow."""


def preallocating_server(pod: Mapping[str, Any]) -> str | None:
    """The first server in a raw pod that is known to preallocate."""
    for container in (pod.get("spec") or {}).get("containers") or ():
        server = server_of(container)
        if server is not None and server.name in _SERVERS:
            return server.name
    return None


def growing_frameworks(pod: Mapping[str, Any]) -> frozenset[str]:
    """Frameworks that every container of a raw pod which speaks of them tells to grow."""
    containers = (pod.get("spec") or {}).get("containers") or ()
    growing = set()
    for framework, (variable, values) in _GROWS_WITH.items():
        told = [value for one in containers if (value := env_value(one, variable)) is not None]
        if told and all(value in values for value in told):
            growing.add(framework)
    return frozenset(growing)


def preallocating_framework(use: PodUse, growing: frozenset[str]) -> str | None:
    """The first framework in the pod's processes that preallocates; by the workload's own word."""
    found = {
        framework.name
        for row in use.rows
        for process in row.processes
        if process.claim is not None
        for framework in process.claim.frameworks
        if framework.name in _GROWS_WITH.keys() - growing
        and framework.not_capped not in HOLDS_NOTHING
    }
    return min(found, default=None)
