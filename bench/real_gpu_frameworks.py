"""`python -m bench.real_gpu_frameworks`: the shim's caps on a machine with an NVIDIA GPU.

Run by a Python that has nvidia-ml-py and the frameworks to try; a framework that is missing is
left out, and that is said. Nobody else may use GPU 0 meanwhile. Prints one row per check, and
writes them to the file given by `--output`; the exit status is 1 where one failed. About five
minutes; `--only torch` runs the checks of one framework.
"""

import argparse
import importlib.util
import json
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pynvml

from bench import (
    real_gpu_cupy,
    real_gpu_jax,
    real_gpu_tensorflow,
    real_gpu_torch,
    real_gpu_ways_round,
)
from bench.real_gpu_runs import Check, Container, container

SUITES: dict[str, tuple[Callable[[Container], Iterator[Check]], ...]] = {
    "torch": real_gpu_torch.PARTS,
    "cupy": real_gpu_cupy.PARTS,
    "jax": real_gpu_jax.PARTS,
    "tensorflow": real_gpu_tensorflow.PARTS,
    "ways round": real_gpu_ways_round.PARTS,
}
"""In parts, so that one that breaks off is all that is lost."""
NEEDS = {"ways round": "torch"}
"""The module that a suite needs, where it is not called so."""


def rows_of(name: str) -> Iterator[Check]:
    """The checks of one framework; a part of them that breaks off is a failed row."""
    module = NEEDS.get(name, name)
    if importlib.util.find_spec(module) is None:
        yield Check(name, f"{module} installed", "not run: it is not installed", True)
        return
    for part in SUITES[name]:
        with container() as made:
            try:
                yield from part(made)
            except (Exception, SystemExit) as error:
                where = traceback.format_exc(limit=-2)
                yield Check(
                    f"{name}: the checks broke off", "all of them run", f"{error}\n{where}", False
                )


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.real_gpu_frameworks", description=__doc__
    )
    parser.add_argument("--output", type=Path, help="file for the rows as JSON")
    parser.add_argument("--only", choices=SUITES, help="one framework")
    options = parser.parse_args()
    pynvml.nvmlInit()
    card = pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(0))
    print(f"driver {pynvml.nvmlSystemGetDriverVersion()}, {card}", flush=True)
    rows = []
    for name in [options.only] if options.only else SUITES:
        for check in rows_of(name):
            rows.append(check)
            verdict = "pass" if check.good else "FAIL"
            print(f"{verdict}  {check.what}: {check.seen} (expected {check.expected})", flush=True)
            if options.output:
                # At every row: a run that is broken off has shown something too.
                text = json.dumps([row._asdict() for row in rows], indent=2) + "\n"
                options.output.write_text(text)
    return 0 if all(row.good for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
