"""The chart's values that decide what admission and the controller do.

The chart writes them into one file that every role reads, and the offline commands use the same
defaults; a test compares them with `values.yaml`.
"""

from typing import Annotated, Literal

from pydantic import Field

from gpumem_operator import names
from gpumem_operator.api.model import Bytes, Model
from gpumem_operator.api.quantity import MIB

PullPolicy = Literal["Always", "IfNotPresent", "Never"]
Switch = Literal["Enabled", "Disabled"]


class ContainerResources(Model):
    """Requests and limits of a container that is put into users' pods: both are the same, so that
    a Guaranteed pod stays Guaranteed."""

    cpu: str = "50m"
    memory: str = "96Mi"


class SidecarValues(Model):
    """The image of the shim and the sidecar, and what they may take."""

    image: str = "ghcr.io/gpumemory/gpu-memory-sidecar:0.1.0"
    pull_policy: PullPolicy = "IfNotPresent"
    run_as_user: Annotated[int, Field(ge=1)] = 65532
    resources: ContainerResources = ContainerResources()
    shim_resources: ContainerResources = ContainerResources(cpu="50m", memory="64Mi")


class MonitoringValues(Model):
    """What a policy without `monitoring.mode` gets."""

    mode: Literal["Sidecar", "NodeAgent", "None"] = "Sidecar"


class SchedulingValues(Model):
    """How declarations reach the scheduler."""

    fill_resource: Switch = "Disabled"
    """Whether containers that declared another way get the memory resource as well."""


class ReportValues(Model):
    """Where sidecars send what they measured."""

    url: str = ""
    """Empty: the DNS name of the report Service, which the chart fills in."""
    ca: str = ""
    """PEM of the CA of that address. Empty: written by the operator once it has one."""


class Values(Model):
    """All values that Python reads. Other values (replicas, RBAC, ...) concern the chart alone."""

    memory_resource: str = names.MEMORY_RESOURCE
    exclusive_resources: list[str] = []
    ignored_namespaces: list[str] = ["kube-system", "gpu-operator", "nvidia-gpu-operator"]
    resource_claims: Literal["Warn", "Refuse"] = "Warn"
    gpu_device_classes: list[str] = ["gpu.nvidia.com", "mig.nvidia.com"]
    sidecar: SidecarValues = SidecarValues()
    monitoring: MonitoringValues = MonitoringValues()
    scheduling: SchedulingValues = SchedulingValues()
    report: ReportValues = ReportValues()
    run_volume_size: Bytes = 16 * MIB
