"""PyTorch 2.0 and newer: the fraction of each card that the caching allocator may take.

    import torch            -> `torch.cuda._lazy_call`: what is to be done once CUDA is started.
                               torch.cuda.is_initialized() stays False, and workers can be forked.
    CUDA starts             -> the fraction of the one visible GPU, of CUDA's own total.
    several visible GPUs    -> setting a fraction creates a context of some 500 MiB on that GPU, so
                               each one is capped when it is selected, or within 0.1 s of having
                               a context. Until then it is told as one without a cap.
    the program sets its own-> never above ours; a lower one stays.

The fraction counts what the allocator has reserved, and holds with expandable segments and with
cudaMallocAsync too. Nothing holds with PYTORCH_NO_CUDA_MEMORY_CACHING=1 or a pluggable allocator.
Sources: headers of torch 2.0.1 to 2.14.1; runs of torch 2.11 on an H200 and of 2.15 without a GPU.
"""

from __future__ import annotations

import functools
import os

from gpumem_shim import limits, thread
from gpumem_shim.faults import is_theirs, kept
from gpumem_shim.frameworks import (
    ALLOCATOR_HAS_NO_CAP,
    FAILED,
    NO_GPU_SUPPORT,
    NOT_STARTED,
    TOO_OLD,
    Adapter,
    NotCapped,
    original_of,
    release_of,
    standing_before,
)
from gpumem_shim.frameworks.captures import Captures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType
    from typing import Any

    from gpumem_shim.process import Process

OLDEST = (2, 0)
NATIVE = "native"
CAPPABLE = (NATIVE, "cudaMallocAsync")
NO_CACHING = "PYTORCH_NO_CUDA_MEMORY_CACHING"
"""Any value switches caching off in the releases up to 2.5, 0 as well."""


