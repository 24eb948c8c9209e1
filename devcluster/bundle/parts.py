"""A folder as a compressed archive, cut into parts of a size that every way of transport takes."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from devcluster.failure import ClusterError

MIB = 2**20


def write_parts(source: Path, target: Path, *, name: str, part_bytes: int) -> list[Path]:
    """Write `name`.00, `name`.01 and so on into `target`, each of at most `part_bytes`.

    Joined they are an xz archive of the folder `source`. SHA256SUMS beside them tells of damage."""
    tar = ["tar", "--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]
    packed = [*tar, f"--directory={source.parent}", source.name]
    with (
        subprocess.Popen(packed, stdout=subprocess.PIPE) as archive,
        subprocess.Popen(
            ["xz", "--threads=0", "--stdout"], stdin=archive.stdout, stdout=subprocess.PIPE
        ) as compressed,
    ):
        assert compressed.stdout is not None
        parts = []
        for number, chunk in enumerate(_chunks(compressed.stdout, part_bytes)):
            parts.append(target / f"{name}.{number:02}")
            parts[-1].write_bytes(chunk)
    if archive.returncode or compressed.returncode:
        raise ClusterError(f"tar ended with {archive.returncode}, xz with {compressed.returncode}")
    sums = [f"{hashlib.sha256(part.read_bytes()).hexdigest()}  {part.name}\n" for part in parts]
    (target / "SHA256SUMS").write_text("".join(sums))
    return parts


def _chunks(stream: IO[bytes], size: int) -> Iterator[bytes]:
    while chunk := stream.read(size):
        yield chunk
