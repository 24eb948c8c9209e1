"""The scale subresource of a workload: read, and written with a check of what was read."""

import re
from dataclasses import dataclass
from typing import Any, Final

from gpumem_operator.api.scaling import TargetRef
from gpumem_operator.api.selector import LabelSelector
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.discovery import Discovery, NotScalable
from gpumem_operator.kube.errors import ApiError, Conflict, NotFound
from gpumem_operator.kube.resources import Resource
from gpumem_operator.scaling import reasons
from gpumem_operator.scaling.facts import Hold
from gpumem_operator.scaling.selector_text import parse_selector

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_API_VERSION: Final = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[a-z0-9]+")
_FORBIDDEN: Final = 403
_TEST_FAILED: Final = 422


@dataclass(frozen=True)
class Scale:
    """What a workload asks for, and which pods count for it."""

    resource: Resource
    uid: str
    replicas: int
    selector: LabelSelector


class NoScale(Exception):
    """There is no scale to go by; `why` is for the status."""

    def __init__(self, why: Hold) -> None:
        super().__init__(why.message)
        self.why = why


async def read_scale(
    discovery: Discovery, writer: Writer, target: TargetRef, *, namespace: str
) -> Scale:
    """Raises NoScale, whatever is the matter with the target or the answer."""
    title = f"{target.kind} {namespace}/{target.name}"
    if not _NAME.fullmatch(target.name) or not _API_VERSION.fullmatch(target.api_version):
        # They become parts of a path, which must not lead into another namespace.
        text = f"Nothing can be called {title} in {target.api_version}: correct targetRef."
        raise NoScale(Hold(reasons.TARGET_NOT_FOUND, text))
    try:
        resource = await discovery.scalable(target.api_version, target.kind)
        path = resource.path(target.name, namespace=namespace, subresource="scale")
        return _scale_of(resource, await writer.api.get(path))
    except NotScalable as error:
        raise NoScale(Hold(reasons.NOT_SCALABLE, f"{title} can not be scaled: {error}.")) from None
    except NotFound:
        text = f"{title} does not exist: create it, or correct targetRef."
        raise NoScale(Hold(reasons.TARGET_NOT_FOUND, text)) from None
    except ApiError as error:
        raise NoScale(why_not(error, title)) from None
    except (KeyError, TypeError, ValueError) as error:
        text = f"The scale of {title} is not understood: {error}."
        raise NoScale(Hold(reasons.UNREADABLE, text)) from None


def why_not(error: ApiError, title: str) -> Hold:
    """Why the scale could not be read or written."""
    if error.status == _FORBIDDEN:
        return Hold(
            reasons.NOT_ALLOWED,
            f"The operator may not scale {title}: list its kind in the chart's value"
            f" scaling.targets ({error}).",
        )
    return Hold(reasons.UNREADABLE, f"{title} could not be scaled: {error}.")


async def write_scale(
    writer: Writer, scale: Scale, target: TargetRef, *, namespace: str, replicas: int
) -> None:
    """Ask for so many replicas. Raises Conflict where it is another object by now, or somebody has
    changed its replicas since, and ApiError."""
    path = scale.resource.path(target.name, namespace=namespace, subresource="scale")
    operations: list[dict[str, Any]] = [
        {"op": "test", "path": "/metadata/uid", "value": scale.uid},
        {"op": "test", "path": "/spec/replicas", "value": scale.replicas},
        {"op": "replace", "path": "/spec/replicas", "value": replicas},
    ]
    try:
        await writer.edit(path, operations)
    except ApiError as error:
        # The same status says that the kind itself takes no such number.
        if error.status == _TEST_FAILED and not await _is_as_read(writer, path, scale):
            raise Conflict(f"PATCH {path}", str(error), error.status) from None
        raise


async def _is_as_read(writer: Writer, path: str, scale: Scale) -> bool:
    now = await writer.api.get(path)
    uid, replicas = now["metadata"]["uid"], (now.get("spec") or {}).get("replicas") or 0
    return (uid, replicas) == (scale.uid, scale.replicas)


def _scale_of(resource: Resource, raw: dict[str, Any]) -> Scale:
    text = (raw.get("status") or {}).get("selector")
    if not text:
        raise ValueError("its status names no selector of pods")
    return Scale(
        resource=resource,
        uid=raw["metadata"]["uid"],
        replicas=int((raw.get("spec") or {}).get("replicas") or 0),
        selector=parse_selector(text),
    )
