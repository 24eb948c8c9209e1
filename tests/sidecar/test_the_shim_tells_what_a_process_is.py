"""One state file for each process that imported a framework, and nothing for any other."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from shimmed import Shimmed, interpreters

GOLDEN = Path(__file__).parents[1] / "golden" / "shim-state.json"
GPU = "GPU-11111111-0000-0000-0000-000000000001"
NOT_ROOT = "-dac_override,-dac_read_search,-fowner"


def state(container: Shimmed) -> dict[str, Any]:
    [path] = container.states()
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded


@pytest.mark.parametrize("version", interpreters())
def test_the_file_is_the_golden_one_in_every_python(tmp_path: Path, version: str) -> None:
    container = Shimmed(tmp_path, interpreters()[version])
    container.environment = {"GPUMEM_CONTEXT_RESERVE_BYTES": str(2**30)}
    container.module("torch", '__version__ = "2.9.0"\n')
    container.module("cupy", '__version__ = "13.6.0"\n')

    result = container.start(
        "import cupy, torch\n"
        "from gpumem_shim import process, state\n"
        f"gpu, told = {GPU!r}, process.own.told\n"
        "told.frameworks['cupy'] = state.Framework(\n"
        "    '13.6.0', {}, 'NotStarted', None, 'Supported')\n"
        "told.frameworks['torch'] = state.Framework(\n"
        "    '2.9.0', {gpu: 7516192768}, None, 2, 'Supported')\n"
        "told.servers['vllm'] = state.Server(\n"
        "    '0.33.0', 'gpu_memory_utilization', '0.92', '0.0498')\n"
        "told.gpus[gpu] = state.Held(7522484224, 744488960)\n"
        "told.reclaimed = state.Reclaimed('a-1', 'Done', 2**30)\n"
        "state.write(told)\n"
        "import os; print(os.getpid(), open('/proc/self/stat').read())\n"
    )

    assert (result.returncode, result.stderr) == (0, "")
    pid, _, after_command = result.stdout.partition(" ")
    start = after_command.rpartition(")")[2].split()[19]
    [path] = container.states()
    assert path.name == f"{pid}-{start}.json"
    text = re.sub(r'"pid": \d+', '"pid": 4711', path.read_text())
    text = re.sub(r'"startTime": \d+', '"startTime": 123456', text)
    assert text == GOLDEN.read_text()


def test_a_process_without_a_framework_leaves_nothing(container: Shimmed) -> None:
    result = container.start(
        "import json, importlib.util; print(importlib.util.find_spec('torch'))"
    )

    assert "torch" in result.stdout
    assert container.everything_in_the_run_folder() == []


def test_frameworks_are_added_as_they_come(container: Shimmed) -> None:
    container.module("jax", "import torch\n__version__ = '0.8'\n")
    container.module("cupy", "")

    container.start("import jax, cupy")

    assert [(one["name"], one["version"]) for one in state(container)["frameworks"]] == [
        ("cupy", None),
        ("jax", "0.8"),
        ("torch", "2.9.0"),
    ]


def test_an_undeclared_limit_is_null_and_not_zero(container: Shimmed) -> None:
    for text in ("", "8Gi", "-1", "9" * 20, "9" * 5000):
        container.environment = {"GPUMEM_LIMIT_BYTES": text}
        container.start("import torch")
        assert state(container)["limitBytes"] is None
        container.states()[0].unlink()


def test_the_sidecar_can_read_it_whatever_the_umask(container: Shimmed) -> None:
    container.start("import os; os.umask(0o077); import torch")

    [path] = container.states()
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o777


def test_a_process_that_becomes_another_user_goes_on_telling(container: Shimmed) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    # By a path from where it is: only this user may go through the folders above.
    container.environment = {"GPUMEM_RUN_PATH": "."}
    container.start(
        f"import os; os.chdir({str(container.run_folder)!r})\n"
        "import torch\n"
        "from gpumem_shim import process\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "process.own.told.frameworks['torch'].cap_hits = 3\n"
        "process.own.refresh()\n",
    )
    assert state(container)["frameworks"][0]["capHits"] == 3


def test_a_process_that_clears_its_environment_goes_on_telling(container: Shimmed) -> None:
    container.start(
        "import torch, os\n"
        "from gpumem_shim import process\n"
        "os.environ.clear()\n"
        "process.own.told.frameworks['torch'].cap_hits = 3\n"
        "process.own.refresh()\n"
        "if not os.fork(): os._exit(0)\n"
        "os.wait()\n"
    )
    hits = [json.loads(path.read_text())["frameworks"][0]["capHits"] for path in container.states()]
    assert hits == [3, 3]


def test_what_can_not_be_replaced_is_not_left_to_be_believed(container: Shimmed) -> None:
    container.start(
        "import torch, os, resource, signal\n"
        "from gpumem_shim import process, state\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))\n"
        "process.own.told.frameworks['torch'].cap_hits = 3\n"
        "process.own.refresh()\n"
        "assert not os.path.exists('/'.join(state.own_file()) + '.json')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)\n"
        "process.own.refresh()\n"
    )
    assert state(container)["frameworks"][0]["capHits"] == 3


def test_a_forked_process_has_a_file_of_its_own(container: Shimmed) -> None:
    container.start(
        "import torch, os\n"
        "child = os.fork()\n"
        "if not child: os.read(0, 1); os._exit(0)\n"
        "os.waitpid(child, 0)\n"
    )
    first, second = (json.loads(path.read_text()) for path in container.states())

    assert first["pid"] != second["pid"]
    assert first["frameworks"] == second["frameworks"]


def test_a_fork_while_another_thread_writes_does_not_hang(container: Shimmed) -> None:
    # The child inherits a lock that is held by a thread which it does not have.
    result = container.start(
        "import os, signal, threading, torch\n"
        "from gpumem_shim import process, state\n"
        "held, forked = threading.Event(), threading.Event()\n"
        "def write():\n"
        "    with state.lock():\n"
        "        held.set()\n"
        "        forked.wait()\n"
        "threading.Thread(target=write).start()\n"
        "held.wait()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    signal.alarm(10)\n"
        "    process.own.imported('torch', torch)\n"
        "    os._exit(0)\n"
        "print(os.waitpid(child, 0)[1])\n"
        "forked.set()\n"
    )

    assert result.stdout == "0\n", result.stderr
    assert len(container.states()) == 2


def test_files_of_processes_that_are_gone_are_removed(container: Shimmed) -> None:
    folder = container.run_folder / "main"
    folder.mkdir()
    gone = [folder / "4194399-1.json", folder / ".4194399-2.json", folder / "99999999999-1.json"]
    kept = [folder / "1-1.json", folder / "notes.txt"]
    for path in (*gone, *kept):
        path.write_text("{}")

    container.start("import torch")

    assert [path.exists() for path in gone] == [False, False, True]
    assert all(path.exists() for path in kept)
    assert len(container.states()) == 3


@pytest.mark.parametrize("name", ["../outside", "a/b", "..", ".", ""])
def test_a_name_that_is_no_container_leaves_the_folder(container: Shimmed, name: str) -> None:
    container.environment = {"GPUMEM_CONTAINER": name}

    result = container.start("import torch; print('fine')")

    assert (result.stdout, result.stderr) == ("fine\n", "")
    assert container.everything_in_the_run_folder() == []
    assert not (container.folder / "outside").exists()


@pytest.mark.parametrize("mode", [0o000, 0o555])
def test_a_run_folder_that_can_not_be_used_harms_nobody(container: Shimmed, mode: int) -> None:
    container.run_folder.chmod(mode)
    try:
        result = container.start("import torch; print(torch.__version__)", without=NOT_ROOT)
    finally:
        container.run_folder.chmod(0o755)

    assert (result.stdout, result.stderr) == ("2.9.0\n", "")
    assert container.everything_in_the_run_folder() == []


def test_nor_does_one_that_is_missing_or_a_file(container: Shimmed) -> None:
    container.run_folder.rmdir()
    assert container.start("import torch; print('fine')").stderr == ""

    container.run_folder.write_text("")
    assert container.start("import torch; print('fine')").stdout == "fine\n"


def test_nobodys_link_is_followed(container: Shimmed) -> None:
    victim = container.folder / "victim"
    victim.write_text("kept")
    code = (
        "import os\n"
        "start = open('/proc/self/stat').read().rpartition(')')[2].split()[19]\n"
        f"folder = {str(container.run_folder / 'main')!r}\n"
        "os.mkdir(folder)\n"
        f"os.symlink({str(victim)!r}, f'{{folder}}/.{{os.getpid()}}-{{start}}.json')\n"
        f"os.symlink({str(victim)!r}, f'{{folder}}/{{os.getpid()}}-{{start}}.json')\n"
        "import torch\n"
    )

    container.start(code)

    assert victim.read_text() == "kept"
    [path] = container.states()
    assert not os.path.islink(path)
