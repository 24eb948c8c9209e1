"""A simulated cupy: pools with a limit per GPU, in classes whose methods can not be replaced."""

import contextlib
import os
import threading
import types

import gpu

__version__ = "14.2.0"
_current = 0
_allocator = None
_of_this_thread = threading.local()


class OutOfMemoryError(MemoryError):
    pass


class _Frozen(type):
    def __setattr__(cls, name, value):
        if cls.__base__ is _Pool:
            raise TypeError("cannot set attribute of immutable type")
        super().__setattr__(name, value)


class _Pool:
    def __init__(self):
        self._total, self._limits, self._cached = {}, {}, {}

    def malloc(self, size):
        gpu.start()
        gpu.context(_current)
        total = self._total.get(_current, 0)
        limit = self.get_limit()
        size -= self._cached.get(_current, 0)
        if size <= 0:
            return
        if (limit and total + size > limit) or not gpu.take(_current, size):
            raise OutOfMemoryError(f"simulated: {size}, limit set to: {limit}")
        self._total[_current] = total + size
        self._cached[_current] = self._cached.get(_current, 0) + size

    def total_bytes(self):
        return self._total.get(_current, 0)

    def get_limit(self):
        of_environment = int(os.environ.get("CUPY_GPU_MEMORY_LIMIT", "0"))
        return self._limits.get(_current, of_environment)

    def set_limit(self, size=None, fraction=None):
        """Sets the upper limit of memory allocation of the current device."""
        gpu.start()
        if size is not None and fraction is not None:
            raise ValueError("size and fraction cannot be specified at the same time")
        if fraction is not None:
            size = int(gpu.total(_current) * fraction)
        self._limits[_current] = size or 0

    def free_all_blocks(self):
        cached = self._cached.pop(_current, 0)
        gpu.take(_current, -cached)
        self._total[_current] = self._total.get(_current, 0) - cached


class MemoryPool(_Pool, metaclass=_Frozen):
    """Memory pool for all GPU devices on the host."""


class _BaseStream:
    def begin_capture(self, mode=None):
        pass

    def end_capture(self):
        pass


class Stream(_BaseStream):
    pass


def set_allocator(allocator=None):
    """Sets the current allocator for GPU memory."""
    global _allocator
    _allocator = allocator


def get_allocator():
    return getattr(_of_this_thread, "allocator", None) or _allocator


@contextlib.contextmanager
def using_allocator(allocator=None):
    """Sets a thread-local allocator for GPU memory."""
    before = getattr(_of_this_thread, "allocator", None)
    _of_this_thread.allocator = allocator or _malloc
    try:
        yield
    finally:
        _of_this_thread.allocator = before


def _malloc(size):
    gpu.start()
    gpu.take(_current, size)


def _get_device():
    # As the real one, it starts the driver and makes no context.
    gpu.start()
    return _current


def _set_device(ordinal):
    global _current
    _current = ordinal


def allocate(mib):
    (get_allocator() or _malloc)(mib * gpu.MIB)


cuda = types.SimpleNamespace(
    MemoryPool=MemoryPool,
    Stream=Stream,
    set_allocator=set_allocator,
    get_allocator=get_allocator,
    using_allocator=using_allocator,
    runtime=types.SimpleNamespace(getDevice=_get_device, setDevice=_set_device),
    memory=types.SimpleNamespace(
        MemoryPool=MemoryPool, set_allocator=set_allocator, using_allocator=using_allocator
    ),
)
_default_memory_pool = cuda.MemoryPool()
cuda.set_allocator(_default_memory_pool.malloc)


def get_default_memory_pool():
    return _default_memory_pool
