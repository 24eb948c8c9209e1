"""A user's program behaves as if the shim were not there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shimmed import SIDECAR, Shimmed, interpreters


@pytest.mark.parametrize("version", interpreters())
def test_the_images_own_customizations_run_as_before(tmp_path: Path, version: str) -> None:
    container = Shimmed(tmp_path, interpreters()[version])
    container.module("sitecustomize", "import sys; sys.own = [__name__, __file__]\n")
    container.module("usercustomize", "import sys; sys.own += [__name__]\n")

    result = container.start(
        "import sys, sitecustomize; print(sys.own, sitecustomize.__file__ == sys.own[1])"
    )

    own = str(container.library / "sitecustomize.py")
    assert result.stderr == ""
    assert result.stdout in (
        f"{['sitecustomize', own, 'usercustomize']} True\n",
        # Where Python itself leaves users' customizations out, for example for root in a venv.
        f"{['sitecustomize', own]} True\n",
    )


@pytest.mark.parametrize("fault", ["raise ValueError('own')", "import missing_module"])
def test_an_error_of_the_images_own_is_told_as_before(container: Shimmed, fault: str) -> None:
    container.module("sitecustomize", fault)

    with_shim = container.start("print('went on')")
    without = container.start("print('went on')", path=str(container.library))

    assert "sitecustomize" in without.stderr
    assert (with_shim.stderr, with_shim.stdout, with_shim.returncode) == (
        without.stderr,
        without.stdout,
        without.returncode,
    )


def test_behind_another_sitecustomize_the_users_one_takes_over(container: Shimmed) -> None:
    # Python runs no usercustomize in a virtual environment.
    container.python = getattr(sys, "_base_executable", sys.executable)
    first = container.folder / "first"
    container.module("sitecustomize", "import torch\n", folder=first)

    container.start("pass", path=f"{first}:{container.shim}:{container.library}")

    assert len(container.states()) == 1


def test_two_shims_do_not_hand_on_to_each_other_for_ever(container: Shimmed) -> None:
    second = container.folder / "second"
    shutil.copytree(container.shim, second)
    container.module("sitecustomize", "print('own')")

    path = f"{container.shim}:{second}:{container.shim}:{container.library}"
    result = container.start("import torch", path=path)

    assert (result.stdout, result.stderr) == ("own\n", "")
    assert len(container.states()) == 1


@pytest.mark.parametrize("flags", [["-S"], ["-E"], ["-I"], ["-s"], ["-O"], ["-X", "utf8"]])
def test_it_works_or_is_not_there_under_every_flag(container: Shimmed, flags: list[str]) -> None:
    library = str(container.library)
    code = f"import sys; sys.path.append({library!r}); import torch; print(torch.__version__)"

    result = container.start(code, *flags)

    assert (result.stdout, result.stderr) == ("2.9.0\n", "")
    sees_the_shim = flags[0] not in ("-S", "-E", "-I")
    assert len(container.states()) == sees_the_shim


def test_it_works_in_a_virtual_environment(container: Shimmed) -> None:
    environment = container.folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    container.python = str(environment / "bin" / "python")
    [packages] = environment.glob("lib/python3.*/site-packages")
    container.module("tensorflow", "__version__ = '2.20'", folder=packages)
    container.module("sitecustomize", "print('of the environment')", folder=packages)

    result = container.start("import tensorflow", path=str(container.shim))

    assert (result.stdout, result.stderr) == ("of the environment\n", "")
    assert len(container.states()) == 1


def test_the_images_own_customization_can_be_executed_again(container: Shimmed) -> None:
    container.module("sitecustomize", "print('own')")
    code = (
        "import importlib, sitecustomize\n"
        "print(importlib.reload(sitecustomize) is sitecustomize, sorted(vars(sitecustomize)))\n"
    )

    with_shim = container.start(code)

    without = container.start(code, path=str(container.library))
    assert (with_shim.stdout, with_shim.stderr) == (without.stdout, "")


def test_threads_wait_for_the_images_own_customization(container: Shimmed) -> None:
    container.module(
        "sitecustomize",
        "import threading\n"
        "def work():\n"
        "    import sitecustomize\n"
        "    print('complete' if hasattr(sitecustomize, 'last') else 'half a module')\n"
        "thread = threading.Thread(target=work)\n"
        "thread.start()\n"
        "thread.join(0.2)\n"
        "last = True\n",
    )

    assert container.start("pass").stdout == "complete\n"


@pytest.mark.parametrize(
    ("torch", "ending"),
    [
        pytest.param("raise ImportError('no CUDA here')", "no CUDA here", id="an error"),
        pytest.param("raise SystemExit(7)", 7, id="an exit"),
        pytest.param("raise KeyboardInterrupt", "KeyboardInterrupt", id="an interruption"),
    ],
)
def test_how_a_failing_import_ends_is_not_changed(
    container: Shimmed, torch: str, ending: str | int
) -> None:
    container.module("torch", torch)

    result = container.start("import torch")

    assert ending == result.returncode or str(ending) in result.stderr.splitlines()[-1]
    assert container.states() == []


def test_a_folder_called_torch_is_none(container: Shimmed) -> None:
    (container.library / "torch.py").unlink()
    (container.library / "torch").mkdir()

    assert container.start("import torch; print(torch.__path__)").stderr == ""


def test_a_framework_that_is_missing_is_missed_as_before(container: Shimmed) -> None:
    result = container.start("import cupy")

    assert result.stderr.strip().endswith("No module named 'cupy'")


@pytest.mark.parametrize(
    "broken",
    [".", "state.py", "listener.py", "chain.py", "process.py", "limits.py", "frameworks/torch.py"],
)
def test_half_a_shim_harms_nobody(container: Shimmed, broken: str) -> None:
    path = container.shim / "gpumem_shim" / broken
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.write_text("this is no Python")

    result = container.start("import torch; print(torch.__version__)")

    assert (result.stdout, result.stderr) == ("2.9.0\n", "")


def test_it_imports_nothing_that_costs_where_no_framework_is(container: Shimmed) -> None:
    code = (
        "import sys\n"
        "import sitecustomize, usercustomize\n"
        "dear = {'json', 'typing', 're', 'threading', 'dataclasses', 'ctypes'}\n"
        "print(sorted(dear & set(sys.modules)),\n"
        "      sorted(m for m in sys.modules if m.startswith('gpumem_shim.')))\n"
    )
    result = container.start(code, "-S")
    assert (result.stdout, result.stderr) == ("[] []\n", "")


def test_the_source_of_the_shim_is_what_is_installed(container: Shimmed) -> None:
    source = SIDECAR / "gpumem_shim" / "state.py"

    assert (container.shim / "gpumem_shim" / "state.py").read_text() == source.read_text()


def test_a_missing_module_is_told_of_with_the_setting_that_brings_it_back(
    container: Shimmed,
) -> None:
    container.environment = {"GPUMEM_PYTHON_PATH": "Added"}

    missing = container.start("import company_library")
    other = container.start("raise ValueError('unrelated')")

    *told, hint = missing.stderr.splitlines()
    assert told[-1] == "ModuleNotFoundError: No module named 'company_library'"
    assert "'company_library'" in hint
    assert "gpumemory.dev/python-path" in hint
    assert "gpumem" not in other.stderr


def test_without_a_hidden_path_nothing_is_added(container: Shimmed) -> None:
    assert "gpumem" not in container.start("import company_library").stderr


@pytest.mark.parametrize("path", ["Added", "Own"])
def test_consoles_inside_a_program_show_errors_as_before(container: Shimmed, path: str) -> None:
    container.environment = {"GPUMEM_PYTHON_PATH": path}
    result = container.start(
        "import code, sys\n"
        "shown = []\n"
        "class Console(code.InteractiveInterpreter):\n"
        "    def write(self, text): shown.append(text)\n"
        "Console().runsource('import company_library')\n"
        "print(sys.excepthook is sys.__excepthook__, 'company_library' in ''.join(shown))\n"
    )

    assert (result.stdout, result.stderr) == ("True True\n", "")


def test_nothing_is_printed_elsewhere_where_no_errors_can_be(container: Shimmed) -> None:
    container.environment = {"GPUMEM_PYTHON_PATH": "Added"}

    result = container.start("import os, sys; sys.stderr = None; import company_library")

    assert (result.stdout, result.stderr) == ("", "")
