"""Every command that a document shows is run here, or named with the test that runs it."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpumem_operator.cli.app import app

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

RUN_ELSEWHERE = {
    "make demo": "tests/demo",
    "make demo KEEP=1": "tests/demo",
    "kubectl get --raw /api/v1/namespaces/gpumem-system/pods/POD:8081/proxy/metrics": "tests/node",
    "kubectl get daemonset gpu-memory-operator-agent -n gpumem-system": "tests/chart",
    "kubectl describe daemonset gpu-memory-operator-agent -n gpumem-system": "tests/chart",
    "kubectl create rolebinding gpu-readers -n gpumem-system"
    " --role=gpu-memory-operator-reader --group=platform-team": "tests/intake",
    "make test": "this run",
    "make verify": "tests/repository",
    "make generate": "tests/repository",
    "make bench": "tests/webhook (--quick)",
}


def commands() -> Iterator[tuple[str, str]]:
    for document in DOCUMENTS:
        for block in re.findall(r"```console\n(.*?)```", document.read_text(), re.DOTALL):
            for line in re.findall(r"^\$ (.+)$", block, re.MULTILINE):
                yield str(document.relative_to(ROOT)), line.strip()


@pytest.mark.parametrize(("document", "command"), list(commands()))
def test_a_shown_command_works(document: str, command: str) -> None:
    if command in RUN_ELSEWHERE:
        return
    if command.startswith("kubectl gpumem "):
        assert_understood(shlex.split(command)[2:])
        return
    if command.startswith(".venv/bin/kubectl-gpumem "):
        result = subprocess.run(shlex.split(command), cwd=ROOT, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        return
    covered = " ".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    covered += (ROOT / "devcluster" / "installation.py").read_text()
    words = shlex.split(command)
    assert " ".join(words[:2]) in covered or words[0] + '", "' + words[1] in covered, (
        f"{document} shows `{command}`, and no test runs it"
    )


def assert_understood(arguments: list[str]) -> None:
    """tests/intake and tests/demo run these in a cluster; this one has the same words."""
    result = CliRunner().invoke(app, [*arguments, "--kubeconfig", "/nonexistent"])
    assert result.stderr.startswith("error: no cluster can be asked"), result.stderr
    kinds = {word.partition("/")[0] for word in arguments if "/" in word}
    words = {word for word in arguments if word.startswith("-")} | {arguments[0]}
    covered = "".join(path.read_text() for path in (ROOT / "tests" / "intake").glob("*.py"))
    missing = [word for word in words if f'"{word}"' not in covered]
    missing += [kind for kind in kinds if not re.search(rf'"{kind}/', covered)]
    assert missing == [], f"no test in tests/intake says {missing}"


OURS = ("bench", "devcluster", "gpu_e2e", "gpumem_operator")
MODULE = re.compile(rf"(\S+=\S+ )?(\S*\bpython3?) -m ((?:{'|'.join(OURS)})\b[\w.]*)")
RUNS = {
    "docs/frameworks-on-a-gpu.md": "the command of a run that was, in a folder of its own",
}


def modules() -> Iterator[tuple[str, str, str]]:
    """Document, what starts Python, and the module of ours that it is to run."""
    for document in DOCUMENTS:
        name = str(document.relative_to(ROOT))
        for path, python, module in MODULE.findall(document.read_text()):
            if name not in RUNS:
                yield name, path + python.lstrip("`'\"$("), module


@pytest.mark.parametrize(("document", "python", "module"), sorted(set(modules())))
def test_a_module_of_ours_is_run_by_a_python_that_finds_it(
    document: str, python: str, module: str
) -> None:
    """Only that of `make setup` has them, or one that is told where they are."""
    found = python == ".venv/bin/python" or python.startswith("PYTHONPATH=operator:sidecar:. ")
    assert found, f"{document}: `{python} -m {module}` does not find its module"
    path = ROOT / module.replace(".", "/")
    is_there = path.with_suffix(".py").exists() or (path / "__main__.py").exists()
    inside = ROOT / "operator" / module.replace(".", "/")
    assert is_there or module.endswith(".PART") or inside.with_suffix(".py").exists(), module


def test_every_module_that_is_shown_is_seen_here() -> None:
    assert ("docs/scaling.md", ".venv/bin/python", "bench.scaling_day") in set(modules())
    assert MODULE.findall("`python -m bench.scaling_day`") == [("", "`python", "bench.scaling_day")]


def test_every_make_target_of_the_readme_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"[`$] ?make ([a-z]+)\b", (ROOT / "README.md").read_text()):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
