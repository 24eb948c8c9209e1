"""The init container's one task."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

from shimmed import SIDECAR, install


def files(target: Path) -> dict[str, int]:
    return {
        str(path.relative_to(target)): stat.S_IMODE(path.stat().st_mode)
        for path in target.rglob("*")
    }


def modules_of_the_shim() -> set[str]:
    """Everything but what the init container alone needs."""
    package = SIDECAR / "gpumem_shim"
    found = {str(path.relative_to(package)) for path in package.rglob("*.py")}
    return {path for path in found if not path.startswith("site/")} - {"__main__.py", "install.py"}


def test_everybody_can_read_what_is_installed_and_nothing_else_is(tmp_path: Path) -> None:
    umask = os.umask(0o077)
    try:
        assert install(tmp_path / "shim").returncode == 0
    finally:
        os.umask(umask)

    assert files(tmp_path / "shim") == {
        "sitecustomize.py": 0o644,
        "usercustomize.py": 0o644,
        "gpumem_shim": 0o755,
        "gpumem_shim/frameworks": 0o755,
        **{f"gpumem_shim/{path}": 0o644 for path in modules_of_the_shim()},
    }


def test_a_second_time_changes_nothing(tmp_path: Path) -> None:
    install(tmp_path)
    before = files(tmp_path)
    (tmp_path / "sitecustomize.py").write_text("from an older version")

    assert install(tmp_path).returncode == 0

    assert files(tmp_path) == before
    assert "gpumem_shim" in (tmp_path / "sitecustomize.py").read_text()


def test_a_target_that_can_not_be_written_is_told_with_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    result = install(tmp_path / "file")

    assert result.returncode == 1
    assert "was not installed into" in result.stderr
    assert "Next step" in result.stderr


def test_other_arguments_show_the_usage() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "gpumem_shim"],
        env=os.environ | {"PYTHONPATH": str(SIDECAR)},
        capture_output=True,
        text=True,
    )

    assert result.returncode == 2
    assert result.stderr.startswith("usage: ")
