"""What helm itself has to say about the chart."""

from __future__ import annotations

from chart_rendering import helm
from devcluster.installation import CHART


def test_helm_finds_nothing_wrong() -> None:
    result = helm("lint", str(CHART), "--strict")

    assert result.returncode == 0, result.stdout + result.stderr


def test_the_notes_name_the_next_step() -> None:
    result = helm("install", "gpu-memory-operator", str(CHART), "--dry-run=client")

    _, _, notes = result.stdout.partition("NOTES:")
    assert "Next step" in notes, result.stderr
    assert "kind: GPUMemoryPolicy" in notes
