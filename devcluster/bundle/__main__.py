"""The command `python -m devcluster.bundle`."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from devcluster.bundle.images import merge_archives
from devcluster.bundle.packages import PYTHONS, unpack_packages
from devcluster.bundle.parts import MIB, write_parts
from devcluster.bundle.programs import BUNDLE_PACKAGES, copy_programs
from devcluster.failure import ClusterError
from devcluster.gobuild import build, built_path
from devcluster.gomodules import NODE_PROGRAMS, PROGRAMS, cache_folder, check_wanted
from devcluster.node.images import REPOSITORY, product_archives, why_no_images
from devcluster.node.pause import pause_archive
from devcluster.node.requirements import missing_programs, why_not, why_not_packages
from devcluster.progress import say
from devcluster.simulated_driver import build as build_driver

NAME = "gpumem-bundle"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m devcluster.bundle")
    parser.add_argument("folder", type=Path, help="where the parts are written; it is emptied")
    parser.add_argument("--part-mb", type=int, default=50, help="size of a part (default: 50 MiB)")
    parser.add_argument(
        "--python",
        nargs="*",
        choices=PYTHONS,
        default=PYTHONS,
        help="versions that the other machine may have (default: all of these)",
    )
    options = parser.parse_args(arguments)
    part_bytes = options.part_mb * MIB
    try:
        parts = bundle(options.folder, part_bytes=part_bytes, pythons=options.python)
    except ClusterError as error:
        print(f"bundle: {error}", file=sys.stderr)
        return 1
    for part in parts:
        print(f"{part.stat().st_size / MIB:6.1f} MiB  {part}")
    print(f"There: cat {NAME}.* | tar --extract --xz --directory /opt && /opt/{NAME}/start")
    return 0


def bundle(folder: Path, *, part_bytes: int, pythons: Sequence[str] = PYTHONS) -> list[Path]:
    """Write the archive's parts into `folder`; returns them in order.

    Raises ClusterError where this machine lacks something that belongs to it, and where
    GPUMEM_KUBERNETES is wrong."""
    check_wanted()
    reason = why_not() or why_not_packages(missing_programs(BUNDLE_PACKAGES)) or why_no_images()
    if reason is not None:
        raise ClusterError(f"The archive can not be made here: {reason}.")
    with tempfile.TemporaryDirectory(prefix="gpumem-bundle-") as scratch:
        content = Path(scratch) / NAME
        content.mkdir(mode=0o755)
        copy_checkout(content / "checkout")
        _copy_cache(content / "cache" / cache_folder().name)
        copy_programs(content / "programs")
        say("unpacking Python packages")
        unpack_packages(content / "python", pythons)
        shutil.copy2(Path(__file__).with_name("start"), content / "start")
        say("compressing (a few minutes)")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return write_parts(content, folder, name=NAME, part_bytes=part_bytes)


def copy_checkout(target: Path) -> None:
    """What git knows of this checkout and what it would take, changes included."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (REPOSITORY / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, target / name)


def _copy_cache(target: Path) -> None:
    """What is built on first use, at the places where the other machine's cache would have it."""
    programs = [*PROGRAMS, *NODE_PROGRAMS]
    build(programs)
    built = [*(built_path(program) for program in programs), pause_archive()]
    driver = build_driver()
    for path in [*built, driver.library, driver.program]:
        copy = target / path.relative_to(cache_folder())
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    archives = product_archives()
    images = target / archives[0].parent.relative_to(cache_folder())
    images.mkdir(parents=True)
    merge_archives(archives, images / "images.tar")


if __name__ == "__main__":
    sys.exit(main())
