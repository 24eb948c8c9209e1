"""What the shim's own code raises stays in it; what others raise in the middle of it does not."""

from __future__ import annotations

import ctypes
import functools
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from gpu_container import GpuContainer
from gpumem_shim.faults import is_theirs, kept
from shimmed import Shimmed, interpreters

AT_MANY_MOMENTS = """
import os, signal
class TimeUp(Exception): pass
def handler(_number, frame):
    # Callbacks of importlib, of which Python lets nothing through, whoever imports.
    if frame.f_code.co_name in ("cb", "remove"):
        return
    heard.append(1)
    raise TimeUp
others = 0
for number in range({children}):
    child = os.fork()
    if not child:
        heard = []
        signal.signal(signal.SIGALRM, handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0005 + number * 0.03 / {children})
            import torch
            signal.setitimer(signal.ITIMER_REAL, 0)
        except TimeUp:
            {hit}
        {end}
    others += os.waitpid(child, 0)[1] != 0
print(others)
"""
"""An alarm in each of many children, and how many of them did not end by exit code 0."""


class TimeUp(Exception):
    """Of a library that a program uses."""

    __module__ = "somebodys.timeouts"


class Broken(Exception):
    """A program's own."""


def is_suppressed(work: Callable[[], object]) -> bool:
    try:
        with kept:
            work()
    except BaseException:
        return False
    return True


def interrupted() -> None:
    os.kill(os.getpid(), signal.SIGUSR1)


class Handler:
    def method(self, *_: object) -> None:
        raise RuntimeError("a type that frameworks raise as well")


def by_name(number: int, _frame: FrameType | None) -> None:
    raise TimeUp(f"signal {number}")


def by_a_call(_number: int, _frame: FrameType | None) -> None:
    int("no number")


@pytest.fixture
def handling() -> Iterator[Callable[[Any], object]]:
    before = signal.getsignal(signal.SIGUSR1)
    yield functools.partial(signal.signal, signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize(
    "handler",
    [
        pytest.param(by_name, id="a function"),
        pytest.param(by_a_call, id="a function whose call fails"),
        pytest.param(Handler().method, id="a method"),
        pytest.param(functools.partial(by_name), id="a partial"),
    ],
)
def test_what_a_signal_handler_raises_is_the_programs(
    handling: Callable[[object], object], handler: object
) -> None:
    handling(handler)
    assert not is_suppressed(interrupted)


@pytest.mark.parametrize("kind", [TimeUp, TimeoutError, RuntimeError, KeyboardInterrupt])
def test_what_another_thread_throws_is_the_programs(kind: type[BaseException]) -> None:
    reached: list[bool] = []

    def work() -> None:
        def spin() -> None:
            throw(ctypes.c_ulong(threading.get_ident()), ctypes.py_object(kind))
            while True:
                pass

        reached.append(not is_suppressed(spin))

    throw = ctypes.pythonapi.PyThreadState_SetAsyncExc
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert reached == [True]


def test_what_a_tracer_raises_is_the_programs() -> None:
    def tracer(frame: FrameType, _event: str, _argument: object) -> None:
        if frame.f_code.co_name == "<lambda>":
            raise ValueError("of the tracer")

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        suppressed = is_suppressed(lambda: None)
    finally:
        sys.settrace(before)
    assert not suppressed


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(lambda: object().missing, id="an attribute"),  # type: ignore[attr-defined]
        pytest.param(lambda: os.environ["MISSING"], id="a key"),
        pytest.param(lambda: os.stat("/nothing/here"), id="a file"),
        pytest.param(lambda: json.loads("{"), id="the standard library"),
        pytest.param(lambda: next(iter(())), id="an end without a text"),
        pytest.param(lambda: ctypes.c_int("x"), id="a wrong type"),  # type: ignore[arg-type]
    ],
)
def test_faults_of_our_own_stay(fault: Callable[[], object]) -> None:
    assert is_suppressed(fault)


@pytest.mark.parametrize("kind", [Broken, TimeUp, TimeoutError, NotImplementedError])
def test_what_a_program_raises_when_we_call_it_stays(kind: type[Exception]) -> None:
    def theirs() -> None:
        raise kind

    assert is_suppressed(theirs)


def test_what_frameworks_raise_from_c_stays() -> None:
    for package in ("torch", "cupy_backends.cuda.api.runtime", "jaxlib.xla_extension"):
        kind = type("Failed", (RuntimeError,), {"__module__": package})
        error = kind("CUDA failed")
        assert not is_theirs(error)


@pytest.mark.parametrize("version", interpreters())
def test_an_alarm_during_the_import_of_a_framework_is_heard(tmp_path: Path, version: str) -> None:
    container = Shimmed(tmp_path, interpreters()[version])
    container.module("torch", "")
    # It strikes the shim's own imports and work, or what is before and behind them.
    lost = container.start(
        AT_MANY_MOMENTS.format(children=60, hit="os._exit(0)", end="os._exit(len(heard))")
    )

    assert (lost.stdout, lost.stderr) == ("0\n", "")


def test_who_hears_an_alarm_and_imports_again_has_a_cap(tmp_path: Path) -> None:
    container = GpuContainer(tmp_path)
    without = container.start(
        AT_MANY_MOMENTS.format(
            children=20,
            hit="import torch",
            # Of `torch.cuda`, which was not imported again, and neither was what it knows as torch.
            end="torch.allocate(64); os._exit(not torch.cuda.torch._C.fractions)",
        )
    )

    assert (without.stdout, without.stderr) == ("0\n", "")
