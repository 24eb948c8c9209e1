from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpumem_operator.cli.app import app

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(
    r"```console\n\$ \.venv/bin/kubectl-gpumem (.+)\n((?:.*\n)*?)```",
    (ROOT / "docs" / "files.md").read_text(),
)


@pytest.mark.parametrize(("arguments", "shown"), BLOCKS)
def test_the_page_shows_the_answer_of_this_version(
    arguments: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(app, shlex.split(arguments))
    assert result.stdout + result.stderr == shown
