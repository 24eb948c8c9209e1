"""What the author of a pod wrote, where an earlier admission wrote something beside it.

An exported pod that is created again brings along what admission filled in for another policy. What
is marked as filled in is not the author's, and so judges and decides nothing: the plan of the new
policy writes it again, or takes it away. Variables are looked at by `injection/environment.py`;
here are the other fields.

A mark that somebody forged makes a pod lose the field that it is on, and gains nothing: whatever is
not believed here is taken out of the pod as well.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpumem_operator import names
from gpumem_operator.api.pods import ContainerFacts, PodFacts, env_value, is_ours


def authored(facts: PodFacts, pod: Mapping[str, Any], memory_resource: str) -> PodFacts:
    """The facts without what an earlier admission filled in; the same ones where there is none."""
    containers = tuple(_authored(container, memory_resource) for container in facts.containers)
    if facts.share_process_namespace and _shared_by_us(pod, memory_resource):
        facts = replace(facts, share_process_namespace=None, shared_by_admission=True)
    return replace(facts, containers=containers) if containers != facts.containers else facts


def _authored(container: ContainerFacts, memory_resource: str) -> ContainerFacts:
    if container.memory_bytes is None or not _is_marked(container.raw, memory_resource):
        return container
    return replace(container, memory_bytes=None, memory_text="", memory_by_admission=True)


def _shared_by_us(pod: Mapping[str, Any], memory_resource: str) -> bool:
    return any(
        raw.get("name") == names.SIDECAR_CONTAINER
        and is_ours("initContainers", raw, memory_resource)
        and _is_marked(raw, names.SHARED_PROCESSES_MARK)
        for raw in (pod.get("spec") or {}).get("initContainers") or ()
    )


def _is_marked(raw: Mapping[str, Any], item: str) -> bool:
    return item in (env_value(raw, names.INJECTED_ENV) or "").split(",")
