"""What is known about each framework, one file for each: how to cap its allocator from outside.

To add one: a module in this folder with a class that is an `Adapter`, and a row in `ADAPTERS`.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType
    from typing import Any

    from gpumem_shim.process import Process

ADAPTERS = {
    "torch": ("gpumem_shim.frameworks.torch", "Torch"),
    "cupy": ("gpumem_shim.frameworks.cupy", "CuPy"),
    "tensorflow": ("gpumem_shim.frameworks.tensorflow", "TensorFlow"),
    "jax": ("gpumem_shim.frameworks.jax", "Jax"),
}

ORIGINAL = "_gpumem_original"

NOT_STARTED = "NotStarted"
"""The framework has not used a GPU yet; its cap is set when it does."""
NO_ADAPTER = "NoAdapter"
"""The shim of this version can not cap this framework."""
NO_GPU_SUPPORT = "NoGPUSupport"
"""A build of the framework without CUDA: it holds nothing on a GPU."""
ALLOCATOR_HAS_NO_CAP = "AllocatorHasNoCap"
"""The program chose an allocator that knows no limit."""
TOO_OLD = "TooOld"
"""A release of the framework before those that the shim can cap."""
FAILED = "Failed"
"""The framework refused the cap, or is not as the shim knows it."""


class NotCapped(Exception):
    """There is no cap; the text is the reason in one word."""


class Adapter:
    """One framework in this process. Whatever it raises becomes the reason `Failed`."""

    name = ""
    can_reclaim = False
    resizable = True
    """Whether `set_cap` works after the framework has used the GPU."""

    watching = False
    """Whether it may come to use a GPU without announcing that; only `in_use` finds it then."""

    def __init__(self, module: ModuleType, process: Process) -> None:
        self.module = module
        self.process = process
        self.cap_hits: int | None = None
        """Allocations that failed on the cap; None where they are not counted."""
        self.arranged_in: object = None
        """The `place` in which our functions are."""

    def arrange(self) -> str:
        """Arrange that `process.started` is called just before a GPU is used; CUDA stays unused.

        Returns why there is no cap at this moment, usually NOT_STARTED. Raises NotCapped where
        there will be none, and nothing was arranged.
        """
        raise NotImplementedError

    def place(self, module: Any) -> object:
        """Where `arrange` puts our functions: while that is there, so are they."""
        return module

    def forked(self) -> None:
        """In a child: nothing is in use there, whatever was before."""
        self.cap_hits = None

    def in_use(self) -> Iterable[int]:
        """Ordinals of the GPUs that the framework uses, whether announced or not."""
        return ()

    def held(self, ordinal: int) -> int | None:
        """Bytes in its allocator, cached ones included; None is unknown."""
        raise NotImplementedError

    def set_cap(self, ordinal: int, total_bytes: int, cap_bytes: int) -> int:
        """Cap the allocator; the answer is lower where the program itself wants less.

        Called again and again with the same cap, and must put back what the program raised.
        Raises NotCapped.
        """
        raise NotImplementedError

    def busy(self) -> bool:
        """Whether memory must not be given back right now."""
        return False

    def reclaim(self) -> bool:
        """Give cached memory back to the driver, on every GPU in use; False: busy after all."""
        raise NotImplementedError


def adapter_for(name: str, module: ModuleType, process: Process) -> Adapter | None:
    """The adapter for a framework; None where there is none. Raises what importing it raises."""
    if name not in ADAPTERS:
        return None
    path, kind = ADAPTERS[name]
    made: Adapter = getattr(import_module(path), kind)(module, process)
    return made


def original_of(there: Any) -> Any:
    """A function or class of the framework, also where an arrangement that was interrupted had put
    one of ours before it: two of ours would each take the other for the framework."""
    return getattr(there, ORIGINAL, there)


def standing_before(original: Any, ours: Callable[..., Any]) -> Callable[..., Any]:
    """Ours, by which `original_of` finds the framework's again."""
    setattr(ours, ORIGINAL, original)
    return ours


def release_of(version: object, parts: int) -> tuple[int, ...]:
    """(2, 9) of 2.9.1+cu130 in two parts; () of what is no version."""
    found = str(version).split("+")[0].split(".")[:parts]
    return tuple(int(part) for part in found) if all(map(str.isdecimal, found)) else ()
