"""A simulated NVIDIA driver: the unchanged pynvml runs on it, without a driver or a GPU.

    folder = create_state(tmp_path, Driver((numbered_device(0),)))
    with Allocation(folder, "0", 8192):
        subprocess.run([sys.executable, "-m", "anything.with.pynvml"], env=environment(folder))

docs/simulated-driver.md says what is simulated, what is not, and where each rule comes from.
"""

from __future__ import annotations

from devcluster.simulated_driver.allocation import Allocation, environment
from devcluster.simulated_driver.build import Built, build
from devcluster.simulated_driver.state import (
    MIB,
    Device,
    Driver,
    Fault,
    MigInstance,
    create_state,
    numbered_device,
    write_driver,
    write_faults,
)

__all__ = [
    "MIB",
    "Allocation",
    "Built",
    "Device",
    "Driver",
    "Fault",
    "MigInstance",
    "build",
    "create_state",
    "environment",
    "numbered_device",
    "write_driver",
    "write_faults",
]
