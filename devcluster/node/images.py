"""The product's images as archives for a node: built from this checkout, on a base made here.

Nothing is pulled from a registry of images. The base is a minimal Debian from the machine's own
package sources, unless BASE names an image that the builder has or may pull.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from devcluster.failure import ClusterError
from devcluster.gomodules import cache_folder
from devcluster.node.requirements import missing_programs, search_path, why_not_packages
from devcluster.progress import say

REPOSITORY = Path(__file__).parents[2]
SOURCES = (
    "Dockerfile",
    "requirements.lock",
    "pyproject.toml",
    "scripts/locked.py",
    "scripts/image.sh",
    "examples/demo/image",
    "operator",
    "sidecar",
)
"""What the images are made of; a change of any of it makes new ones."""
BASE = "localhost/python-base:2"
"""Another recipe gets another number: a base is looked for by its name."""
BASE_PACKAGES = "ca-certificates,python3,python3-venv"
UNUSED_SECONDS = 3600.0
NOT_NEEDED = (
    "var/cache/apt",
    "var/lib/apt/lists",
    *(f"usr/share/{name}" for name in ("doc", "info", "locale", "man")),
)
"""What no program reads, and half of the base's size."""
IMAGE_PACKAGES = {"buildah": "buildah", "debootstrap": "debootstrap"}


def why_no_images() -> str | None:
    """Why no images can be built here, with what to do about it; None where they can."""
    if os.environ.get("BASE") or _archive_folder().is_dir():
        return None
    return why_not_packages(missing_programs(IMAGE_PACKAGES))


def product_archives(*, builder: str | None = None) -> list[Path]:
    """Archives of the product's images and the demo's; built when the cache lacks them.

    Takes about two minutes the first time, and a quarter of that after a change of the code. A
    given `builder` takes the base that BASE names, or pulls the Dockerfile's own; without one,
    buildah builds on a base made here. Raises ClusterError with the end of what was printed."""
    folder = _archive_folder(builder)
    with _lock(folder.parent):
        if not folder.exists():
            say("building the images (a minute or two)")
            variables = _builder_variables(builder)
            _drop_unused(folder.parent)
            before = _tagged_images()
            with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
                ready = Path(scratch) / "ready"
                ready.mkdir()
                variables |= {"ARCHIVES": str(ready), "DEMO": "1"}
                _run([REPOSITORY / "scripts" / "image.sh"], variables)
                ready.rename(folder)
            for image in before - _tagged_images():
                _output(["buildah", "rmi", image])
        os.utime(folder)
    return sorted(folder.glob("*.tar"))


def _builder_variables(builder: str | None) -> dict[str, str]:
    """Which builder, and on what base, as image.sh wants to be told."""
    if builder is not None:
        return {"BUILDER": builder}
    if os.environ.get("BASE"):
        return {}
    # Others do not see what buildah stores.
    return {"BUILDER": "buildah", "BASE": _python_base()}


def _python_base() -> str:
    """A minimal Debian with Python in buildah's storage; made when it is not there (a minute)."""
    if _output(["buildah", "images", "--quiet", "--filter", f"reference={BASE}"]):
        return BASE
    say("making a base for the images with debootstrap (about a minute)")
    with tempfile.TemporaryDirectory(prefix="devcluster-base-") as scratch:
        tree = Path(scratch) / "tree"
        include = f"--include={BASE_PACKAGES}"
        _run(["debootstrap", "--variant=minbase", include, _release(), tree, _package_source()])
        for name in NOT_NEEDED:
            shutil.rmtree(tree / name)
        (Path(scratch) / "Dockerfile").write_text("FROM scratch\nCOPY tree /\n")
        _run(["buildah", "build", "--isolation", "chroot", "--tag", BASE, scratch])
    return BASE


def _release() -> str:
    """The code name of this machine's Debian or Ubuntu."""
    found = re.search(r"^VERSION_CODENAME=(\w+)$", Path("/etc/os-release").read_text(), re.M)
    if found is None:
        raise ClusterError(
            "The base of the images is made from this machine's Debian or Ubuntu packages, and"
            " /etc/os-release names no release. Set BASE to an image with Python 3.11 or newer."
        )
    return found[1]


def _package_source() -> str:
    """Where this machine gets its own packages from."""
    format_ = "$(SITE) $(CODENAME) $(REPO_URI)"
    printed = _output(["apt-get", "indextargets", "--format", format_, "Created-By: Packages"])
    for line in printed.splitlines():
        _, codename, address = line.split()
        if codename == _release():
            return address
    raise ClusterError(
        f"apt knows no source of {_release()}, so no base of the images can be made. Run"
        " `apt-get update`, or set BASE to an image with Python 3.11 or newer."
    )


def _archive_folder(builder: str | None = None) -> Path:
    return cache_folder() / "images" / _digest(builder)


def _digest(builder: str | None) -> str:
    """Of the content of all sources."""
    digest = hashlib.sha256(f"{builder or ''} {os.environ.get('BASE') or BASE}".encode())
    for name in SOURCES:
        top = REPOSITORY / name
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(REPOSITORY)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def _drop_unused(folder: Path) -> None:
    """Archives are large, and of older sources nobody asks for them again.

    Those of another checkout may be in use at this moment."""
    for old in folder.iterdir():
        if old.is_dir() and time.time() - old.stat().st_mtime > UNUSED_SECONDS:
            shutil.rmtree(old)


def _tagged_images() -> set[str]:
    """Ids of the product's images in buildah's storage, where each build would add half a GiB."""
    names = "reference=*/gpumemory/gpu-memory-*"
    return set(_output(["buildah", "images", "--quiet", "--filter", names]).split())


def _output(command: Sequence[str]) -> str:
    """What a command prints; nothing where it fails or is not there."""
    environment = {**os.environ, "PATH": search_path()}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
    except FileNotFoundError:
        return ""
    return done.stdout.strip()


def _run(command: Sequence[str | Path], variables: dict[str, str] | None = None) -> None:
    environment = {**os.environ, "PATH": search_path(), **(variables or {})}
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        raise ClusterError(
            f"`{' '.join(map(str, command))}` ended with status {done.returncode}:\n"
            f"{done.stdout.strip()[-3000:]}"
        )


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Lets one process build at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