class Torch(Adapter):
    """`module` is torch itself."""

    name = "torch"

    def __init__(self, module: ModuleType, process: Process) -> None:
        super().__init__(module, process)
        self.torch: Any = module
        self._captures = Captures()
        self._theirs: dict[int, float] = {}
        """Fractions that the program set itself."""
        self._set: dict[int, float] = {}
        """Fractions as they were set last."""
        self._set_fraction: Callable[..., Any] = lambda *_: None
        self._uncached: bool | None = None
        """Whether the allocator caches nothing; None until that shows. It never changes."""
        self._wanted: float | None = None
        """The program's own fraction in the settings that CUDA started with."""
        self._observes = False

    def arrange(self) -> str:
        """Queue what is to be done when CUDA starts, and stand before the program's own caps."""
        cuda = self.torch.cuda
        if release_of(self.torch.__version__, 2) < OLDEST:
            raise NotCapped(TOO_OLD)
        if self.torch.version.cuda is None and getattr(self.torch.version, "hip", None) is None:
            raise NotCapped(NO_GPU_SUPPORT)
        self._watch_captures()
        self._set_fraction = original_of(cuda.set_per_process_memory_fraction)
        if self.process.limits.obstacle is None:
            bounded = self._bounded(self._set_fraction)
            cuda.set_per_process_memory_fraction = bounded
            cuda.memory.set_per_process_memory_fraction = bounded
            cuda.set_device = self._selecting(original_of(cuda.set_device))
        cuda._lazy_call(self._cuda_started)
        return ALLOCATOR_HAS_NO_CAP if NO_CACHING in os.environ else NOT_STARTED

    def place(self, module: Any) -> object:
        return module.cuda

    def _watch_captures(self) -> None:
        graph = self.torch.cuda.graphs.CUDAGraph
        graph.capture_begin = self._captures.begins(graph.capture_begin)
        # 2.15 ends a capture in two steps, and by the first alone where something failed.
        for name in ("capture_end", "capture_end_pre"):
            if name in vars(graph):
                setattr(graph, name, self._captures.ends(getattr(graph, name)))
        self.can_reclaim = True

    def _cuda_started(self) -> None:
        """Called by torch in the thread that starts CUDA, before that one goes on."""
        try:
            self._count_cap_hits()
            self._is_uncached()
            self._of_the_environment()
            if self.torch.cuda.device_count() == 1:
                self.process.started(self.name, 0)
            else:
                self.process.start_thread()
        except Exception as error:
            self.process.uncapped(self.name, FAILED)
            # By any other than that, torch would fail the program's first use of CUDA.
            if is_theirs(error):
                raise

    def in_use(self) -> Iterable[int]:
        """GPUs with a context, whoever made it: nobody can use one without."""
        cuda = self.torch.cuda
        if not cuda.is_initialized() or cuda._is_in_bad_fork():
            return []
        count, has_context = cuda.device_count(), self.torch._C._cuda_hasPrimaryContext
        found = [ordinal for ordinal in range(count) if has_context(ordinal)]
        self.watching = len(found) < count
        return found

    def held(self, ordinal: int) -> int | None:
        """What the allocator has reserved."""
        if not self.torch.cuda.is_initialized():
            return 0
        if self._backend() not in CAPPABLE:
            return None
        return int(self.torch.cuda.memory_reserved(ordinal))

    def set_cap(self, ordinal: int, total_bytes: int, cap_bytes: int) -> int:
        """Set the fraction; CUDA has started, and the GPU has a context or is about to."""
        if self._backend() not in CAPPABLE or self._is_uncached():
            raise NotCapped(ALLOCATOR_HAS_NO_CAP)
        ours = limits.fraction_of(cap_bytes, total_bytes)
        fraction = min(ours, self._theirs.get(ordinal, 1.0), self._of_the_environment())
        if self.busy() and ordinal in self._set:
            # Releases up to 2.9 ask the driver for the total, and a capture is no time for that.
            return int(self._set[ordinal] * total_bytes)
        if self._now(ordinal) != fraction:
            self._apply(fraction, ordinal)
        return min(cap_bytes, int(fraction * total_bytes))

    def _apply(self, fraction: float, ordinal: int) -> None:
        # torch makes the GPU the current one of the thread and leaves it so. In a thread of ours
        # that is right: the one before may have no context, and would get one. A program's thread
        # gets back what it had.
        if thread.is_ours() or self.torch.cuda.current_device() == ordinal:
            self._set_fraction(fraction, ordinal)
        else:
            with self.torch.cuda.device(ordinal):
                self._set_fraction(fraction, ordinal)
        self._set[ordinal] = fraction

    def _now(self, ordinal: int) -> float | None:
        """The fraction that is in force, which the program may have set past our function."""
        read = getattr(self.torch._C, "_cuda_getMemoryFraction", None)
        if read is None or self._backend() != NATIVE:
            return self._set.get(ordinal)
        return float(read(ordinal))

    def _backend(self) -> str:
        return str(self.torch.cuda.memory.get_allocator_backend())

    def _is_uncached(self) -> bool:
        """torch looks at the variable once, at its first allocation, and may do so without our
        seeing it. Where it was ever set before, only memory in the cache says that it caches."""
        if self._uncached is not False:
            if self._has_cached():
                self._uncached = False
            elif NO_CACHING in os.environ:
                self._uncached = True
        return bool(self._uncached)

    def _has_cached(self) -> bool:
        cuda = self.torch.cuda
        return any(cuda.memory_reserved(ordinal) > 0 for ordinal in self.in_use())

    def _of_the_environment(self) -> float:
        """The program's own fraction in the allocator's settings, which releases from 2.10 take.
        What it sets later is for its children."""
        if self._wanted is None:
            takes_it = release_of(self.torch.__version__, 2) >= (2, 10)
            self._wanted = _fraction_in(_settings()) if takes_it else 1.0
        return self._wanted

    def _bounded(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def set_per_process_memory_fraction(fraction: Any, device: Any = None) -> Any:
            return original(self._at_most_ours(fraction, device), device)

        return standing_before(original, set_per_process_memory_fraction)

    def _at_most_ours(self, fraction: Any, device: Any) -> Any:
        """What is wrong with the arguments, torch says in its own words."""
        if not isinstance(fraction, float) or not 0.0 <= fraction <= 1.0:
            return fraction
        self.torch.cuda._lazy_init()
        try:
            ordinal = self.torch.cuda._utils._get_device_index(device, optional=True)
            self._theirs[ordinal] = fraction
            self.process.started(self.name, ordinal)
            return min(fraction, self._set.get(ordinal, fraction))
        except Exception as error:
            if is_theirs(error):
                raise
            return fraction

    def _selecting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def set_device(device: Any) -> Any:
            answer = original(device)
            with kept:
                # A negative device selects nothing and starts nothing.
                cuda = self.torch.cuda
                ordinal = cuda.current_device() if cuda.is_initialized() else -1
                if ordinal >= 0 and self.name not in self.process.using.get(ordinal, ()):
                    self.process.started(self.name, ordinal)
            return answer

        return standing_before(original, set_device)

    def _count_cap_hits(self) -> None:
        attach = getattr(self.torch._C, "_cuda_attach_out_of_memory_observer", None)
        if attach is None or self._backend() != NATIVE or self._observes:
            return
        self._observes = True

        def out_of_memory(_device: int, wanted: int, _allowed: int, free: int) -> None:
            # With less free on the card than wanted, the card is full and not the cap.
            if free >= wanted:
                self.cap_hits = (self.cap_hits or 0) + 1

        attach(out_of_memory)
        self.cap_hits = 0

    def busy(self) -> bool:
        return self._captures.under_way

    def reclaim(self) -> bool:
        return self._captures.unless_capturing(self.torch.cuda.empty_cache)


def _settings() -> str:
    for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        if name in os.environ:
            return os.environ[name]
    return ""


def _fraction_in(settings: str) -> float:
    for setting in settings.replace(" ", "").split(","):
        key, _, value = setting.partition(":")
        if key == "per_process_memory_fraction":
            try:
                return float(value)
            except ValueError:
                # torch refuses it at its first use of CUDA.
                return 1.0
    return 1.0
