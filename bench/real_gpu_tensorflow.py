"""What the shim promises about TensorFlow, tried on a GPU.

A program that takes all that it gets waits ten seconds for its last piece before TensorFlow says
that there is none. About six minutes in all.
"""

from collections.abc import Iterator
from dataclasses import replace

from bench.real_gpu_runs import (
    GIB,
    MIB,
    RESERVE,
    Check,
    Container,
    Done,
    told,
    two_announced,
    two_of_which_one_was_announced,
    within,
)

TAKE = """
import json, os, time
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf
gpus = tf.config.list_physical_devices("GPU")
assert gpus, "TensorFlow sees no GPU"
def take(step=64 << 20):
    held = []
    try:
        while True:
            held.append(tf.zeros(step, tf.uint8))
            # Else an operation that the GPU does not know would fill the host.
            assert "GPU" in held[-1].device, held[-1].device
    except tf.errors.ResourceExhaustedError: return held
"""
TAKEN_BYTES = 64 * MIB
MULTIPLY = "one = tf.ones((2048, 2048)); float(tf.reduce_sum(one @ one))\n"
RUN = MULTIPLY + "held = take()\n"
FINISH = "time.sleep(1.2)\nprint(json.dumps(len(held)))\n"
GROW = "for gpu in gpus: tf.config.experimental.set_memory_growth(gpu, True)\n"
LOGICAL = (
    "tf.config.set_logical_device_configuration(gpus[0],"
    " [tf.config.LogicalDeviceConfiguration(memory_limit={})])\n"
)
OLD_LOGICAL = (
    "tf.config.experimental.set_virtual_device_configuration(gpus[0],"
    " [tf.config.experimental.VirtualDeviceConfiguration(memory_limit={})])\n"
)
REFUSED = """
try:
    {}
    raise SystemExit("TensorFlow did not refuse it")
except {}: pass
"""
GROW_FIRST = "tf.config.experimental.set_memory_growth(gpus[0], True)"
KERAS = """
keras = tf.keras
model = keras.Sequential([keras.layers.Dense(4096, activation="relu") for _ in range(4)])
model.compile("adam", "mse", jit_compile=False)
numbers = tf.ones((4096, 1024))
fitted = model.fit(numbers, tf.ones((4096, 4096)), epochs=2, batch_size=512, verbose=0)
loss = fitted.history["loss"]
assert loss[1] < loss[0], loss
"""


def _limits(container: Container) -> Iterator[Check]:
    for gib in (8, 20):
        sized = replace(container, limit=gib * GIB)
        done = sized.run(TAKE + RUN + FINISH)
        yield from within(f"tensorflow, {gib} GiB", done, gib * GIB)
        yield _cap(done, gib * GIB)
        hits = done.framework("tensorflow")["capHits"]
        yield Check("  cap hits", ">= 1", str(hits), bool(hits))
        tensors = done.value * TAKEN_BYTES
        seen = f"{tensors // MIB} MiB"
        least = gib * GIB - RESERVE - 256 * MIB
        yield Check("  tensors", "limit - reserve, within 256 MiB", seen, tensors >= least)
        [gpu] = done.states[0]["gpus"]
        seen = f"{gpu['bytes'] // MIB} MiB"
        good = abs(gpu["bytes"] - done.peak) <= done.peak / 50
        yield Check("  what the process itself measured", "within 2 % of NVML's peak", seen, good)


def _cap(done: Done, limit: int) -> Check:
    caps = sum(cap["capBytes"] for cap in done.framework("tensorflow")["caps"])
    good = bool(caps) and caps + RESERVE <= limit
    return Check("  cap + reserve", "<= the limit", f"{(caps + RESERVE) // MIB} MiB", good)


def _configured(container: Container) -> Iterator[Check]:
    """What a program may configure before it starts, in each order."""
    for what, configured in (
        ("set_memory_growth", GROW),
        ("a higher limit of the program", LOGICAL.format(100_000)),
        ("a higher limit by the experimental names", OLD_LOGICAL.format(100_000)),
        ("set_memory_growth, then a higher limit", GROW + LOGICAL.format(100_000)),
        (
            "a higher limit, then set_memory_growth, which TensorFlow refuses",
            LOGICAL.format(100_000) + REFUSED.format(GROW_FIRST, "ValueError"),
        ),
    ):
        done = container.run(TAKE + configured + RUN + FINISH)
        yield from within(f"tensorflow, {what}", done, container.limit)
        yield _cap(done, container.limit)
    done = container.run(TAKE + LOGICAL.format(2048) + RUN + FINISH)
    seen = f"{done.peak / MIB:.0f} MiB"
    good = done.code == 0 and done.peak < 4 * GIB
    yield Check("tensorflow, a lower limit of the program (2 GiB)", "stays", seen, good)


def _raised_afterwards(container: Container) -> Iterator[Check]:
    late = REFUSED.format(LOGICAL.format(100_000).strip(), "RuntimeError")
    done = container.run(TAKE + MULTIPLY + late + "held = take()\n" + FINISH)
    yield from within("tensorflow, a higher limit once it runs, refused", done, container.limit)


def _small(container: Container) -> Iterator[Check]:
    """Growth keeps what is not used: 64 MiB of tensors under a limit of 8 GiB."""
    done = container.run(
        TAKE + GROW + MULTIPLY + "held = [tf.zeros(64 << 20, tf.uint8)]\n" + FINISH
    )
    seen = f"{done.peak / MIB:.0f} MiB"
    good = done.code == 0 and done.peak < 2 * GIB
    yield Check("tensorflow, set_memory_growth and 64 MiB of tensors", "< 2 GiB", seen, good)


def _not_capped(container: Container) -> Iterator[Check]:
    small = TAKE + GROW + "held = [tf.zeros(64 << 20, tf.uint8)]\n" + FINISH
    for name, value, reason in (
        ("TF_GPU_ALLOCATOR", "cuda_malloc_async", "AllocatorHasNoCap"),
        ("GPUMEM_TENSORFLOW_MODE", "Growth", "ModeGrowth"),
    ):
        done = replace(container, variables={name: value}).run(small)
        seen = (done.code, done.framework("tensorflow").get("notCapped"))
        yield told(f"tensorflow, {name}={value}: reported", (0, reason), seen)


def _processes(container: Container) -> Iterator[Check]:
    program = TAKE + RUN + "time.sleep(6)\n" + FINISH
    yield from two_announced("tensorflow", program, container)
    yield two_of_which_one_was_announced("tensorflow", program, container)


def _session(container: Container) -> Iterator[Check]:
    done = container.run(
        TAKE
        + "v1 = tf.compat.v1; v1.disable_eager_execution()\n"
        + "one = v1.ones((2048, 2048))\n"
        + "with v1.Session(config=v1.ConfigProto()) as session:\n"
        + "    session.run(v1.reduce_sum(one @ one)); time.sleep(2)\n"
        + "print(json.dumps(1))\n"
    )
    yield from within("tensorflow, a session with its own configuration", done, container.limit)


def _keras(container: Container) -> Iterator[Check]:
    done = container.run(TAKE + KERAS + "held = take()\n" + FINISH)
    yield from within("tensorflow, Keras 3 trains, then all is taken", done, container.limit)


PARTS = (
    _limits,
    _configured,
    _raised_afterwards,
    _small,
    _not_capped,
    _processes,
    _session,
    _keras,
)
