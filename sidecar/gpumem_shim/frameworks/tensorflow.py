"""TensorFlow: a memory limit in whole MiB for every GPU.

    import tensorflow  -> nothing but our functions in the place of those that are called when the
                          context or a session starts. The program may configure as it likes.
    context starts     -> in the options that TensorFlow made of all that: a limit for each visible
                          GPU that has none, and a lower one where the program's own are higher.

Neither `set_memory_growth` nor `set_logical_device_configuration` is called or replaced. If we
called the second after an import, it would make the first raise ValueError in programs that expect
nothing but RuntimeError there. In the options both go together: the allocator grows, to the limit.
An allocation that fails becomes a ResourceExhaustedError, which is where cap hits are counted.
Sources: tensorflow/python/eager/context.py, tensorflow/python/client/session.py and
tensorflow/python/framework/errors_impl.py of 2.21, runs of 2.21 without a GPU and on an H200 (cap
hits without one only).
"""

from __future__ import annotations

import functools
import os
import sys

from gpumem_shim import limits, state
from gpumem_shim.faults import is_theirs, kept
from gpumem_shim.frameworks import (
    ALLOCATOR_HAS_NO_CAP,
    FAILED,
    NOT_STARTED,
    TOO_OLD,
    Adapter,
    NotCapped,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType
    from typing import Any

    from gpumem_shim.process import Process

CONTEXT = "tensorflow.python.eager.context"
ON_A_GPU = "device:GPU:"
"""In what TensorFlow says of an operation that failed: the name of its device."""
MODE_ENV = "GPUMEM_TENSORFLOW_MODE"
UNCAPPED_MODES = {"Growth": "ModeGrowth", "Default": "ModeDefault"}
"""Modes of a policy under which nothing is bounded, and the reasons that are told."""


class TensorFlow(Adapter):
    """`module` is tensorflow itself."""

    name = "tensorflow"
    resizable = False

    def __init__(self, module: ModuleType, process: Process) -> None:
        super().__init__(module, process)
        self._uncapped_mode = UNCAPPED_MODES.get(os.environ.get(MODE_ENV, ""))
        self._fraction = 1.0
        """Of a card, that the program asked for itself."""
        self._theirs: dict[int, int] = {}
        """Bytes that the program asked for itself, on all logical devices of a GPU."""
        self._caps: dict[int, int] = {}
        self._totals: dict[int, int] = {}
        self._given_up = False
        self._counts = False

    def arrange(self) -> str:
        """Stand where options are made; the context stays unused."""
        context: Any = sys.modules.get(CONTEXT)
        kind: Any = getattr(context, "Context", None)
        if not hasattr(kind, "_compute_gpu_options") or not hasattr(kind, "ensure_initialized"):
            raise NotCapped(TOO_OLD)
        kind._compute_gpu_options = self._computing(kind._compute_gpu_options)
        kind.ensure_initialized = self._initializing(kind, kind.ensure_initialized)
        session: Any = sys.modules.get("tensorflow.python.client.session")
        if hasattr(session, "BaseSession"):
            base = session.BaseSession
            base.__init__ = self._opening(base.__init__, context)
        errors: Any = sys.modules.get("tensorflow.python.framework.errors_impl")
        if hasattr(errors, "ResourceExhaustedError"):
            error = errors.ResourceExhaustedError
            error.__init__ = self._failing(error.__init__)
            self._counts = True
        return NOT_STARTED

    def place(self, module: Any) -> object:  # noqa: ARG002
        return sys.modules.get(CONTEXT)

    def _computing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def _compute_gpu_options(context: Any) -> Any:
            options = original(context)
            ordinals = [int(number) for number in options.visible_device_list.split(",") if number]
            return self._limited(options, ordinals) if ordinals else options

        return _compute_gpu_options

    def _initializing(self, kind: Any, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def ensure_initialized(context: Any) -> Any:
            try:
                answer = original(context)
            except Exception as error:
                if not self._caps or self._given_up or is_theirs(error):
                    raise
                # TensorFlow takes limits for all GPUs or for none, and leaves out some GPUs by
                # itself (those with few processors, beside larger ones). The program goes first.
                self._give_up()
                answer = original(context)
            # It is called for every operation.
            kind.ensure_initialized = original
            return answer

        return ensure_initialized

    def _give_up(self) -> None:
        with state.lock():
            self._given_up = True
            self._caps = {}
            self.process.uncapped(self.name, FAILED)

    def _opening(self, original: Callable[..., Any], context: Any) -> Callable[..., Any]:
        @functools.wraps(original)
        def __init__(session: Any, target: Any = "", graph: Any = None, config: Any = None) -> None:
            # Without a configuration of its own, a session takes the context's.
            if config is not None and not target:
                config = self._configured(config, context)
            original(session, target, graph, config)

        return __init__

    def _configured(self, config: Any, context: Any) -> Any:
        """What a session of the first TensorFlow's kind was given, within the cap."""
        try:
            if config.device_count.get("GPU", 1) == 0:
                return config
            listed = config.gpu_options.visible_device_list
            ordinals = [int(number) for number in listed.split(",") if number]
            if not ordinals:
                ordinals = list(range(len(context.context().list_physical_devices("GPU"))))
            changed = type(config)()
            changed.CopyFrom(config)
            limited = self._limited(config.gpu_options, ordinals, by_fraction=True)
            changed.gpu_options.CopyFrom(limited)
        except Exception as error:
            if is_theirs(error):
                raise
            # What is wrong with it, TensorFlow says itself.
            return config
        return changed

    def _limited(self, options: Any, ordinals: Iterable[int], *, by_fraction: bool = False) -> Any:
        """A copy of the options within the caps; they themselves where there are none."""
        try:
            with state.lock():
                return self._bounded(options, list(ordinals), by_fraction=by_fraction)
        except BaseException as error:
            # The caps that were told on the way are in no options.
            self._caps = {}
            self.process.withdrew(self.name)
            if is_theirs(error):
                raise
            self.process.uncapped(self.name, FAILED)
            return options

    def _bounded(self, options: Any, ordinals: list[int], *, by_fraction: bool) -> Any:
        bounded = type(options)()
        bounded.CopyFrom(options)
        devices = bounded.experimental.virtual_devices
        by_fraction = by_fraction and not devices
        if not self._given_up:
            self._note_theirs(bounded, ordinals)
            self._announce(ordinals)
        caps = {ordinal: self._caps[ordinal] for ordinal in ordinals if ordinal in self._caps}
        if not caps:
            return options
        if by_fraction:
            bounded.per_process_gpu_memory_fraction = min(
                limits.fraction_of(cap, self._totals[ordinal]) for ordinal, cap in caps.items()
            )
            return bounded
        while len(devices) < len(ordinals):
            devices.add()
        has_priorities = any(device.priority for device in devices)
        for device, ordinal in zip(devices, ordinals):
            if ordinal in caps:
                _lower(device, caps[ordinal] // limits.MIB, has_priorities=has_priorities)
        return bounded

    def _note_theirs(self, options: Any, ordinals: list[int]) -> None:
        for index, device in enumerate(options.experimental.virtual_devices):
            if index < len(ordinals) and device.memory_limit_mb:
                self._theirs[ordinals[index]] = int(sum(device.memory_limit_mb)) * limits.MIB
        fraction = options.per_process_gpu_memory_fraction
        self._fraction = fraction if 0 < fraction < 1 else 1.0

    def _announce(self, ordinals: list[int]) -> None:
        self.process.start_driver()
        for ordinal in ordinals:
            # The options are made again and again; what holds is what the context started with.
            if self.name not in self.process.using.get(ordinal, ()):
                self.process.started(self.name, ordinal)

    def set_cap(self, ordinal: int, total_bytes: int, cap_bytes: int) -> int:
        """Note it for the options."""
        if self._uncapped_mode is not None:
            raise NotCapped(self._uncapped_mode)
        if self._given_up:
            raise NotCapped(FAILED)
        if os.environ.get("TF_GPU_ALLOCATOR") == "cuda_malloc_async":
            # Its limit is when memory goes back to the driver, and no cap.
            raise NotCapped(ALLOCATOR_HAS_NO_CAP)
        theirs = min(self._theirs.get(ordinal, cap_bytes), int(self._fraction * total_bytes))
        cap = max(limits.MIB, min(cap_bytes, theirs) // limits.MIB * limits.MIB)
        self._caps[ordinal], self._totals[ordinal] = cap, total_bytes
        self._count_cap_hits(ordinal)
        return cap

    def _count_cap_hits(self, ordinal: int) -> None:
        """From now on; not where a full card could not be told from a cap."""
        card, cards = self.process.card(ordinal), self.process.cards
        if card is None or cards is None or cards.free(card) is None:
            self._counts, self.cap_hits = False, None
        elif self._counts and self.cap_hits is None:
            self.cap_hits = 0

    def _failing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def __init__(error: Any, node_def: Any, op: Any, message: Any, *args: Any) -> None:
            original(error, node_def, op, message, *args)
            with kept:
                # Files, queues and the host's memory are exhausted by the same error.
                if self.cap_hits is not None and ON_A_GPU in str(message) and self._has_room():
                    self.cap_hits += 1

        return __init__

    def _has_room(self) -> bool:
        """Whether each card could have given what its cap still allows: then a cap was in the way,
        and not a full card."""
        cards = self.process.cards
        for ordinal, cap in list(self._caps.items()):
            card = self.process.card(ordinal)
            free = None if card is None or cards is None else cards.free(card)
            if card is None or cards is None or free is None:
                return False
            held = cards.held_by_this_process(card) or 0
            if free < cap + self.process.limits.reserve_bytes - held:
                return False
        return True

    def in_use(self) -> Iterable[int]:
        using = self.process.using
        return [ordinal for ordinal, names in using.items() if self.name in names]

    def held(self, ordinal: int) -> int | None:  # noqa: ARG002
        """Unknown: it tells what its tensors take, and not what its allocator has."""
        return None


def _lower(device: Any, cap_mib: int, *, has_priorities: bool) -> None:
    """Bring the logical devices of one GPU within the cap, each by its part."""
    asked = list(device.memory_limit_mb)
    if not asked:
        device.memory_limit_mb.append(cap_mib)
        if has_priorities:
            device.priority.append(0)
    elif sum(asked) > cap_mib:
        device.memory_limit_mb[:] = [max(1, int(one * cap_mib / sum(asked))) for one in asked]
