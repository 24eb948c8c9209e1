"""The command line and what it loads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpumem_operator.__main__ import main
from gpumem_operator.settings import SettingsError, load_values


def arguments(settings: Path, *more: str) -> list[str]:
    return ["--role", "webhook", "--settings", str(settings), "--namespace", "n", *more]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        pytest.param("sidecar: [", "is not YAML", id="not YAML"),
        pytest.param("- a", "holds a list", id="a list"),
        pytest.param(
            "resourceClaims: Deny",
            r"resourceClaims: Input should be 'Warn' or 'Refuse' \(given: 'Deny'\)",
            id="a value",
        ),
        pytest.param("sidecar: {imag: x}", r"sidecar\.imag: unknown field", id="a typo"),
    ],
)
def test_a_wrong_settings_file_is_named_with_field_and_value(
    tmp_path: Path, content: str, complaint: str
) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(content)
    with pytest.raises(SettingsError, match=complaint) as caught:
        load_values(path)
    assert str(path) in str(caught.value)


def test_an_empty_settings_file_means_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.touch()
    assert load_values(path).resource_claims == "Warn"


def test_missing_flags_end_with_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(tmp_path / "missing.yaml", "--cert-secret", "c")) == 2
    assert "missing.yaml can not be read" in capsys.readouterr().err
    settings = tmp_path / "settings.yaml"
    settings.touch()
    assert main(arguments(settings)) == 2
    assert "--cert-secret NAME or --cert-dir DIR" in capsys.readouterr().err
    assert main(arguments(settings, "--cert-secret", "c")) == 2
    assert "--seal-secret NAME" in capsys.readouterr().err


@pytest.mark.parametrize("port", ["-1", "65536", "x"])
def test_a_wrong_port_is_refused(
    tmp_path: Path, port: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments(tmp_path, "--port", port))
    assert "is not a port" in capsys.readouterr().err


def test_the_webhook_runs_without_what_it_has_no_use_for(tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.touch()
    kubeconfig = tmp_path / "none"
    flags = arguments(
        settings, "--cert-secret", "c", "--seal-secret", "s", "--kubeconfig", str(kubeconfig)
    )
    # It loads everything before it finds that there is no kubeconfig.
    program = (
        "import sys; from gpumem_operator.__main__ import main\n"
        f"status = main({flags!r})\n"
        "loaded = [name for name in sys.modules if name.startswith('kubernetes.')]\n"
        "compiled = [name for name in sys.modules if name.startswith('frozenlist._')]\n"
        "print(status, 'kopf' in sys.modules, loaded + compiled)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "2 True []"
    assert f"{kubeconfig} can not be read" in result.stderr
