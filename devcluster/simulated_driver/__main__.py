"""Makes the state folder of a simulated driver, and prints what a shell needs to use it.

eval "$(python -m devcluster.simulated_driver /tmp/gpus --cards 2)"
simulated-alloc --gpu 0 --mib 8192 &
python -c 'import pynvml; pynvml.nvmlInit(); print(pynvml.nvmlDeviceGetCount())'
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from devcluster.simulated_driver.allocation import environment
from devcluster.simulated_driver.build import build
from devcluster.simulated_driver.state import Driver, create_state, numbered_device


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m devcluster.simulated_driver",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="state folder; made when it is missing")
    parser.add_argument("--cards", type=int, default=1)
    parser.add_argument("--mib-per-card", type=int, default=143771)
    parser.add_argument("--driver-version", default="580.159.03")
    options = parser.parse_args()
    cards = [
        numbered_device(index, total_mib=options.mib_per_card) for index in range(options.cards)
    ]
    folder = options.folder.resolve()
    create_state(folder, Driver(tuple(cards), version=options.driver_version))
    needed = environment(folder)
    for name in ("SIMULATED_NVIDIA_DRIVER", "LD_LIBRARY_PATH"):
        print(f"export {name}={shlex.quote(needed[name])}")
    print(f'export PATH={shlex.quote(str(build().folder))}:"$PATH"')


if __name__ == "__main__":
    main()
