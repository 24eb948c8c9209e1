"""What a simulated JAX is told to take when its backend starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpu_container import GIB, MIB, GpuContainer, told_of

NO_THREAD = """
import _thread, threading
def refused(*_): raise RuntimeError("can't start new thread")
_thread.start_new_thread = threading.Thread.start = refused
"""
FILE = "print(open('/'.join(state.own_file()) + '.json').read().replace(chr(10), ''))\n"


@pytest.fixture
def container(tmp_path: Path) -> GpuContainer:
    return GpuContainer(tmp_path)


def caps(told: Any) -> list[int]:
    return [cap["capBytes"] for cap in told_of(told, "jax")["caps"]]


@pytest.mark.parametrize("before", ["", NO_THREAD], ids=["with a thread", "without any"])
def test_the_backend_gets_the_fraction_that_is_told(container: GpuContainer, before: str) -> None:
    fraction, total, told = container.run(
        f"{before}import jax\nprint(jax.start()['memory_fraction'])\nprint(gpu.total(0))\n{FILE}"
    )
    [cap] = caps(told)
    assert 7 * GIB - MIB <= cap <= 7 * GIB
    assert cap == int(fraction * total)
    assert told_of(told, "jax")["notCapped"] is None


def test_a_cap_that_did_not_get_into_the_options_is_not_told(container: GpuContainer) -> None:
    fraction, told, later = container.run(
        "import jax\n"
        "def failed(*_): raise OSError('no file')\n"
        "process.own.lowered = failed\n"
        f"print(jax.start()['memory_fraction'])\n{FILE}"
        "print(json.dumps(told()))\n"
    )
    assert fraction == 0.9
    for one in (told, later):
        assert (told_of(one, "jax")["notCapped"], caps(one)) == ("Failed", [])


def test_a_start_that_a_signal_handler_broke_off_is_capped_the_next_time(
    container: GpuContainer,
) -> None:
    told, later = container.run(
        "import jax, signal\n"
        "def handler(*_): raise TimeoutError('late')\n"
        "signal.signal(signal.SIGALRM, handler)\n"
        "lowered = process.own.lowered\n"
        "process.own.lowered = lambda *_: os.kill(os.getpid(), signal.SIGALRM)\n"
        "try: jax.start()\n"
        f"except TimeoutError: pass\n{FILE}"
        f"process.own.lowered = lowered; jax.start()\n{FILE}"
    )
    assert (told_of(told, "jax")["notCapped"], caps(told)) == ("NotStarted", [])
    assert caps(later) == [pytest.approx(7 * GIB, abs=MIB)]


def test_it_stays_capped_where_its_module_is_executed_once_more(container: GpuContainer) -> None:
    told = container.run(
        "import importlib, jax\njax.start(); importlib.reload(jax)\nprint(json.dumps(told()))\n"
    )
    assert caps(told) == [pytest.approx(7 * GIB, abs=MIB)]
    assert told_of(told, "jax")["notCapped"] is None


def test_a_forked_child_has_no_cap_of_its_parents(container: GpuContainer) -> None:
    told = container.run(
        "import jax\njax.start()\n"
        "if not os.fork(): print(json.dumps(told()), flush=True); os._exit(0)\n"
        "os.wait()\n"
    )
    assert (told_of(told, "jax")["notCapped"], caps(told)) == ("NotStarted", [])
