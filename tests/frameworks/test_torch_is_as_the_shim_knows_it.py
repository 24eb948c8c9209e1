"""Real PyTorch releases without a GPU: what the shim calls is there, and nothing is started."""

from __future__ import annotations

import functools
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from frameworks.installed import Installed
from frameworks.releases import Release
from gpumem_operator.api.pytorch_allocator import KEYS, NEVER_VALID, format_config

SAMPLES = {
    "bool": "True",
    "fraction": "0.8",
    "power": "4",
    "roundup": "[256:1,512:2,>:8]",
    "backend": "native",
}
REFUSED = [
    "roundup_power2_divisions:[300:2]",
    "roundup_power2_divisions:[256:3]",
    "roundup_power2_divisions:0",
    "garbage_collection_threshold:1.0",
    "garbage_collection_threshold:0.99999999999999999999",
]
"""Values that policies may not set because no release takes them."""
CALLED = [
    "_C._cuda_hasPrimaryContext",
    "_C._cuda_attach_out_of_memory_observer",
    "cuda._is_in_bad_fork",
    "cuda._lazy_call",
    "cuda._lazy_init",
    "cuda._utils._get_device_index",
    "cuda.current_device",
    "cuda.device",
    "cuda.device_count",
    "cuda.empty_cache",
    "cuda.memory.get_allocator_backend",
    "cuda.memory_reserved",
]
SURVEY = """
import functools, inspect, json, threading, torch
cuda, graph = torch.cuda, torch.cuda.CUDAGraph
seen = {"started": [cuda.is_initialized(), threading.active_count()]}
def described(function): return [str(inspect.signature(function)), function.__doc__]
seen["wrapped"] = [described(one) for one in (cuda.set_per_process_memory_fraction,
    cuda.memory.set_per_process_memory_fraction, cuda.set_device,
    graph.capture_begin, graph.capture_end)]
def is_there(name):
    found = functools.reduce(lambda of, part: getattr(of, part, None), name.split("."), torch)
    return callable(found)
seen["missing"] = [name for name in NAMES if not is_there(name)]
seen["said"] = []
for use in (lambda: torch.zeros(1, device="cuda"), lambda: cuda.set_device(0),
            lambda: cuda.set_per_process_memory_fraction(0.5), lambda: cuda.set_device(-1)):
    try: seen["said"].append(use())
    except Exception as error: seen["said"].append([type(error).__name__, str(error)])
seen["available"] = [cuda.is_available(), cuda.device_count(), cuda.is_initialized()]
seen["settings"] = {}
for text in SETTINGS:
    try: seen["settings"][text] = cuda.memory._set_allocator_settings(text)
    except Exception as error: seen["settings"][text] = str(error)
print(json.dumps(seen))
"""


def settings_of(version: tuple[int, int]) -> dict[str, bool]:
    """Strings as policies may set them, and whether this release knows their key."""
    known = {
        format_config({key: SAMPLES.get(one.kind, str(one.least))}): version >= one.since
        for key, one in KEYS.items()
    }
    never = dict.fromkeys([*(f"{key}:2" for key in NEVER_VALID), *REFUSED], False)
    return known | never


@functools.cache
def surveyed(release: Release, *, shim: bool) -> tuple[Any, Any]:
    """What a program sees, and what the shim told. One import takes seconds, so it is one."""
    with TemporaryDirectory() as folder:
        container = Installed(Path(folder), release)
        names = f"NAMES = {CALLED}\nSETTINGS = {list(settings_of(container.version))}\n"
        seen = container.run(names + SURVEY, shim=shim)
        return seen, container.told() if shim else None


def test_an_import_starts_no_cuda_and_is_told(torch: Installed) -> None:
    seen, told = surveyed(torch.release, shim=True)
    assert seen["started"] == [False, 1]
    assert told["version"].partition("+")[0] == torch.release.version
    assert (told["notCapped"], told["reclaim"]) == ("NotStarted", "Supported")


def test_what_is_wrapped_looks_as_before(torch: Installed) -> None:
    with_shim, without = (surveyed(torch.release, shim=shim)[0] for shim in (True, False))
    assert with_shim["wrapped"] == without["wrapped"]


def test_everything_that_the_shim_calls_once_cuda_runs_is_there(torch: Installed) -> None:
    assert surveyed(torch.release, shim=True)[0]["missing"] == []


def test_without_a_driver_torch_says_so_itself(torch: Installed) -> None:
    with_shim, without = (surveyed(torch.release, shim=shim)[0] for shim in (True, False))
    assert with_shim["said"] == without["said"]
    assert with_shim["available"] == without["available"] == [False, 0, False]


def test_the_allocator_takes_what_policies_may_set_and_no_newer_key(torch: Installed) -> None:
    settings = settings_of(torch.version)
    answers = surveyed(torch.release, shim=False)[0]["settings"]
    wrong = {text: answers[text] for text in settings if (answers[text] is None) != settings[text]}
    assert wrong == {}
