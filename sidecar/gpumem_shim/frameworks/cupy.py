"""CuPy: the limit of its memory pools, per GPU and in bytes.

CUPY_GPU_MEMORY_LIMIT in the container's environment bounds every pool from its beginning. What is
left for us: several pools in a process, a program that sets another limit (0 is none), frameworks
beside it, and what the process holds elsewhere. Pools are classes of an extension, whose methods
can not be replaced, so subclasses of them take their names.
Sources: cupy/cuda/memory.pyx of 14.2; runs of 14.2 without a GPU.
"""

from __future__ import annotations

import weakref
from contextlib import contextmanager

from gpumem_shim import state, thread
from gpumem_shim.faults import kept
from gpumem_shim.frameworks import (
    ALLOCATOR_HAS_NO_CAP,
    NOT_STARTED,
    Adapter,
    NotCapped,
    original_of,
    standing_before,
)
from gpumem_shim.frameworks.captures import Captures
from gpumem_shim.sharing import User, share_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType
    from typing import Any

    from gpumem_shim.process import Process

POOLS = ("MemoryPool", "MemoryAsyncPool")


class CuPy(Adapter):
    """`module` is cupy itself."""

    name = "cupy"

    def __init__(self, module: ModuleType, process: Process) -> None:
        super().__init__(module, process)
        self.cupy: Any = module
        self.pools: weakref.WeakSet[Any] = weakref.WeakSet()
        self._captures = Captures()
        self._caps: dict[int, int] = {}
        """What all pools may hold together, by ordinal."""
        self._strangers = 0
        """Threads that allocate past all pools at this moment."""

    def arrange(self) -> str:
        """Put pools that know their cap in the place of CuPy's own; CUDA stays unused."""
        cuda = self.cupy.cuda
        for kind in POOLS:
            if hasattr(cuda, kind):
                capped = _capped(original_of(getattr(cuda, kind)), self)
                setattr(cuda, kind, capped)
                setattr(cuda.memory, kind, capped)
        first = self.cupy._default_memory_pool = cuda.MemoryPool()
        cuda.set_allocator(first.malloc)
        choosing = self._choosing(original_of(cuda.set_allocator))
        cuda.set_allocator = cuda.memory.set_allocator = choosing
        if hasattr(cuda, "using_allocator"):
            choosing = self._choosing_for_a_while(original_of(cuda.using_allocator))
            cuda.using_allocator = cuda.memory.using_allocator = choosing
        self._watch_captures()
        self.cap_hits = 0
        return NOT_STARTED

    def place(self, module: Any) -> object:
        return module.cuda

    def forked(self) -> None:
        super().forked()
        self._strangers = 0
        for pool in list(self.pools):
            pool.used_on.clear()
            pool.ready_on.clear()

    def _watch_captures(self) -> None:
        base = self.cupy.cuda.Stream.__mro__[1]
        try:
            base.begin_capture = self._captures.begins(base.begin_capture)
            base.end_capture = self._captures.ends(base.end_capture)
        except (AttributeError, TypeError):
            # Releases in which streams are classes of an extension, or have no captures.
            return
        self.can_reclaim = True

    def _choosing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def set_allocator(allocator: Any = None) -> Any:
            answer = original(allocator)
            with kept:
                if not self._is_ours(allocator):
                    self._is_past_all_pools()
            return answer

        set_allocator.__doc__ = original.__doc__
        return standing_before(original, set_allocator)

    def _choosing_for_a_while(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @contextmanager
        def using_allocator(allocator: Any = None) -> Iterator[None]:
            if self._is_ours(allocator):
                with original(allocator):
                    yield
                return
            with state.lock():
                self._strangers += 1
            try:
                with original(allocator):
                    with kept:
                        self._is_past_all_pools()
                    yield
            finally:
                with state.lock():
                    self._strangers -= 1

        using_allocator.__doc__ = original.__doc__
        return standing_before(original, using_allocator)

    def _is_past_all_pools(self) -> None:
        # The next look caps them again where the pools are back.
        if self.process.limits.obstacle is None:
            self.process.uncapped(self.name, ALLOCATOR_HAS_NO_CAP)

    def _is_ours(self, allocator: Any) -> bool:
        return getattr(allocator, "__self__", None) in self.pools

    def used(self, pool: Any) -> None:
        """Before a pool takes memory on the current GPU."""
        ordinal = int(self.cupy.cuda.runtime.getDevice())
        if ordinal in pool.ready_on:
            return
        with state.lock():
            # Another thread may have come first, and is waited for.
            if ordinal not in pool.ready_on:
                pool.used_on.add(ordinal)
                with kept:
                    self.process.started(self.name, ordinal)
                pool.ready_on.add(ordinal)

    def in_use(self) -> Iterable[int]:
        return sorted(set().union(*(pool.used_on for pool in self.pools)))

    def held(self, ordinal: int) -> int | None:
        """In all pools."""
        with self._on(ordinal):
            return sum(int(pool.total_bytes()) for pool in list(self.pools))

    def set_cap(self, ordinal: int, total_bytes: int, cap_bytes: int) -> int:  # noqa: ARG002
        """Share it among the pools; the answer is what all of them may hold together."""
        if self._strangers or not self._is_ours(self.cupy.cuda.get_allocator()):
            raise NotCapped(ALLOCATOR_HAS_NO_CAP)
        self._caps[ordinal] = cap_bytes
        with self._on(ordinal):
            users = self._users(ordinal)
            share_out(cap_bytes, users)
            return sum(int(pool.get_limit()) for pool in self._used_on(ordinal))

    def _used_on(self, ordinal: int) -> list[Any]:
        # One that was not used yet has no part, and the cap of the container's environment.
        return [pool for pool in list(self.pools) if ordinal in pool.used_on]

    def _users(self, ordinal: int) -> list[User]:
        return [self._user(pool, ordinal) for pool in self._used_on(ordinal)]

    def _user(self, pool: Any, ordinal: int) -> User:
        def put(ours: int) -> None:
            theirs = pool.theirs.setdefault(ordinal, int(pool.get_limit()))
            cap = min(ours, theirs or ours)
            if int(pool.get_limit()) != cap:
                pool.put_limit(cap)

        def held() -> int:
            return int(pool.total_bytes())

        return User(str(id(pool)), held, put, cap_bytes=int(pool.get_limit()) or None)

    def favour(self, pool: Any) -> bool:
        """Give a pool that came to its limit what the others do not hold; whether that is more."""
        ordinal = int(self.cupy.cuda.runtime.getDevice())
        with state.lock():
            before = int(pool.get_limit())
            others = [other for other in self._used_on(ordinal) if other is not pool]
            if not others or ordinal not in self._caps:
                return False
            for other in others:
                other.put_limit(min(int(other.get_limit()), max(1, int(other.total_bytes()))))
            ours = self._caps[ordinal] - sum(
                max(int(other.get_limit()), int(other.total_bytes())) for other in others
            )
            theirs = pool.theirs.get(ordinal, 0)
            pool.put_limit(max(before, min(ours, theirs or ours)))
            return int(pool.get_limit()) > before

    def bound(self, pool: Any) -> None:
        """After the program set a limit of a pool on the current GPU."""
        ordinal = int(self.cupy.cuda.runtime.getDevice())
        pool.theirs[ordinal] = int(pool.get_limit())
        pool.used_on.add(ordinal)
        self.process.started(self.name, ordinal)
        pool.ready_on.add(ordinal)

    @contextmanager
    def _on(self, ordinal: int) -> Iterator[None]:
        """Pools answer for the current GPU. Our thread does not go back to the one before, which
        may have no context and would get one."""
        runtime = self.cupy.cuda.runtime
        before = int(runtime.getDevice())
        if before != ordinal:
            runtime.setDevice(ordinal)
        try:
            yield
        finally:
            if before != ordinal and not thread.is_ours():
                runtime.setDevice(before)

    def busy(self) -> bool:
        return self._captures.under_way

    def reclaim(self) -> bool:
        return self._captures.unless_capturing(self._free_all)

    def _free_all(self) -> None:
        for ordinal in self.in_use():
            with self._on(ordinal):
                for pool in list(self.pools):
                    pool.free_all_blocks()


def _capped(base: Any, adapter: CuPy) -> Any:
    """A pool as `base`, which tells the adapter of its first use and is never unlimited."""

    class Pool(base):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.used_on: set[int] = set()
            self.ready_on: set[int] = set()
            """GPUs on which it has its part of the cap."""
            self.theirs: dict[int, int] = {}
            """Limits that the program set, by ordinal; 0 is none."""
            adapter.pools.add(self)

        def malloc(self, size: int) -> Any:
            with kept:
                adapter.used(self)
            try:
                return base.malloc(self, size)
            except MemoryError:
                has_more = False
                with kept:
                    has_more = adapter.favour(self)
                if not has_more:
                    adapter.cap_hits = (adapter.cap_hits or 0) + 1
                    raise
            try:
                return base.malloc(self, size)
            except MemoryError:
                adapter.cap_hits = (adapter.cap_hits or 0) + 1
                raise

        def set_limit(self, size: Any = None, fraction: Any = None) -> None:
            base.set_limit(self, size, fraction)
            with kept:
                adapter.bound(self)

        def put_limit(self, size: int) -> None:
            base.set_limit(self, size)

    Pool.__name__, Pool.__qualname__ = base.__name__, base.__qualname__
    Pool.__module__, Pool.__doc__ = base.__module__, base.__doc__
    for own in ("malloc", "set_limit"):
        getattr(Pool, own).__doc__ = getattr(base, own).__doc__
    return standing_before(base, Pool)
