"""Real TensorFlow releases with two simulated cards: the options that its context starts with.

The build has no CUDA, so TensorFlow is told of two GPUs; from there on it is its own code down to
the options. It starts its context with the rest of them.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from frameworks.installed import Installed
from frameworks.releases import Release

MIB = 2**20
CAP = 7 * 1024
GROW = "for gpu in gpus: tf.config.experimental.set_memory_growth(gpu, True)\n"
LOGICAL = (
    "tf.config.set_logical_device_configuration(gpus[0],"
    " [tf.config.LogicalDeviceConfiguration(memory_limit=mib) for mib in {}])\n"
)
OLD_LOGICAL = (
    "tf.config.experimental.set_virtual_device_configuration(gpus[0],"
    " [tf.config.experimental.VirtualDeviceConfiguration(memory_limit=mib) for mib in {}])\n"
)
SESSION = "with tf.compat.v1.Session(config={}): pass\n"
V1 = "tf.compat.v1.ConfigProto(gpu_options=tf.compat.v1.GPUOptions({}))"
CASES = {
    "nothing": "",
    "growth": GROW,
    "higher": LOGICAL.format([9000]),
    "lower": LOGICAL.format([1000]),
    "old name, higher": OLD_LOGICAL.format([9000]),
    "two devices, higher": LOGICAL.format([6000, 3000]),
    "two devices, lower": LOGICAL.format([2000, 1000]),
    "limit, then growth": LOGICAL.format([1000]) + GROW,
    "growth, then limit": GROW + LOGICAL.format([9000]),
    "one visible": "tf.config.set_visible_devices(gpus[1], 'GPU')\n",
    "none visible": "tf.config.set_visible_devices([], 'GPU')\n",
    "differing growth": "tf.config.experimental.set_memory_growth(gpus[0], True)\n",
    "async allocator": "os.environ['TF_GPU_ALLOCATOR'] = 'cuda_malloc_async'\n",
    "context refuses": "refuse_limits()\n",
    "failures": "tf.ones(3)\nfail_on_gpu(); fail_on_gpu(); fail_on_cpu()\n",
    "failures on full cards": "tf.ones(3)\nfill(); fail_on_gpu()\n",
    "session": SESSION.format(V1.format("")),
    "session, lower": SESSION.format(V1.format("per_process_gpu_memory_fraction=0.01")),
    "session, higher": SESSION.format(V1.format("per_process_gpu_memory_fraction=0.9")),
    "session, one visible": SESSION.format(V1.format("visible_device_list='1'")),
    "session without GPUs": SESSION.format("tf.compat.v1.ConfigProto(device_count={'GPU': 0})"),
}
REFUSED = ["limit, then growth", "differing growth"]
PROGRAM = """
import ctypes, json, os, sys
import tensorflow as tf
from tensorflow.python.client import pywrap_tf_session, session
from tensorflow.python.eager import context, core
from google.protobuf import json_format
def gpu_options(config):
    options = json_format.MessageToDict(config.gpu_options)
    devices = options.get("experimental", {}).get("virtualDevices", [])
    limits = [device.get("memoryLimitMb", []) for device in devices]
    fraction = options.get("perProcessGpuMemoryFraction")
    return [options.get("visibleDeviceList", ""), limits, options.get("allowGrowth"), fraction]
started, configured, opened = [], [], []
def set_config(opts, text):
    config = tf.compat.v1.ConfigProto(); config.ParseFromString(text)
    started.append(gpu_options(config))
    if refusing and started[-1][1]: raise ValueError("no limits for these GPUs")
    original(opts, text)
refusing = []
def refuse_limits(): refusing.append(True)
original = context.pywrap_tfe.TFE_ContextOptionsSetConfig
context.pywrap_tfe.TFE_ContextOptionsSetConfig = set_config
new_options = session.tf_session.TF_NewSessionOptions
def opening(target=None, config=None):
    opened.append(gpu_options(config)); return new_options(target=target, config=config)
