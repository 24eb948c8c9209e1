"""The shape of the fields that are read from a pod in a file, as the API server would insist on."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictStr

from gpumem_operator.api.quantity import QuantityError, parse_bytes


def _checked_quantity(value: object) -> object:
    """Extended resources are whole numbers; cpu may be `1.5` or `500m`."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is not a quantity")
    return value


def _whole_quantities(limits: object) -> object:
    if isinstance(limits, dict):
        for resource, quantity in limits.items():
            if isinstance(resource, str) and "/" in resource:
                try:
                    parse_bytes(quantity)
                except QuantityError as error:
                    raise ValueError(f"{resource}: {error}") from None
    return limits


Quantity = Annotated[Any, BeforeValidator(_checked_quantity)]
Amounts = Annotated[dict[StrictStr, Quantity], BeforeValidator(_whole_quantities)]


class Shape(BaseModel):
    """Fields that are not named are not read, so they may be anything. null is absence."""

    model_config = ConfigDict(extra="ignore", strict=False)


class MetadataShape(Shape):
    name: StrictStr | None = None
    namespace: StrictStr | None = None
    labels: dict[StrictStr, StrictStr] | None = None
    annotations: dict[StrictStr, StrictStr] | None = None


class EnvShape(Shape):
    name: Annotated[StrictStr, Field(min_length=1)]
    value: StrictStr | None = None
    valueFrom: dict[StrictStr, Any] | None = None


class ResourcesShape(Shape):
    limits: Amounts | None = None
    requests: Amounts | None = None


class MountShape(Shape):
    name: StrictStr
    mountPath: StrictStr


class ContainerShape(Shape):
    name: Annotated[StrictStr, Field(min_length=1)]
    env: list[EnvShape] | None = None
    envFrom: list[dict[StrictStr, Any]] | None = None
    resources: ResourcesShape | None = None
    volumeMounts: list[MountShape] | None = None
    ports: list[dict[StrictStr, Any]] | None = None


class VolumeShape(Shape):
    name: StrictStr


class SpecShape(Shape):
    containers: Annotated[list[ContainerShape], Field(min_length=1)]
    initContainers: list[ContainerShape] | None = None
    ephemeralContainers: list[ContainerShape] | None = None
    volumes: list[VolumeShape] | None = None
    schedulingGates: list[VolumeShape] | None = None
    os: dict[StrictStr, Any] | None = None


class PodShape(Shape):
    metadata: MetadataShape | None = None
    spec: SpecShape
