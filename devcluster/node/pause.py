"""The image of the process that holds a pod's namespaces, made without any image tool."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from devcluster.failure import ClusterError
from devcluster.gomodules import cache_folder
from devcluster.simulated_driver.build import find_compiler

PAUSE_IMAGE = "localhost/pause:1"
SOURCE = Path(__file__).with_name("pause.c")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
LAYOUT = "application/vnd.oci.image"


def pause_archive() -> Path:
    """An OCI archive with the image, made when the cache lacks it (under a second)."""
    path = pause_path()
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            partial = Path(scratch) / "archive"
            partial.write_bytes(_archive(_compile(Path(scratch) / "pause")))
            partial.rename(path)
    return path


def pause_path() -> Path:
    """Where the cache keeps the archive, whether or not it has been made."""
    digest = hashlib.sha256(SOURCE.read_bytes() + Path(__file__).read_bytes()).hexdigest()[:12]
    return cache_folder() / "images" / f"pause-{digest}.tar"


def _compile(target: Path) -> bytes:
    command = [find_compiler(), "-Wall", "-Wextra", "-O2", "-static", "-s", "-D_GNU_SOURCE"]
    done = subprocess.run([*command, "-o", target, SOURCE], capture_output=True, text=True)
    if done.returncode != 0:
        raise ClusterError(
            f"{SOURCE.name} could not be linked statically:\n{done.stderr.strip()[-2000:]}\n"
            "Install the C library's development files (Debian, Ubuntu: apt-get install libc6-dev)."
        )
    return target.read_bytes()


def _archive(program: bytes) -> bytes:
    layer = _tar({"pause": program})
    machine = platform.machine()
    configuration = {
        "architecture": ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "config": {"Entrypoint": ["/pause"], "User": "65535:65535"},
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
    }
    compressed = gzip.compress(layer, mtime=0)
    blobs = {
        "layer": (f"{LAYOUT}.layer.v1.tar+gzip", compressed),
        "configuration": (f"{LAYOUT}.config.v1+json", json.dumps(configuration).encode()),
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{LAYOUT}.manifest.v1+json",
        "config": _descriptor(*blobs["configuration"]),
        "layers": [_descriptor(*blobs["layer"])],
    }
    blobs["manifest"] = (f"{LAYOUT}.manifest.v1+json", json.dumps(manifest).encode())
    named = {**_descriptor(*blobs["manifest"]), "annotations": _names()}
    index = {"schemaVersion": 2, "manifests": [named]}
    files = {f"blobs/{_digest(blob).replace(':', '/')}": blob for _, blob in blobs.values()}
    files["index.json"] = json.dumps(index).encode()
    files["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
    return _tar(files)


def _names() -> dict[str, str]:
    return {
        "io.containerd.image.name": PAUSE_IMAGE,
        "org.opencontainers.image.ref.name": PAUSE_IMAGE.rpartition(":")[2],
    }


def _descriptor(media_type: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _digest(blob), "size": len(blob)}


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _tar(files: dict[str, bytes]) -> bytes:
    """Programs and documents alike: readable and executable for everybody."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, blob in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(blob)
            entry.mode = 0o755
            archive.addfile(entry, io.BytesIO(blob))
    return content.getvalue()
