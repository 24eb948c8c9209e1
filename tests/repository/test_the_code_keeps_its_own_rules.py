"""What `make verify` runs as steps, as tests, so that `make test` alone proves the repository."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
BIN = Path(sys.executable).parent
LONGEST_FILE_LINES = 320


def run(*command: str | Path) -> None:
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def tracked(*patterns: str) -> list[Path]:
    found = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in found.stdout.splitlines() if (ROOT / name).is_file()]


@pytest.mark.parametrize(
    "command",
    [
        pytest.param([BIN / "ruff", "check", "."], id="style"),
        pytest.param([BIN / "ruff", "format", "--check", "."], id="format"),
        pytest.param([BIN / "mypy"], id="types"),
        pytest.param([BIN / "lint-imports"], id="import directions"),
        pytest.param([sys.executable, "-m", "gpumem_operator.cli.generate", "--check"],
                     id="generated files"),
    ],
)  # fmt: skip
def test_a_tool_finds_nothing(command: list[str | Path]) -> None:
    run(*command)


def test_source_roots_do_not_shadow_the_standard_library() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists()
    assert not (ROOT / "sidecar" / "__init__.py").exists()


def test_no_file_is_too_long_to_read_at_once() -> None:
    lengths = {path: path.read_text().count("\n") for path in tracked("*.py", "*.sh")}
    assert [str(path) for path, lines in lengths.items() if lines > LONGEST_FILE_LINES] == []


def test_no_file_names_a_machine_or_a_registry() -> None:
    # /home/kubernetes is where nodes of GKE have NVIDIA's driver.
    paths = r"(?<![\w.])/(?:work|root|home/(?!kubernetes/)\w+)/"
    forbidden = re.compile(paths + r"|pypi\.org|proxy\.golang|npmjs")
    texts = {path: path.read_text(errors="replace") for path in tracked()}
    this = Path(__file__)
    assert [str(p) for p, text in texts.items() if p != this and forbidden.search(text)] == []
