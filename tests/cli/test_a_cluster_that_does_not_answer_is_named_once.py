"""What `kubectl gpumem` says of an API server that no connection can be made to."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from gpumem_operator.cli.app import app


def kubeconfig(folder: Path, server: str) -> Path:
    """Of a cluster at this address."""
    place = folder / "config"
    entry = {"name": "a", "cluster": {"server": server}}
    context = {"name": "a", "context": {"cluster": "a", "user": "a"}}
    user = {"name": "a", "user": {"token": "t"}}
    found = {"clusters": [entry], "contexts": [context], "users": [user], "current-context": "a"}
    place.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **found}))
    return place


@pytest.mark.parametrize("question", [("top",), ("tenants",), ("why", "pod/x")])
def test_one_line_with_address_cause_and_kubeconfig(
    tmp_path: Path, question: tuple[str, ...]
) -> None:
    server = "https://127.0.0.1:1"
    place = kubeconfig(tmp_path, server)
    result = CliRunner().invoke(app, [*question, "--kubeconfig", str(place)])
    assert result.exit_code == 2
    assert result.stderr == (
        f"error: API server {server}: not reached, it refuses connections (kubeconfig {place}):"
        " does the cluster run?\n"
    )
