"""A program's signal handler raises in the middle of the shim, at one place after another."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_container import GpuContainer

# The handler is called where the tracer sees the n-th line of the shim in this thread, as it would
# be by a signal that came in that moment.
PROGRAM = """
import signal
class TimeUp(Exception): pass
def handler(*_): raise TimeUp
signal.signal(signal.SIGUSR1, handler)
def interrupted(work, moment):
    left = [moment]
    def trace(frame, event, _):
        if '/gpumem_shim/' not in frame.f_code.co_filename: return None
        if event == 'line':
            left[0] -= 1
            if left[0] == 0:
                sys.settrace(None); frame.f_trace = None
                signal.raise_signal(signal.SIGUSR1)
        return trace
    heard = False
    sys.settrace(trace)
    try: work()
    except TimeUp: heard = True
    finally: sys.settrace(None)
    return heard, left[0] <= 0
def in_children(before, work, then):
    wrong, moment, reached = [], 1, True
    while reached:
        ends, begins = os.pipe()
        if not os.fork():
            try:
                before()
                heard, reached = interrupted(work, moment)
                os.write(begins, bytes([reached, heard == reached and then()]))
            finally: os._exit(0)
        os.close(begins); answer = os.read(ends, 2); os.close(ends); os.wait()
        reached, good = answer or (False, False)
        if not good: wrong.append(moment)
        moment += 7
    print(json.dumps([wrong, moment]))
"""


@pytest.fixture
def container(tmp_path: Path) -> GpuContainer:
    return GpuContainer(tmp_path)


USED = """
import {framework}
def before(): pass
def work(): {framework}.allocate(64)
def then():
    {framework}.allocate(64)
    return is_capped({framework!r})
"""
SELECTED = """
import torch
torch.cuda.device_count = lambda: 2
def before(): torch.cuda._lazy_init()
def work(): torch.cuda.set_device(0)
def then():
    torch.cuda.set_device(0)
    return is_capped('torch')
"""
IS_CAPPED = """
def is_capped(name):
    refresh()  # as the thread does every second
    with open('/'.join(state.own_file()) + '.json') as file: written = json.load(file)
    [told] = [one for one in written['frameworks'] if one['name'] == name]
    [cap] = told['caps']
    return 7 * 2**30 - 2**20 <= cap['capBytes'] <= 7 * 2**30 and told['notCapped'] is None
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "stage",
    [
        pytest.param(USED.format(framework="torch"), id="first use of torch"),
        pytest.param(USED.format(framework="cupy"), id="first use of cupy"),
        pytest.param(SELECTED, id="another device of torch"),
    ],
)
def test_what_a_handler_raises_is_heard_and_the_next_use_is_capped(
    container: GpuContainer, stage: str
) -> None:
    wrong, moments = container.run(
        PROGRAM + IS_CAPPED + stage + "in_children(before, work, then)\n"
    )
    assert wrong == []
    assert moments > 50
