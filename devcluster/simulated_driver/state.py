"""The state folder of a simulated driver: cards, driver version and faults, as text files.

Whoever shares the folder shares the cards: processes, containers (by hostPath), test cases.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

MIB = 1024 * 1024


@dataclass(frozen=True)
class MigInstance:
    """One MIG instance; the defaults are a seventh of an H200's compute and an eighth of its
    memory. `index` may leave gaps, as after an instance was destroyed."""

    uuid: str
    index: int
    profile: str = "1g.18gb"
    total_mib: int = 16384
    reserved_mib: int = 64
    gpu_instance: int = 7
    compute_instance: int = 0
    slices: int = 1
    multiprocessors: int = 16


@dataclass(frozen=True)
class Device:
    """One card; the defaults are those of an H200: 615 MiB of its memory are the driver's own."""

    uuid: str
    name: str = "Simulated H200"
    total_mib: int = 143771
    reserved_mib: int = 615
    minor: int = 0
    pci: str = "00000000:18:00.0"
    compute_capability: tuple[int, int] = (9, 0)
    multiprocessors: int = 132
    mig_enabled: bool = False
    max_instances: int = 7
    """0 for a card that knows no MIG."""
    instances: tuple[MigInstance, ...] = ()


@dataclass(frozen=True)
class Driver:
    """A node's driver. Its version decides what a caller in a child PID namespace sees."""

    devices: tuple[Device, ...]
    version: str = "580.159.03"
    cuda_version: int = 13000
    """As NVML counts: 1000 x major + 10 x minor."""


@dataclass(frozen=True)
class Fault:
    """What goes wrong, in which functions (a pattern of fnmatch) and for which card.

    `device` is a UUID, an index or `*`; `error` a name as in NVML without the prefix NVML_ERROR_,
    or empty. A call that concerns no card, such as nvmlInit, is met by `*` only."""

    error: str = ""
    function: str = "*"
    device: str = "*"
    hang_milliseconds: int = 0
    hides_process_memory: bool = False
    """The memory of processes reads as NVML_VALUE_NOT_AVAILABLE, in Python as None."""


def numbered_device(
    index: int, *, total_mib: int = 143771, instances: tuple[MigInstance, ...] = ()
) -> Device:
    """The card number `index` of a node, with a UUID, minor number and address of its own."""
    return Device(
        uuid=f"GPU-51350000-0000-4000-8000-{index:012x}",
        total_mib=total_mib,
        minor=index,
        pci=f"00000000:{0x18 + index:02X}:00.0",
        mig_enabled=bool(instances),
        instances=instances,
    )


def create_state(folder: Path, driver: Driver, *, node_process: int | None = None) -> Path:
    """Make a state folder.

    The PID namespace of `node_process`, of this process by default, counts as the node's own."""
    for part in (folder, folder / "allocations", folder / "limits"):
        part.mkdir(parents=True, exist_ok=True)
        # Containers of any user register their allocations here.
        part.chmod(0o777)
    write_driver(folder, driver, node_process=node_process)
    return folder


def write_driver(folder: Path, driver: Driver, *, node_process: int | None = None) -> None:
    """Replace driver and cards; running callers see it at their next call."""
    namespace = os.stat(f"/proc/{node_process or os.getpid()}/ns/pid").st_ino
    _replace(folder / "driver.conf", "".join(_driver_lines(driver, namespace)))


def write_faults(folder: Path, faults: Iterable[Fault]) -> None:
    """Replace all faults; none clears them. They hold from the next call on."""
    _replace(folder / "faults", "".join(map(_fault_line, faults)))


def _driver_lines(driver: Driver, pid_namespace: int) -> Iterable[str]:
    yield "# Cards of a SIMULATED NVIDIA driver; fields are parted by tabs.\n"
    yield _line(
        "driver",
        version=driver.version,
        cuda=driver.cuda_version,
        host_pid_namespace=pid_namespace,
    )
    for device in driver.devices:
        yield _device_line(device)
        for instance in device.instances:
            yield _instance_line(device, instance)


def _device_line(device: Device) -> str:
    major, minor = device.compute_capability
    return _line(
        "device",
        uuid=device.uuid,
        name=device.name,
        pci=device.pci,
        minor=device.minor,
        total=device.total_mib * MIB,
        reserved=device.reserved_mib * MIB,
        compute_major=major,
        compute_minor=minor,
        multiprocessors=device.multiprocessors,
        mig=int(device.mig_enabled),
        max_mig=device.max_instances,
    )


def _instance_line(device: Device, instance: MigInstance) -> str:
    return _line(
        "mig",
        uuid=instance.uuid,
        parent=device.uuid,
        index=instance.index,
        profile=instance.profile,
        gi=instance.gpu_instance,
        ci=instance.compute_instance,
        slices=instance.slices,
        multiprocessors=instance.multiprocessors,
        total=instance.total_mib * MIB,
        reserved=instance.reserved_mib * MIB,
    )


def _fault_line(fault: Fault) -> str:
    effects: dict[str, object] = {"error": fault.error} if fault.error else {}
    return _line(
        "fault",
        function=fault.function,
        device=fault.device,
        hang_milliseconds=fault.hang_milliseconds,
        hides_process_memory=int(fault.hides_process_memory),
        **effects,
    )


def _line(kind: str, **fields: object) -> str:
    texts = [f"{key}={value}" for key, value in fields.items()]
    for text in texts:
        if "\t" in text or "\n" in text:
            raise ValueError(f"a value of the simulated driver holds a tab or newline: {text!r}")
    return "\t".join([kind, *texts]) + "\n"


def _replace(path: Path, text: str) -> None:
    """By renaming, so that no caller reads half of a file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.chmod(0o644)
    temporary.replace(path)
