"""What is generated is in the repository, and is what the models say now."""

from pathlib import Path

import pytest
import yaml

from gpumem_operator.api.crd import KINDS, Kind
from gpumem_operator.cli.generate import CHART, REPOSITORY, generated_files, main, outdated, write


def test_every_generated_file_is_up_to_date() -> None:
    assert outdated(REPOSITORY) == []


def test_the_check_fails_and_names_the_command_where_a_file_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gpumem_operator.cli.generate.REPOSITORY", tmp_path)
    assert main(["--check"]) == 1
    assert "run `make generate`" in capsys.readouterr().err
    assert main([]) == 0
    assert main(["--check"]) == 0


def test_a_changed_file_is_shown_as_a_diff(tmp_path: Path) -> None:
    write(tmp_path)
    changed = tmp_path / "crds" / "gpumemorytenants.yaml"
    changed.write_text(changed.read_text().replace("scope: Cluster", "scope: Namespaced"))
    (diff,) = outdated(tmp_path)
    assert "-  scope: Namespaced" in diff
    assert "+  scope: Cluster" in diff


def test_every_generated_file_says_what_made_it() -> None:
    for path, text in generated_files(REPOSITORY).items():
        assert "make generate" in "".join(text.splitlines()[:2]), path


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_chart_has_the_same_definition_and_keeps_it_at_uninstall(kind: Kind) -> None:
    name = f"{kind.plural}.yaml"
    plain = yaml.safe_load((REPOSITORY / "crds" / name).read_text())
    template = (REPOSITORY / CHART / "templates" / "crds" / name).read_text()
    body = "\n".join(line for line in template.splitlines() if not line.startswith("{{"))
    in_chart = yaml.safe_load(body)
    assert in_chart["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    assert in_chart == plain
