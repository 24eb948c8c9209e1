"""`scripts/setup.sh` makes the virtual environment anew when what is installed changes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cluster_processes import REPOSITORY, write_script

COPIED = ("scripts/setup.sh", "pyproject.toml", "requirements.lock")


class Checkout:
    """A copy of the files that count, and a Python that writes down what it should install."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "scripts").mkdir(parents=True)
        for name in COPIED:
            shutil.copy(REPOSITORY / name, folder / name)
        write_script(folder / "installer", 'echo "$*" >> log')
        write_script(
            folder / "python",
            f'[ "$1$2" = -mvenv ] || exec {sys.executable} "$@"',
            "mkdir -p .venv/bin && cp installer .venv/bin/python",
        )

    def replace(self, name: str, old: str, new: str) -> None:
        path = self.folder / name
        before = path.read_text()
        assert old in before
        path.write_text(before.replace(old, new, 1))

    def installs(self) -> bool:
        """Run the set-up; says whether it installed the packages."""
        log = self.folder / "log"
        log.unlink(missing_ok=True)
        subprocess.run(
            ["bash", "scripts/setup.sh"],
            cwd=self.folder,
            env={**os.environ, "PYTHON": str(self.folder / "python")},
            capture_output=True,
            check=True,
        )
        done = log.read_text().splitlines()
        assert done[-1] == "-m devcluster build"
        return any(line.startswith("-m pip install") for line in done)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    made = Checkout(tmp_path / "checkout")
    assert made.installs()
    return made


def test_the_second_time_nothing_is_installed(checkout: Checkout) -> None:
    assert not checkout.installs()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        pytest.param("pyproject.toml", "line-length = 100", "line-length = 99", id="a linter's"),
        pytest.param("pyproject.toml", "timeout = 600", "timeout = 6", id="pytest's"),
        pytest.param("pyproject.toml", "[project]", "# Words.\n[project]", id="a comment"),
        pytest.param("scripts/setup.sh", "set -euo", "# Words.\nset -euo", id="the script's"),
    ],
)
def test_what_does_not_concern_the_packages_changes_nothing(
    checkout: Checkout, name: str, old: str, new: str
) -> None:
    checkout.replace(name, old, new)
    assert not checkout.installs()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        pytest.param("requirements.lock", "==", "==9", id="a pin"),
        pytest.param("pyproject.toml", "[project.scripts]", '[project.scripts]\na = "b:c"',
                     id="a command"),
        pytest.param("pyproject.toml", '["operator", "sidecar"]', '["operator"]',
                     id="a source root"),
        pytest.param("scripts/setup.sh", "--no-deps", "--pre --no-deps", id="how it is installed"),
    ],
)  # fmt: skip
def test_what_is_installed_is_installed_anew_when_it_changes(
    checkout: Checkout, name: str, old: str, new: str
) -> None:
    checkout.replace(name, old, new)
    assert checkout.installs()
    assert not checkout.installs()


def test_a_repository_that_moved_is_set_up_again(checkout: Checkout) -> None:
    checkout.folder = checkout.folder.rename(checkout.folder.parent / "moved")
    assert checkout.installs()
