"""The chart's values that decide what admission and the controller do.

The chart writes them into one file that every role reads, and the offline commands use the same
defaults; a test compares them with `values.yaml`.
"""

from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from gpumem_operator import names
from gpumem_operator.api import forms
from gpumem_operator.api.model import Bytes, Model
from gpumem_operator.api.policy import MonitoringMode
from gpumem_operator.api.quantity import MIB, canonical

PullPolicy = Literal["Always", "IfNotPresent", "Never"]
Switch = Literal["Enabled", "Disabled"]
Processors = Annotated[str, forms.CPU, AfterValidator(canonical)]
ContainerMemory = Annotated[str, forms.CONTAINER_MEMORY, AfterValidator(canonical)]
"""Both as the API server gives them back: our containers in pods are compared with what they should
be."""
LimitingManager = Literal["HAMi", "KAI", "RunAI"]
"""Those of `api/managers.py` that limit GPU memory inside containers, or can."""
ResourceName = Annotated[str, Field(max_length=316), forms.RESOURCE]
LARGEST_USER: Final = 2**31 - 1
OptionalUser = Annotated[
    int | None,
    Field(ge=1, le=LARGEST_USER),
    WithJsonSchema({"type": ["integer", "null"], "minimum": 1, "maximum": LARGEST_USER}),
]
VolumeSize = Annotated[Bytes, Field(ge=forms.LEAST_VOLUME_BYTES)]
Namespace = Annotated[str, forms.NAMESPACE]
DeviceClass = Annotated[str, Field(max_length=253), forms.NAME]


class ContainerResources(Model):
    """Requests and limits of a container that is put into users' pods: both are the same, so that
    a Guaranteed pod stays Guaranteed."""

    cpu: Processors = "50m"
    """Processor time, a quantity. Default: 50m."""
    memory: ContainerMemory = "96Mi"
    """Memory, a quantity. Default: 96Mi for the sidecar, 64Mi for the shim."""


class SidecarValues(Model):
    """The image of the shim and the sidecar, and what they may take."""

    told_by_null: ClassVar = frozenset({"runAsUser"})

    image: Annotated[str, forms.IMAGE] = "ghcr.io/gpumemory/gpu-memory-sidecar:0.1.0"
    """Image of both: it needs Python and nothing of CUDA. Default: that of this release."""
    pull_policy: PullPolicy = "IfNotPresent"
    """When nodes fetch the image. Default: IfNotPresent."""
    toolkit_nvml: Annotated[Switch, Field(alias="toolkitNVML")] = "Disabled"
    """Whether the sidecar, and it alone, asks NVIDIA's container toolkit for NVML: all cards of the
    node and the driver's management library. For clusters with the legacy toolkit and no agent.
    Default: Disabled."""
    run_as_user: OptionalUser = 65532
    """User that both run as, never root; null leaves it to the cluster. Default: 65532."""
    resources: ContainerResources = ContainerResources()
    """What the sidecar may take. Default: 50m and 96Mi."""
    shim_resources: ContainerResources = ContainerResources(cpu="50m", memory="64Mi")
    """What the init container of the shim may take. Default: 50m and 64Mi."""


class MonitoringValues(Model):
    """What a policy without `monitoring.mode` gets."""

    mode: MonitoringMode = "Sidecar"
    """How use is measured where a policy does not say; NodeAgent needs agent.enabled. Default:
    Sidecar."""


class SchedulingValues(Model):
    """How declarations reach the scheduler."""

    fill_resource: Switch = "Disabled"
    """Whether containers that declared another way get the memory resource as well, so that the
    scheduler counts them; only where nodes offer it. Default: Disabled."""


class ReportValues(Model):
    """Where sidecars send what they measured."""

    url: Annotated[str, forms.ADDRESS] = ""
    """Where sidecars send reports. Empty, the default: the DNS name of the report Service, which
    the chart fills in."""
    ca: Annotated[str, forms.CERTIFICATES] = ""
    """PEM of the CA of that address. Empty, the default: written by the operator once it has
    one."""


class Values(Model):
    """All values that Python reads. Other values (replicas, RBAC, ...) concern the chart alone."""

    memory_resource: ResourceName = names.MEMORY_RESOURCE
    """Extended resource by which a container declares its GPU memory, in total over its GPUs.
    Default: nvidia.com/memory."""
    exclusive_resources: list[ResourceName] = []
    """GPU resources that hand out whole cards: a container on them that declares nothing gets no
    default limit. Default: none."""
    ignored_namespaces: list[Namespace] = ["kube-system", "gpu-operator", "nvidia-gpu-operator"]
    """Namespaces whose pods admission never sees, besides the release's own. Default: kube-system
    and the GPU operator's."""
    foreign_managers: list[LimitingManager] = []
    """Whose pods get no shim, no framework variables and no sidecar, because they bring what limits
    memory along. Charge, gate and frozen declaration stay. Whose a pod is, its author can write.
    Default: none."""
    resource_claims: Literal["Warn", "Refuse"] = "Warn"
    """Pods that get GPUs through dynamic resource allocation (resourceClaims, or resources that a
    DeviceClass stands behind), which no limit reaches, are admitted with a warning or refused.
    Default: Warn."""
    gpu_device_classes: list[DeviceClass] = ["gpu.nvidia.com", "mig.nvidia.com"]
    """Device classes that stand for GPUs. Empty: none is asked about. Default: those of NVIDIA's
    DRA driver."""
    sidecar: SidecarValues = SidecarValues()
    """What is put into GPU pods."""
    monitoring: MonitoringValues = MonitoringValues()
    """Measurement where a policy does not say."""
    scheduling: SchedulingValues = SchedulingValues()
    """How declarations reach the scheduler."""
    driver_limits: Switch = "Disabled"
    """Whether containers with a limit on whole cards get the variables by which the driver (from
    615) and NVIDIA's container toolkit (from 1.20.1) hold it, and go only to nodes that can.
    Default: Disabled; a policy with minimumEnforcer Driver has them in any case."""
    report: ReportValues = ReportValues()
    """Where sidecars send what they measured."""
    run_volume_size: VolumeSize = 16 * MIB
    """Size of the volume in which the shim leaves its state, per pod. Default: 16Mi."""
