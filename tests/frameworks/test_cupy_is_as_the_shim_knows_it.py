"""Real CuPy releases without a GPU: the pools are ours, and everything else is as before."""

from __future__ import annotations

from frameworks.installed import Installed


def test_an_import_starts_nothing_and_is_told(cupy: Installed) -> None:
    seen = cupy.run(
        "import cupy, json, threading\n"
        "pool = cupy.get_default_memory_pool()\n"
        "ours = cupy.cuda.get_allocator().__self__ is pool\n"
        "print(json.dumps([ours, isinstance(pool, cupy.cuda.MemoryPool),\n"
        "    repr(type(pool)), threading.active_count()]))"
    )
    told = cupy.told()
    assert seen == [True, True, "<class 'cupy.cuda.memory.MemoryPool'>", 1]
    assert (told["version"], told["notCapped"]) == (cupy.release.version, "NotStarted")


def test_captures_are_seen_or_nothing_is_given_back(cupy: Installed) -> None:
    wrapped = cupy.run(
        "import cupy, json\n"
        "begin = cupy.cuda.Stream.begin_capture\n"
        "print(json.dumps(hasattr(begin, '__wrapped__')))"
    )
    assert cupy.told()["reclaim"] == ("Supported" if wrapped else "Unsupported")


def test_its_words_are_its_own(cupy: Installed) -> None:
    program = (
        "import cupy, json\n"
        "pool, said = cupy.get_default_memory_pool(), []\n"
        "for use in (lambda: cupy.zeros(3), lambda: pool.set_limit(size=3),\n"
        "            lambda: pool.malloc('x'), lambda: pool.total_bytes()):\n"
        "    try: use()\n"
        "    except Exception as error: said.append([type(error).__name__, str(error)])\n"
        "print(json.dumps([said, pool.set_limit.__doc__, cupy.cuda.set_allocator.__doc__]))"
    )
    assert cupy.run(program) == cupy.run(program, shim=False)


def test_an_allocator_of_one_thread_is_chosen_as_before_and_told(cupy: Installed) -> None:
    program = (
        "import cupy, json\n"
        "seen = [cupy.cuda.using_allocator.__doc__, cupy.cuda.using_allocator.__name__]\n"
        "with cupy.cuda.using_allocator():\n"
        "    seen.append(str(cupy.cuda.get_allocator()).split(' at ')[0])\n"
        "    try: cupy.cuda.set_allocator()\n"
        "    except ValueError as error: seen.append(str(error))\n"
        "print(json.dumps(seen))"
    )
    assert cupy.run(program) == cupy.run(program, shim=False)
    assert cupy.told()["notCapped"] == "AllocatorHasNoCap"
