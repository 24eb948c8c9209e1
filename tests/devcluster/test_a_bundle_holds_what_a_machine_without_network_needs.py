"""The parts of the archive for a machine without a network, each as that machine would use it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from cluster_processes import REPOSITORY, write_script
from devcluster.bundle.__main__ import copy_checkout
from devcluster.bundle.images import merge_archives
from devcluster.bundle.packages import needed_packages
from devcluster.bundle.parts import write_parts
from devcluster.bundle.programs import libraries_of
from devcluster.failure import ClusterError

START = REPOSITORY / "devcluster" / "bundle" / "start"


def test_parts_joined_are_the_folder_and_none_is_too_large(tmp_path: Path) -> None:
    source = tmp_path / "content"
    source.mkdir()
    (source / "random").write_bytes(os.urandom(30_000))
    target = tmp_path / "parts"
    target.mkdir()

    parts = write_parts(source, target, name="bundle", part_bytes=10_000)

    assert [part.name for part in parts] == ["bundle.00", "bundle.01", "bundle.02", "bundle.03"]
    assert max(part.stat().st_size for part in parts) == 10_000
    joined = tmp_path / "joined.tar.xz"
    joined.write_bytes(b"".join(part.read_bytes() for part in parts))
    with tarfile.open(joined) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    unpacked = tmp_path / "unpacked" / "content" / "random"
    assert unpacked.read_bytes() == (source / "random").read_bytes()
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=target, check=True)


def archive_of(path: Path, image: str, *blobs: str) -> Path:
    folder = path.with_suffix("")
    (folder / "blobs").mkdir(parents=True)
    (folder / "index.json").write_text(json.dumps({"manifests": [{"digest": image}]}))
    for blob in blobs:
        (folder / "blobs" / blob).write_text(blob)
    with tarfile.open(path, "w") as archive:
        for file in sorted(folder.rglob("*")):
            archive.add(file, str(file.relative_to(folder)), recursive=False)
    return path


def test_layers_that_images_share_are_there_once(tmp_path: Path) -> None:
    archives = [
        archive_of(tmp_path / "one.tar", "sha256:one", "base", "first"),
        archive_of(tmp_path / "two.tar", "sha256:two", "base", "second"),
    ]

    merge_archives(archives, tmp_path / "merged.tar")

    with tarfile.open(tmp_path / "merged.tar") as merged:
        names = merged.getnames()
        found = merged.extractfile("index.json")
        assert found is not None
        index = json.load(found)
    assert sorted(names) == ["blobs/base", "blobs/first", "blobs/second", "index.json"]
    assert [manifest["digest"] for manifest in index["manifests"]] == ["sha256:one", "sha256:two"]


def test_an_archive_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with tarfile.open(tmp_path / "docker.tar", "w") as archive:
        archive.add(tmp_path / "file", "manifest.json")

    with pytest.raises(ClusterError, match=r"docker\.tar is no OCI archive"):
        merge_archives([tmp_path / "docker.tar"], tmp_path / "merged.tar")


def test_the_c_library_stays_the_other_machines_own() -> None:
    names = set(libraries_of(Path("/bin/ls").resolve()))

    assert names, "ls of Debian and Ubuntu needs a library besides"
    assert not {name for name in names if name.startswith(("libc.so", "ld-linux"))}


def test_the_packages_are_those_of_product_and_tests_alone() -> None:
    names = {block.partition("==")[0] for block in needed_packages().splitlines() if "==" in block}

    assert {"kopf", "nvidia-ml-py", "pytest", "hypothesis"} <= names
    assert not names & {"mypy", "ruff", "import-linter", "hatchling"}


def test_the_checkout_has_changes_and_no_ignored_file(tmp_path: Path) -> None:
    copy_checkout(tmp_path / "checkout")

    assert (tmp_path / "checkout" / "devcluster" / "bundle" / "start").exists()
    assert not (tmp_path / "checkout" / ".venv").exists()
    assert not list((tmp_path / "checkout").rglob("__pycache__"))


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """An unpacked archive with packages for another version of Python; tests add this one's."""
    (tmp_path / "python" / "3.9").mkdir(parents=True)
    (tmp_path / "checkout").mkdir()
    (tmp_path / "start").write_text(START.read_text())
    (tmp_path / "start").chmod(0o755)
    write_script(tmp_path / "programs" / "bin" / "runc", "exit 0")
    return tmp_path


def start(bundle: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": sys.executable}
    return subprocess.run(
        [bundle / "start", *command], env=environment, capture_output=True, text=True
    )


def test_a_python_without_packages_is_told_which_would_do(bundle: Path) -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"

    done = start(bundle, "-c", "print('ran')")

    assert done.returncode == 1
    assert f"{sys.executable} is Python {version}, and there are packages for: 3.9" in done.stderr
    assert done.stdout == ""


def test_a_command_runs_with_programs_cache_and_packages_of_the_archive(bundle: Path) -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    packages = bundle / "python" / version
    packages.mkdir()
    (packages / "carried.py").write_text("came = 'along'")

    program = "import carried, os, shutil; print(carried.came, shutil.which('runc'), os.getcwd())"
    done = start(bundle, "-c", f"{program}; print(os.environ['XDG_CACHE_HOME'])")

    assert done.stdout.split() == [
        "along",
        f"{bundle}/programs/bin/runc",
        f"{bundle}/checkout",
        f"{bundle}/cache",
    ]


def test_programs_that_do_not_run_there_are_told(bundle: Path) -> None:
    (bundle / "python" / f"{sys.version_info.major}.{sys.version_info.minor}").mkdir()
    write_script(bundle / "programs" / "bin" / "runc", "exit 1")

    done = start(bundle, "-c", "print('ran')")

    assert "want a C library as new as" in done.stderr
    assert done.stdout == ""
