"""Paths of mounts, compared as the container runtime would: `/run//gpumem/` is `/run/gpumem`."""

import posixpath
from functools import lru_cache


@lru_cache(maxsize=256)
def normal(path: str) -> str:
    """The absolute path that kubelet and the runtime make of a mount's path."""
    return posixpath.normpath("/" + path.lstrip("/"))


def is_above(path: str, inner: str) -> bool:
    """Whether `path` is a folder that contains the path `inner`, which is in its normal form."""
    folder = normal(path)
    return inner != folder and inner.startswith("/" if folder == "/" else f"{folder}/")


def is_within(path: str, outer: str) -> bool:
    """Whether `path` is `outer`, which is in its normal form, or lies in it."""
    folder = normal(path)
    return folder == outer or folder.startswith(f"{outer}/")
