"""JAX: the fraction of every visible GPU that its allocator may take.

    import jax      -> nothing but our function in the place of jaxlib's that starts a backend
    backend starts  -> `memory_fraction` among its options: one that is within the cap on every GPU,
                       because it goes for all of them. A lower one of the program stays.

The options were made of the program's environment just before, XLA_CLIENT_MEM_FRACTION and its
older name included: so neither name has to be set, and JAX itself says what is wrong with them. The
fraction bounds the allocator with and without preallocation, and can not be changed afterwards; JAX
gives nothing back to the driver.
Sources: jaxlib/xla_client.py and jax/_src/xla_bridge.py of 0.10.2; release notes of 0.4.29; runs of
0.11 on an H200.
"""

from __future__ import annotations

import functools
import os
import struct
import sys

from gpumem_shim import limits, state
from gpumem_shim.faults import is_theirs
from gpumem_shim.frameworks import (
    ALLOCATOR_HAS_NO_CAP,
    FAILED,
    NOT_STARTED,
    TOO_OLD,
    Adapter,
    NotCapped,
    original_of,
    release_of,
    standing_before,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import ModuleType
    from typing import Any

    from gpumem_shim.process import Process

OLDEST = (0, 4, 30)
"""Up to 0.4.29, CUDA could be a part of jaxlib, which is started another way."""
PLATFORM = "cuda"
OWN_FRACTION = 0.75
"""What JAX takes by itself."""
CAPPABLE = ("default", "bfc", "vmm")
"""The others (platform, address, cuda_async) do not look at the fraction."""


class Jax(Adapter):
    """`module` is jax itself."""

    name = "jax"
    resizable = False

    def __init__(self, module: ModuleType, process: Process) -> None:
        super().__init__(module, process)
        self._options: Mapping[str, Any] = {}
        """Of the backend that is being started."""
        self._fractions: dict[int, float] = {}
        self._ordinals: list[int] = []

    def arrange(self) -> str:
        """Stand before the start of a backend; CUDA stays unused."""
        client: Any = sys.modules.get("jaxlib.xla_client")
        release = release_of(getattr(self.module, "__version__", ""), 3)
        if release < OLDEST or not hasattr(client, "make_c_api_client"):
            raise NotCapped(TOO_OLD)
        client.make_c_api_client = self._bounding(original_of(client.make_c_api_client))
        return NOT_STARTED

    def place(self, module: Any) -> object:  # noqa: ARG002
        return sys.modules.get("jaxlib.xla_client")

    def forked(self) -> None:
        super().forked()
        self._ordinals = []

    def _bounding(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def make_c_api_client(
            plugin_name: str, options: Any = None, *args: Any, **kwargs: Any
        ) -> Any:
            if plugin_name != PLATFORM:
                return original(plugin_name, options, *args, **kwargs)
            options = self._bounded_or_not(options)
            try:
                return original(plugin_name, options, *args, **kwargs)
            except BaseException:
                # It goes on with the next platform.
                self._ordinals = []
                self.process.withdrew(self.name)
                raise

        return standing_before(original, make_c_api_client)

    def _bounded_or_not(self, options: Any) -> Any:
        try:
            return self._bounded(dict(options or {}))
        except BaseException as error:
            # The caps that were told on the way are in no options.
            self._ordinals = []
            self.process.withdrew(self.name)
            if is_theirs(error):
                raise
            self.process.uncapped(self.name, FAILED)
            return options

    def _bounded(self, options: dict[str, Any]) -> dict[str, Any]:
        with state.lock():
            # A program may clear its backends and start them again.
            self.process.withdrew(self.name)
            count = self.process.start_driver()
            self._options, self._fractions = options, {}
            # Nothing is asked about them before the backend is there: see `in_use`.
            self._ordinals = list(options.get("visible_devices") or range(count))
            for ordinal in self._ordinals:
                self.process.started(self.name, ordinal)
            if self._fractions:
                options["memory_fraction"] = min(self._fractions.values())
                for ordinal in self._fractions:
                    self.process.lowered(self.name, ordinal, options["memory_fraction"])
        return options

    def set_cap(self, ordinal: int, total_bytes: int, cap_bytes: int) -> int:
        """Note what the fraction must not be above on this GPU."""
        allocator = str(self._options.get("allocator", "default"))
        is_async = os.environ.get("TF_GPU_ALLOCATOR") == "cuda_malloc_async"
        if allocator not in CAPPABLE or is_async:
            raise NotCapped(ALLOCATOR_HAS_NO_CAP)
        # Buffers for collective operations come beside the fraction.
        cap_bytes = max(1, cap_bytes - int(self._options.get("collective_memory_size") or 0))
        theirs = float(self._options.get("memory_fraction") or OWN_FRACTION)
        fraction = min(theirs, _single(limits.fraction_of(cap_bytes, total_bytes)))
        self._fractions[ordinal] = fraction
        return int(fraction * total_bytes)

    def in_use(self) -> Iterable[int]:
        return self._ordinals if self._backend() is not None else []

    def _backend(self) -> Any:
        """None before it has started, and after jax.clear_backends()."""
        bridge = sys.modules.get("jax._src.xla_bridge")
        return getattr(bridge, "_backends", {}).get(PLATFORM)

    def held(self, ordinal: int) -> int | None:
        """What its allocator has taken of the card; releases differ in whether they tell."""
        backend = self._backend()
        devices = backend.local_devices() if backend is not None else []
        for device in devices:
            if device.local_hardware_id == ordinal:
                taken = (device.memory_stats() or {}).get("pool_bytes")
                return None if taken is None else int(taken)
        return 0 if backend is None else None


def _single(fraction: float) -> float:
    """The next lower one in single precision, in which options reach the backend."""
    [bits] = struct.unpack("<I", struct.pack("<f", fraction))
    lower: float
    [lower] = struct.unpack("<f", struct.pack("<I", bits))
    while lower > fraction:
        bits -= 1
        [lower] = struct.unpack("<f", struct.pack("<I", bits))
    return lower
