from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from gpumem_operator.cli.app import app

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a command on objects, each file a list of them."""

    def run_command(
        command: str, *files: list[dict[str, Any]], options: tuple[str, ...] = ()
    ) -> Any:
        arguments = [command, *options]
        for number, objects in enumerate(files):
            path = tmp_path / f"file{number}.yaml"
            path.write_text("\n---\n".join(json.dumps(one) for one in objects))
            arguments += ["-f", str(path)]
        return CliRunner().invoke(app, arguments)

    return run_command
