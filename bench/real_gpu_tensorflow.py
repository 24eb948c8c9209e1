"""What the shim promises about TensorFlow, tried on a GPU."""

from collections.abc import Iterator
from dataclasses import replace

from bench.real_gpu_runs import GIB, MIB, RESERVE, Check, Container, told, within

TAKE = """
import json, os, time
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf
gpus = tf.config.list_physical_devices("GPU")
assert gpus, "TensorFlow sees no GPU"
def take(step=64 << 20):
    held = []
    try:
        while True: held.append(tf.zeros(step, tf.uint8))
    except tf.errors.ResourceExhaustedError: return held
"""
MULTIPLY = "one = tf.ones((2048, 2048)); float(tf.reduce_sum(one @ one))\n"
RUN = MULTIPLY + "held = take()\n"
FINISH = "time.sleep(1.2)\nprint(json.dumps(len(held)))\n"
GROW = "for gpu in gpus: tf.config.experimental.set_memory_growth(gpu, True)\n"
LOGICAL = (
    "tf.config.set_logical_device_configuration(gpus[0],"
    " [tf.config.LogicalDeviceConfiguration(memory_limit={})])\n"
)


def checks(container: Container) -> Iterator[Check]:
    for what, configured in (
        ("20 GiB", ""),
        ("preallocating", ""),
        ("set_memory_growth", GROW),
        ("a higher limit of the program", LOGICAL.format(100_000)),
    ):
        limit = 20 * GIB if what == "20 GiB" else container.limit
        done = replace(container, limit=limit).run(TAKE + configured + RUN + FINISH)
        yield from within(f"tensorflow, {what}", done, limit)
        caps = sum(cap["capBytes"] for cap in done.framework("tensorflow")["caps"])
        good = bool(caps) and caps + RESERVE <= limit
        yield Check("  cap + reserve", "<= the limit", f"{(caps + RESERVE) // MIB} MiB", good)
    done = container.run(TAKE + LOGICAL.format(2048) + RUN + FINISH)
    seen = f"{done.peak / MIB:.0f} MiB"
    good = done.code == 0 and done.peak < 4 * GIB
    yield Check("tensorflow, a lower limit of the program (2 GiB)", "stays", seen, good)
    yield from _not_capped(container)
    yield from _processes(container)
    yield from _session(container)


def _not_capped(container: Container) -> Iterator[Check]:
    small = TAKE + GROW + "held = [tf.zeros(64 << 20, tf.uint8)]\n" + FINISH
    for name, value, reason in (
        ("TF_GPU_ALLOCATOR", "cuda_malloc_async", "AllocatorHasNoCap"),
        ("GPUMEM_TENSORFLOW_MODE", "Growth", "ModeGrowth"),
    ):
        done = replace(container, variables={name: value}).run(small)
        seen = done.framework("tensorflow")["notCapped"]
        yield told(f"tensorflow, {name}={value}: reported", reason, seen)


def _processes(container: Container) -> Iterator[Check]:
    announced = replace(container, limit=16 * GIB, variables={"GPUMEM_PROCESSES_PER_GPU": "2"})
    program = TAKE + RUN + "time.sleep(6)\n" + FINISH
    first, _ = announced.run_together([program, program])
    yield from within("tensorflow, two announced processes together", first, announced.limit)


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
