"""A reclaim order beside the state file, and what the process answers in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpu_container import GIB, GpuContainer
from gpumem_shim.frameworks.captures import Captures

ORDER = json.loads((Path(__file__).parents[1] / "golden" / "shim-order.json").read_text())
GIVE = """
from gpumem_shim import reclaim
folder, name = state.own_file()
def order(**changes):
    with open(os.path.join(folder, name + ".order"), "w") as file:
        json.dump({**ORDER, **changes}, file)
    reclaim.answer(process.own)
    return told()["reclaimed"]
"""


@pytest.fixture
def container(tmp_path: Path) -> GpuContainer:
    return GpuContainer(tmp_path)


def run(container: GpuContainer, program: str) -> Any:
    return container.run(f"ORDER = {ORDER}\n" + GIVE + program)


def test_every_framework_gives_its_cache_back(container: GpuContainer) -> None:
    reclaimed, held = run(
        container,
        "import torch, cupy\n"
        "torch.allocate(2048); cupy.allocate(1024)\n"
        "print(json.dumps(order()))\n"
        "print(gpu.held())\n",
    )
    assert reclaimed == {"id": "a-1", "result": "Done", "bytes": 3 * GIB}
    assert held == 518 * 2**20


def test_the_thread_answers_by_itself(container: GpuContainer) -> None:
    run(
        container,
        "import torch\n"
        "torch.allocate(2048)\n"
        "with open(os.path.join(folder, name + '.order'), 'w') as file: json.dump(ORDER, file)\n"
        "while process.own.told.reclaimed is None: time.sleep(0.01)\n"
        "with state.lock(): print(json.dumps(told()['reclaimed']['result']))\n",
    )
    [path] = container.states()
    assert json.loads(path.read_text())["reclaimed"]["bytes"] == 2 * GIB


@pytest.mark.parametrize(
    ("method", "result", "given_back"),
    [
        ("held", "Done", None),
        ("in_use", "Unsupported", None),
        ("busy", "Busy", None),
        ("reclaim", "Failed", None),
    ],
)
def test_an_order_is_answered_whatever_a_framework_raises(
    container: GpuContainer, method: str, result: str, given_back: int | None
) -> None:
    reclaimed = run(
        container,
        "import torch\n"
        "torch.allocate(64)\n"
        "def raises(*_): raise RuntimeError('another release than the shim knows')\n"
        f"setattr(process.own.adapters['torch'], {method!r}, raises)\n"
        "os.makedirs(folder, exist_ok=True)\n"
        "with open(os.path.join(folder, name + '.order'), 'w') as file: json.dump(ORDER, file)\n"
        "while process.own.told.reclaimed is None: time.sleep(0.01)\n"
        "print(json.dumps(vars(process.own.told.reclaimed)))\n",
    )
    assert reclaimed == {"id": "a-1", "result": result, "bytes": given_back}


def test_an_order_is_done_once(container: GpuContainer) -> None:
    seen = run(
        container,
        "import torch\n"
        "for mib in (1024, 512): torch.allocate(mib); print(json.dumps(order()['bytes']))\n"
        "print(json.dumps(order(id='a-2')['bytes']))\n",
    )
    assert seen == [GIB, GIB, 512 * 2**20]


@pytest.mark.parametrize("before", ["", "import torch"])
def test_a_process_that_uses_no_gpu_is_left_alone(container: GpuContainer, before: str) -> None:
    reclaimed, started = run(
        container,
        f"os.makedirs(folder, exist_ok=True)\n{before}\n"
        "print(json.dumps(order())); print(json.dumps(gpu.started))\n",
    )
    assert (reclaimed["result"], started) == ("Unsupported", False)


@pytest.mark.parametrize(
    ("framework", "begin", "end"),
    [
        (
            "torch",
            "graph = torch.cuda.graphs.CUDAGraph(); graph.capture_begin()",
            "graph.capture_end()",
        ),
        ("cupy", "stream = cupy.cuda.Stream(); stream.begin_capture()", "stream.end_capture()"),
    ],
)
def test_nothing_is_freed_while_a_graph_is_captured(
    container: GpuContainer, framework: str, begin: str, end: str
) -> None:
    during, after = run(
        container,
        f"import {framework}, threading\n"
        f"{framework}.allocate(1024)\n"
        "def capture():\n"
        f"    global graph, stream\n"
        f"    {begin}\n"
        "other = threading.Thread(target=capture); other.start(); other.join()\n"
        "print(json.dumps(order())); held = gpu.held()\n"
        f"{end}\n"
        "assert held == gpu.held()\n"
        "print(json.dumps(order(id='a-2')))\n",
    )
    assert (during["result"], during["bytes"]) == ("Busy", None)
    assert (after["result"], after["bytes"]) == ("Done", GIB)


def test_one_that_begins_after_the_question_is_waited_for_or_waits() -> None:
    captures, done = Captures(), []
    begin, end = captures.begins(lambda graph: graph), captures.ends(lambda graph: graph)
    graph = object()

    begin(graph)
    assert not captures.unless_capturing(lambda: done.append("freed"))
    end(graph)
    end(graph)
    assert captures.unless_capturing(lambda: done.append("freed"))
    assert done == ["freed"]


def test_a_capture_that_was_dropped_without_an_end_holds_nothing_up() -> None:
    class Graph:
        pass

    captures = Captures()
    begin = captures.begins(lambda _: None)
    graph = Graph()
    begin(graph)
    assert captures.under_way
    del graph
    assert not captures.under_way
    assert captures.unless_capturing(lambda: None)


def test_no_cap_is_moved_while_a_graph_is_captured(container: GpuContainer) -> None:
    before, during, after = run(
        container,
        "import torch\n"
        "torch.allocate(64)\n"
        "def cap(): return told()['frameworks'][0]['caps'][0]['capBytes']\n"
        "graph = torch.cuda.graphs.CUDAGraph()\n"
        "print(cap()); graph.capture_begin(); gpu.beside(2048); print(cap())\n"
        "graph.capture_end(); print(cap())\n",
    )
    assert before >= during > before - 2**20
    assert after < before - GIB


def test_a_capture_that_does_not_begin_leaves_nothing_behind(container: GpuContainer) -> None:
    result = run(
        container,
        "import torch\n"
        "torch.allocate(1024)\n"
        "try: torch.cuda.graphs.CUDAGraph().capture_begin(1, 2, 3)\n"
        "except TypeError: print(json.dumps(order()['result']))\n",
    )
    assert result == "Done"


@pytest.mark.parametrize(
    "planted",
    [
        "os.symlink('/etc/passwd', path)",
        "os.mkfifo(path)",
        "os.mkdir(path)",
        "open(path, 'w').write('[' * 4000)",
        "open(path, 'w').write('{}')",
        "open(path, 'w').write(json.dumps({**ORDER, 'id': 7}))",
        "open(path, 'w').write(json.dumps({**ORDER, 'action': 'Kill'}))",
        "open(path, 'w').write(json.dumps({**ORDER, 'schemaVersion': 2}))",
        "open(path, 'w').write(json.dumps({**ORDER, 'id': 'x' * 300}))",
    ],
)
def test_what_is_no_order_is_ignored(container: GpuContainer, planted: str) -> None:
    reclaimed = run(
        container,
        "import torch\n"
        "torch.allocate(64)\n"
        "path = os.path.join(folder, name + '.order')\n"
        f"{planted}\n"
        "reclaim.answer(process.own)\n"
        "print(json.dumps(told()['reclaimed']))\n",
    )
    assert reclaimed is None