session.tf_session.TF_NewSessionOptions = opening
def fail_on_gpu():
    text = "OOM when allocating tensor on /job:localhost/replica:0/task:0/device:GPU:1"
    status = core._NotOkStatusException(text, tf.errors.RESOURCE_EXHAUSTED, {})
    assert isinstance(core._status_to_exception(status), tf.errors.ResourceExhaustedError)
def fail_on_cpu():
    try: tf.zeros(1 << 50, tf.uint8)
    except tf.errors.ResourceExhaustedError: pass
def fill():
    # Another process holds nearly all of both cards, until this one ends.
    reading, writing = os.pipe()
    waiting, ending = os.pipe()
    if os.fork() == 0:
        os.close(ending)
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        for number in (b"0", b"1"):
            assert nvml.gpumem_simulated_hold(number, b"compute", ctypes.c_uint64(136 << 30), 0)
        os.write(writing, b"held"); os.read(waiting, 1); os._exit(0)
    assert os.read(reading, 4) == b"held"
def told():
    if not SHIM: return {"caps": {}, "not_capped": None}
    from gpumem_shim import process
    process.own.refresh()
    return dict(vars(process.own.told.frameworks["tensorflow"]))
before = {**told(), "initialized": context.context()._initialized}
one = context.context()
one._initialize_physical_devices()
gpus = [context.PhysicalDevice(name=f"/physical_device:GPU:{n}", device_type="GPU") for n in (0, 1)]
one._physical_devices += gpus
one._visible_device_list += gpus
one._memory_growth_map.update({gpu: None for gpu in gpus})
def run(case):
    error = None
    try:
        exec(case)
        float(tf.ones(3).numpy().sum())
    except Exception as caught: error = [type(caught).__name__, str(caught)]
    return {"started": started, "opened": opened, "error": error, "before": before, **told()}
outcomes = {}
for name, case in CASES.items():
    # Each in a child: a process has one context, and an import takes seconds.
    reading, writing = os.pipe()
    if os.fork() == 0:
        with open(writing, "w") as file: json.dump(run(case), file)
        os._exit(0)
    os.close(writing)
    with open(reading) as file: outcomes[name] = json.load(file)
    os.wait()
