"""Images can not be built where no base image is, but what goes into them can be checked."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text()
TEST_TOOLS = {"pytest", "mypy", "ruff", "hypothesis", "import-linter", "hatchling"}
locked = runpy.run_path(str(ROOT / "scripts" / "locked.py"))


def packages(image: str) -> dict[str, str]:
    text = locked["needed_blocks"](locked["direct_dependencies"](image), LOCK)
    return {block.partition("==")[0]: block for block in re.split(r"^(?=\w)", text, flags=re.M)[1:]}


def test_the_operator_gets_its_dependencies_and_no_tool_of_the_tests() -> None:
    found = packages("operator")

    assert {"kopf", "kubernetes", "aiohttp", "pydantic", "pydantic-core", "yarl"} <= found.keys()
    assert not TEST_TOOLS & found.keys()
    assert "nvidia-ml-py" not in found


def test_the_sidecar_gets_nvml_and_what_the_agent_asks_the_kubelet_with() -> None:
    assert packages("sidecar").keys() == {"nvidia-ml-py", "h2", "hpack", "hyperframe"}


@pytest.mark.parametrize("image", ["operator", "sidecar"])
def test_every_package_has_a_hash(image: str) -> None:
    for block in packages(image).values():
        assert "--hash=sha256:" in block


def test_a_dependency_that_is_not_locked_is_an_error() -> None:
    with pytest.raises(LookupError, match="missing-one"):
        locked["needed_blocks"]({"kopf", "missing-one"}, LOCK)


def test_both_images_run_as_nobody_and_name_no_registry() -> None:
    text = (ROOT / "Dockerfile").read_text()
    instructions = [line for line in text.splitlines() if not line.startswith("#")]

    assert instructions.count("USER 65532:65532") == 2
    assert [line for line in instructions if line.startswith("ARG")] == [
        "ARG BASE=python:3.13-slim"
    ]
    bases = [line.split()[1] for line in instructions if line.startswith("FROM")]
    assert set(bases) == {"${BASE}"}
    assert "://" not in "\n".join(instructions)


def test_modules_are_compiled_before_nobody_may_write_them() -> None:
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    for target in ("operator", "sidecar"):
        _, _, stage = text.partition(f"AS {target}\n")
        compiling, _, running = stage.partition("PYTHONDONTWRITEBYTECODE=1")
        [modules] = re.findall(r'RUN .*-c "import ([^"]+)"', compiling)
        assert {name.partition(".")[0] for name in modules.split(", ")} >= {f"gpumem_{target}"}
        assert "USER" not in compiling
        assert "USER 65532" in running
