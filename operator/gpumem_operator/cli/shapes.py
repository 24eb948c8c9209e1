"""The shape of the fields that are read from a pod in a file, as the API server would insist on."""

from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictStr,
    model_validator,
)

from gpumem_operator.api.pods import is_gpu_resource
from gpumem_operator.api.quantity import QuantityError, parse_bytes


def _checked_quantity(value: object) -> object:
    """Extended resources are whole numbers; cpu may be `1.5` or `500m`."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is not a quantity")
    return value


def _readable_amounts(amounts: object) -> object:
    if isinstance(amounts, dict):
        for resource, quantity in amounts.items():
            if isinstance(resource, str) and "/" in resource:
                _check_amount(resource, quantity)
    return amounts


def _check_amount(resource: str, quantity: object) -> None:
    try:
        parse_bytes(quantity)
    except QuantityError as error:
        if is_gpu_resource(resource):
            whole = isinstance(quantity, float) and quantity.is_integer() and quantity >= 0
            hint = f": write {int(quantity)}" if whole else ""  # type: ignore[call-overload]
            shown = f"{quantity!s:.60}"
            raise ValueError(f"{resource}: {shown} is not a whole number of GPUs{hint}") from None
        raise ValueError(f"{resource}: {error}") from None


Quantity = Annotated[Any, BeforeValidator(_checked_quantity)]
Amounts = Annotated[dict[StrictStr, Quantity], BeforeValidator(_readable_amounts)]


class Shape(BaseModel):
    """Fields that are not named are not read, so they may be anything. null is absence."""

    model_config = ConfigDict(extra="ignore", strict=False)


class MetadataShape(Shape):
    name: StrictStr | None = None
    generateName: StrictStr | None = None
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

    @model_validator(mode="after")
    def _requests_are_limits(self) -> Self:
        """What is not cpu or memory can not be promised twice: the API server insists as well."""
        limits = self.limits or {}
        for resource, quantity in (self.requests or {}).items():
            if "/" not in resource or "kubernetes.io/" in resource:
                continue
            if resource not in limits:
                raise ValueError(f"{resource} is in requests and not in limits: write it there")
            if parse_bytes(limits[resource]) != parse_bytes(quantity):
                raise ValueError(
                    f"{resource}: requests {quantity} and limits {limits[resource]} differ"
                )
        return self


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
    restartPolicy: StrictStr | None = None


class VolumeShape(Shape):
    name: StrictStr


class SpecShape(Shape):
    containers: Annotated[list[ContainerShape], Field(min_length=1)]
    initContainers: list[ContainerShape] | None = None
    ephemeralContainers: list[ContainerShape] | None = None
    volumes: list[VolumeShape] | None = None
    schedulingGates: list[VolumeShape] | None = None
    os: dict[StrictStr, Any] | None = None
    nodeName: StrictStr | None = None
    nodeSelector: dict[StrictStr, StrictStr] | None = None
    resources: ResourcesShape | None = None
    hostPID: StrictBool | None = None
    hostNetwork: StrictBool | None = None
    shareProcessNamespace: StrictBool | None = None


class StatusShape(Shape):
    phase: StrictStr | None = None


class PodShape(Shape):
    metadata: MetadataShape | None = None
    spec: SpecShape
    status: StatusShape | None = None