print(json.dumps(outcomes))
"""


@functools.cache
def survey(release: Release, *, shim: bool = True, mode: str = "Limit") -> Any:
    wanted = ["nothing"] if mode != "Limit" else list(CASES) if shim else REFUSED
    cases = {name: CASES[name] for name in wanted}
    with TemporaryDirectory() as folder:
        container = Installed(Path(folder), release, cards=2)
        container.environment["GPUMEM_TENSORFLOW_MODE"] = mode
        constants = f"import json\nSHIM, CASES = {shim}, json.loads({json.dumps(cases)!r})\n"
        return container.run(constants + PROGRAM, shim=shim)


def seen(release: Release, case: str, *, shim: bool = True, mode: str = "Limit") -> Any:
    """What a program came to that configured TensorFlow as in the case, and used it then."""
    return survey(release, shim=shim, mode=mode)[case]


def limits_of(seen: Any) -> Any:
    return seen["started"][0][1]


def test_an_import_starts_nothing_and_is_told(tensorflow: Installed) -> None:
    before = seen(tensorflow.release, "nothing")["before"]
    assert before["initialized"] is False
    assert (before["version"], before["not_capped"]) == (tensorflow.release.version, "NotStarted")


def test_every_gpu_gets_the_limit_and_it_is_told(tensorflow: Installed) -> None:
    outcome = seen(tensorflow.release, "nothing")
    assert outcome["started"] == [["0,1", [[CAP], [CAP]], None, None]]
    assert list(outcome["caps"].values()) == [CAP * MIB] * 2
    assert (outcome["not_capped"], outcome["reclaim"]) == (None, "Unsupported")


def test_memory_grows_where_the_program_wants_that_up_to_the_limit(tensorflow: Installed) -> None:
    outcome = seen(tensorflow.release, "growth")
    assert outcome["error"] is None
    assert outcome["started"] == [["0,1", [[CAP], [CAP]], True, None]]


@pytest.mark.parametrize("case", ["higher", "old name, higher", "growth, then limit"])
def test_a_higher_limit_of_the_program_is_lowered(tensorflow: Installed, case: str) -> None:
    assert limits_of(seen(tensorflow.release, case)) == [[CAP], [CAP]]


def test_a_lower_one_stays_and_is_told(tensorflow: Installed) -> None:
    outcome = seen(tensorflow.release, "lower")
    assert limits_of(outcome) == [[1000], [CAP]]
    assert list(outcome["caps"].values()) == [1000 * MIB, CAP * MIB]


def test_logical_devices_of_one_gpu_share_its_cap(tensorflow: Installed) -> None:
    both = limits_of(seen(tensorflow.release, "two devices, higher"))[0]
    assert sum(both) <= CAP
    assert both == pytest.approx([CAP * 2 / 3, CAP / 3], abs=1)
    assert limits_of(seen(tensorflow.release, "two devices, lower"))[0] == [2000, 1000]


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_tensorflow_says_itself(tensorflow: Installed, case: str) -> None:
    with_shim, without = (seen(tensorflow.release, case, shim=shim) for shim in (True, False))
    assert with_shim["error"] == without["error"]
    assert without["error"][0] == "ValueError"


def test_only_visible_gpus_are_asked_about(tensorflow: Installed) -> None:
    one = seen(tensorflow.release, "one visible")
    assert one["started"] == [["1", [[CAP]], None, None]]
    assert len(one["caps"]) == 1
    none = seen(tensorflow.release, "none visible")
    assert (none["started"][0][:2], none["not_capped"]) == (["", []], "NotStarted")


def test_what_fails_on_a_cap_is_counted_and_no_other_failure_is(tensorflow: Installed) -> None:
    assert seen(tensorflow.release, "failures")["cap_hits"] == 2
    assert seen(tensorflow.release, "failures on full cards")["cap_hits"] == 0
    assert seen(tensorflow.release, "async allocator")["cap_hits"] is None


def test_an_allocator_without_a_cap_is_told(tensorflow: Installed) -> None:
    outcome = seen(tensorflow.release, "async allocator")
    assert limits_of(outcome) == []
    assert (outcome["not_capped"], outcome["caps"]) == ("AllocatorHasNoCap", {})


@pytest.mark.parametrize("mode", ["Growth", "Default"])
def test_other_modes_bound_nothing_and_say_so(tensorflow: Installed, mode: str) -> None:
    outcome = seen(tensorflow.release, "nothing", mode=mode)
    assert limits_of(outcome) == []
    assert (outcome["not_capped"], outcome["caps"]) == (f"Mode{mode}", {})


def test_a_context_that_takes_no_limits_starts_without_them_and_that_is_told(
    tensorflow: Installed,
) -> None:
    outcome = seen(tensorflow.release, "context refuses")
    assert outcome["error"] is None
    assert [options[1] for options in outcome["started"]] == [[[CAP], [CAP]], []]
    assert (outcome["not_capped"], outcome["caps"]) == ("Failed", {})


class TestSessions:
    """As programs for the first TensorFlow open them, with a configuration of their own."""

    @pytest.mark.parametrize("case", ["session", "session, higher"])
    def test_the_fraction_is_within_the_cap(self, tensorflow: Installed, case: str) -> None:
        [[_, limits, _, fraction]] = seen(tensorflow.release, case)["opened"]
        assert limits == []
        assert fraction * 143771 == pytest.approx(CAP, abs=1)
        assert fraction * 143771 <= CAP

    def test_a_lower_one_stays(self, tensorflow: Installed) -> None:
        [[_, _, _, fraction]] = seen(tensorflow.release, "session, lower")["opened"]
        assert fraction == pytest.approx(0.01, abs=1e-5)

    def test_only_its_own_gpus_are_asked_about(self, tensorflow: Installed) -> None:
        outcome = seen(tensorflow.release, "session, one visible")
        assert outcome["opened"][0][0] == "1"
        assert outcome["opened"][0][3] is not None

    def test_one_without_gpus_is_left_alone(self, tensorflow: Installed) -> None:
        [[_, limits, _, fraction]] = seen(tensorflow.release, "session without GPUs")["opened"]
        assert (limits, fraction) == ([], None)
