"""Which pod and container a process is in, by the text of /proc/PID/cgroup. Pure.

Kubelet and runtime put a container into
    cgroupfs   /kubepods/burstable/pod5f0c8f3e-1111-.../0123...
    systemd    /kubepods.slice/kubepods-burstable.slice
               /kubepods-burstable-pod5f0c8f3e_1111_....slice/cri-containerd-0123....scope
and CRI-O writes crio-0123... in both. Seen from inside a cgroup namespace the path is relative to
that of the reader, and a sibling is /../cri-containerd-0123....scope, or one step further up where
the runtime (crun) puts the reader into a group below its container's.
"""

from __future__ import annotations

import re
from itertools import dropwhile
from typing import NamedTuple

_POD = re.compile(
    r"(?:^|-)pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice|$)"
)
"""A UID; that of a static pod has no dashes. systemd has underscores for them."""
_CONTAINER = re.compile(r"(?:(cri-containerd|crio|docker)[-:])?([0-9a-f]{64})(?:\.scope)?")
_SYSTEMD_NAME_IN_CGROUPFS = re.compile(r"(.*\.slice):(cri-containerd|crio|docker):([0-9a-f]{64})")
"""Where the kubelet speaks systemd and the runtime does not, one folder has all three."""
SIBLINGS_ARE_UP = (1, 2)
"""Steps from a reader's own group to the pod's. Further up are pods, which have their UID."""
_RUNTIMES = {"cri-containerd": "containerd://", "crio": "cri-o://", "docker": "docker://"}


class Place(NamedTuple):
    """Where a process runs; None for what the path does not tell."""

    pod_uid: str | None = None
    container_id: str | None = None
    """As in the pod's status, `containerd://0123...`; without a scheme where the path does not
    name the runtime."""


def place_of(text: str) -> Place:
    """The pod and container of a process. The outermost: a container that runs containers of its
    own is what Kubernetes knows."""
    places = [_place(line.split(":", 2)[2]) for line in _lines(text) if line.count(":") >= 2]
    return max(places, key=_told, default=Place())


def unified_path(text: str) -> str | None:
    """The path in cgroup v2, as the reader of /proc/PID/cgroup sees it; None where v1 is all."""
    lines = (line for line in _lines(text) if line.startswith("0::/"))
    return next((line[len("0::") :] for line in lines), None)


def whole(namespace: tuple[str, ...], path: str) -> str | None:
    """A path relative to a cgroup namespace, from the root of the tree in which that lies.

    None for one that leads out of the tree."""
    parts = list(namespace)
    for part in path.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part:
            parts.append(part)
    return "/" + "/".join(parts)


def container_folder(path: str) -> str | None:
    """The container's own group in the path of a process, from the root of cgroup v2.

    None for a process outside containers."""
    parts = [part for part in path.split("/") if part]
    for index, part in enumerate(parts):
        if not _pod_uid(part):
            continue
        if _SYSTEMD_NAME_IN_CGROUPFS.fullmatch(part):
            return "/" + "/".join(parts[: index + 1])
        below = "".join(parts[index + 1 : index + 2])
        return "/" + "/".join(parts[: index + 2]) if _container_id(below) else None
    return None


def _lines(text: str) -> list[str]:
    # The name of a group may hold every letter but a line feed.
    return text.split("\n")


def _told(place: Place) -> tuple[bool, bool]:
    """On v1 every controller has a line, and not all of them a group for each container."""
    return place.pod_uid is not None, place.container_id is not None


def _place(path: str) -> Place:
    parts = [part for part in path.split("/") if part]
    pods = [(index, uid) for index, part in enumerate(parts) if (uid := _pod_uid(part))]
    if pods:
        index, uid = pods[0]
        together = _SYSTEMD_NAME_IN_CGROUPFS.fullmatch(parts[index])
        below = (
            f"{together[2]}-{together[3]}" if together else "".join(parts[index + 1 : index + 2])
        )
        return Place(uid, _container_id(below))
    # A container lies in its pod: the group above the reader in which one lies is the same pod's.
    up = len(parts) - len(list(dropwhile("..".__eq__, parts)))
    sibling = "".join(parts[up : up + 1]) if up in SIBLINGS_ARE_UP else ""
    return Place(None, _container_id(sibling))


def _pod_uid(part: str) -> str | None:
    together = _SYSTEMD_NAME_IN_CGROUPFS.fullmatch(part)
    found = _POD.search(together[1] if together else part)
    return found[1].replace("_", "-") if found else None


def _container_id(part: str) -> str | None:
    found = _CONTAINER.fullmatch(part)
    return f"{_RUNTIMES.get(found[1] or '', '')}{found[2]}" if found else None
