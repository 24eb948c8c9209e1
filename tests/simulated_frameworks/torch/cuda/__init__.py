import os

import gpu

import torch
from torch.cuda import _utils, graphs, memory

set_per_process_memory_fraction = memory.set_per_process_memory_fraction
memory_reserved = memory.memory_reserved
empty_cache = memory.empty_cache
_current = 0
_initialized = False
_starting = False
_queued = []
_started_by = None


def is_initialized():
    return _initialized and not _is_in_bad_fork()


def _is_in_bad_fork():
    return _in_fork()


def _in_fork():
    return _started_by is not None and _started_by != os.getpid()


def _lazy_call(call):
    if is_initialized():
        call()
    else:
        _queued.append(call)


def _lazy_init():
    global _initialized, _starting, _started_by
    if is_initialized() or _starting:
        return
    if _in_fork():
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess")
    gpu.start()
    _starting, _started_by = True, os.getpid()
    try:
        for call in _queued:
            call()
    finally:
        _starting = False
    _initialized = True


def device_count():
    return gpu.count()


def current_device():
    _lazy_init()
    return _current


def set_device(device):
    """Set the current device."""
    global _current
    if device < 0:
        return
    _lazy_init()
    _current = device
    gpu.context(device)


class device:
    def __init__(self, ordinal):
        self._ordinal = ordinal

    def __enter__(self):
        global _current
        self._before, _current = _current, self._ordinal

    def __exit__(self, *_):
        global _current
        _current = self._before


__all__ = ["_utils", "graphs", "memory", "torch"]
