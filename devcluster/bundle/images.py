"""Several archives of images as one, in which layers that they share are only once."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from devcluster.failure import ClusterError

INDEX = "index.json"


def merge_archives(archives: Sequence[Path], target: Path) -> None:
    """Write one OCI archive with the images of several.

    Raises ClusterError for an archive of another kind."""
    manifests: list[Any] = []
    with tarfile.open(target, "w") as merged:
        for path in archives:
            with tarfile.open(path) as archive:
                manifests += _index(archive, path)["manifests"]
                _copy_missing(archive, merged)
        content = json.dumps({"schemaVersion": 2, "manifests": manifests}).encode()
        entry = tarfile.TarInfo(INDEX)
        entry.size = len(content)
        merged.addfile(entry, io.BytesIO(content))


def _index(archive: tarfile.TarFile, path: Path) -> Any:
    try:
        found = archive.extractfile(INDEX)
    except KeyError:
        found = None
    if found is None:
        raise ClusterError(f"{path} is no OCI archive: it has no {INDEX}. Build with buildah.")
    return json.load(found)


def _copy_missing(archive: tarfile.TarFile, merged: tarfile.TarFile) -> None:
    """Files of one name have one content: blobs are named by their digests."""
    present = set(merged.getnames())
    for entry in archive:
        if entry.isfile() and entry.name != INDEX and entry.name not in present:
            merged.addfile(entry, archive.extractfile(entry))
