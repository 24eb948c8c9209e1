"""Ephemeral containers: they can ask for no GPU, so they get nothing and may pretend nothing."""

from collections.abc import Iterator, Mapping
from typing import Any

from gpumem_operator.admission.verdict import Operation
from gpumem_operator.api.pods import ContainerFacts, PodFacts, ephemeral_names
from gpumem_operator.injection import devices, driver, environment, frozen
from gpumem_operator.injection.environment import Environment


def added(facts: PodFacts, old_pod: Mapping[str, Any]) -> dict[str, ContainerFacts]:
    """The ephemeral containers that the stored pod does not have yet; others can not change."""
    stored = ephemeral_names(old_pod)
    return {
        container.name: container
        for container in facts.containers
        if container.kind == "ephemeralContainers" and container.name not in stored
    }


def operations(
    containers: Mapping[str, ContainerFacts], *, hides_devices: bool
) -> Iterator[Operation]:
    """Takes away what only admission may set, and with `hides_devices` GPUs by envFrom."""
    for container in containers.values():
        entries = container.raw.get("env") or []
        present = Environment(entries)
        parts = [environment.Variables(removed=frozen.reserved(present)), driver.variables()]
        if hides_devices and container.raw.get("envFrom"):
            parts.append(devices.hidden())
        resolved = environment.resolve(present, parts, existing="Keep")
        edited = environment.edit(entries, resolved)
        if edited != entries:
            path = f"/spec/ephemeralContainers/{container.index}/env"
            yield {"op": "add", "path": path, "value": edited}
