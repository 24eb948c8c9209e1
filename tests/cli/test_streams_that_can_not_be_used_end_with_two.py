"""1 means a refused pod; a stream that is closed, full or left is something else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from patience import PATIENCE_SECONDS

KUBECTL_GPUMEM = [sys.executable, "-c", "from gpumem_operator.cli.app import main; main()"]
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "train"},
    "spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 1}}}]},
}


@pytest.fixture
def pods(tmp_path: Path) -> Path:
    """More than a pipe holds."""
    path = tmp_path / "pods.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": 500 * [POD]}))
    return path


def shell(redirected: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f'set -o pipefail; "$@" {redirected}', "bash", *KUBECTL_GPUMEM, *arguments],
        # Unbuffered, Python takes what was written in part for written.
        env={name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )


@pytest.mark.parametrize("command", ["render", "charge"])
@pytest.mark.parametrize(
    ("redirected", "said"),
    [
        pytest.param(">&-", "standard output is closed: ", id="closed"),
        pytest.param("> /dev/full", "standard output can not be written: No space left", id="full"),
    ],
)
def test_a_result_that_can_not_be_written_is_no_refusal(
    pods: Path, command: str, redirected: str, said: str
) -> None:
    result = shell(redirected, command, "-f", str(pods))

    assert result.returncode == 2
    assert f"error: {said}" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_reader_that_leaves_is_told_nothing(pods: Path) -> None:
    result = shell("2> >(cat >&2) | head -n 1", "charge", "-f", str(pods))

    assert result.returncode == 2
    assert "error" not in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("redirected", ["<&-", "0> /dev/null"])
def test_an_input_that_can_not_be_read_is_named(redirected: str) -> None:
    result = shell(redirected, "render", "-f", "-")

    assert result.returncode == 2
    assert result.stderr.startswith("error: standard input: ")
    assert result.stderr.count("\n") == 1


def test_where_nothing_can_be_told_the_code_is(pods: Path) -> None:
    assert shell("> /dev/full 2> /dev/full", "charge", "-f", str(pods)).returncode == 2


def test_help_that_can_not_be_written_is_no_refusal() -> None:
    assert shell("> /dev/full", "--help").returncode == 2
