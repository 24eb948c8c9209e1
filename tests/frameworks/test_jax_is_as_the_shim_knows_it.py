"""Real JAX releases with two simulated cards: the options that its GPU backend would start with.

jaxlib has no CUDA here. What starts a backend ends where its own code would call the plugin: the
options come from JAX's own reading of the environment, on JAX's own way.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from devcluster.simulated_driver import numbered_device
from frameworks.installed import Installed
from frameworks.releases import Release

GIB = 2**30
TOTAL = numbered_device(0).total_mib * 2**20
LEAST = 2**16
"""What may be lost by a fraction in single precision."""
CASES: dict[str, dict[str, str]] = {
    "nothing": {},
    "older name, higher": {"XLA_PYTHON_CLIENT_MEM_FRACTION": ".9"},
    "newer name, higher": {"XLA_CLIENT_MEM_FRACTION": ".9"},
    "older name, lower": {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.01"},
    "newer name, lower": {"XLA_CLIENT_MEM_FRACTION": "0.01"},
    "both names": {"XLA_CLIENT_MEM_FRACTION": ".1", "XLA_PYTHON_CLIENT_MEM_FRACTION": ".1"},
    "preallocating": {"XLA_PYTHON_CLIENT_PREALLOCATE": "true"},
    "not preallocating": {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    "collectives": {"XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB": "1024"},
    "platform": {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"},
    "cuda_async": {"XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async"},
    "cuda_malloc_async": {"TF_GPU_ALLOCATOR": "cuda_malloc_async"},
}
PROGRAM = """
import json, jax, os, threading
from jax._src import xla_bridge
from jaxlib import xla_client
process = None
if SHIM: from gpumem_shim import process
started = []
class Library:
    def __getattr__(self, name): return getattr(library, name)
    def get_c_api_client(self, name, options, *more):
        if "FAIL" in os.environ: raise RuntimeError("no GPU today")
        started.append(dict(options))
        return "a client"
library, xla_client._xla = xla_client._xla, Library()
xla_client.pjrt_plugin_initialized = lambda name: True
def told():
    if process is None: return {"caps": {}, "not_capped": None}
    return dict(vars(process.own.told.frameworks["jax"]))
def start(variables, platform="cuda"):
    os.environ.update(variables)
    seen = {"options": None, "error": None}
    try:
        options = xla_client.generate_pjrt_gpu_plugin_options()
        xla_bridge.make_pjrt_c_api_client(platform, options)
        seen["options"] = started[-1]
    except Exception as error: seen["error"] = str(error)
    for name in variables: del os.environ[name]
    return {**seen, **told()}
seen = {"imported": {"backends": len(xla_bridge._backends), "threads": threading.active_count(),
                     **told()}}
seen["another platform"] = start({}, "another")
for name, variables in CASES.items(): seen[name] = start(variables)
seen["failing"] = start({"FAIL": "1"})
jax.config.update("jax_cuda_visible_devices", "1")
seen["second card"] = start({})
print(json.dumps(seen))
"""


@functools.cache
def survey(release: Release, *, shim: bool = True, hidden: bool = False) -> Any:
    """What each start came to. An import takes seconds, so one program makes them all."""
    with TemporaryDirectory() as folder:
        container = Installed(Path(folder), release, cards=2)
        if hidden:
            container.environment["SIMULATED_CUDA_HIDES_THE_TOTAL"] = "1"
        constants = f"SHIM, CASES = {shim}, json.loads({json.dumps(CASES)!r})\n"
        return container.run(f"import json\n{constants}{PROGRAM}", shim=shim)


def cap_of(seen: Any) -> int:
    return int(seen["options"]["memory_fraction"] * TOTAL)


def test_an_import_starts_nothing_and_is_told(jax: Installed) -> None:
    seen = survey(jax.release)["imported"]
    assert (seen["backends"], seen["threads"]) == (0, 1)
    assert (seen["version"], seen["not_capped"]) == (jax.release.version, "NotStarted")


def test_every_card_is_within_the_cap_and_it_is_told(jax: Installed) -> None:
    seen = survey(jax.release)["nothing"]
    assert 7 * GIB - LEAST <= cap_of(seen) <= 7 * GIB
    assert list(seen["caps"].values()) == [cap_of(seen)] * 2
    assert (seen["not_capped"], seen["reclaim"]) == (None, "Unsupported")


@pytest.mark.parametrize("name", ["older name", "newer name"])
def test_the_programs_own_fraction_is_never_above_ours_and_a_lower_one_stays(
    jax: Installed, name: str
) -> None:
    seen = survey(jax.release)
    assert 7 * GIB - LEAST <= cap_of(seen[f"{name}, higher"]) <= 7 * GIB
    assert abs(cap_of(seen[f"{name}, lower"]) - 0.01 * TOTAL) <= LEAST


def test_both_names_are_refused_in_jaxs_own_words(jax: Installed) -> None:
    with_shim, without = (survey(jax.release, shim=shim)["both names"] for shim in (True, False))
    assert with_shim["error"] == without["error"]
    assert "is specified together with" in without["error"]


def test_preallocation_is_as_the_environment_says(jax: Installed) -> None:
    seen = survey(jax.release)
    assert seen["preallocating"]["options"]["preallocate"] is True
    assert seen["not preallocating"]["options"]["preallocate"] is False
    assert cap_of(seen["preallocating"]) == cap_of(seen["not preallocating"]) <= 7 * GIB


def test_memory_for_collectives_comes_out_of_the_cap(jax: Installed) -> None:
    assert 6 * GIB - LEAST <= cap_of(survey(jax.release)["collectives"]) <= 6 * GIB


@pytest.mark.parametrize("allocator", ["platform", "cuda_async", "cuda_malloc_async"])
def test_an_allocator_without_a_cap_is_told(jax: Installed, allocator: str) -> None:
    seen = survey(jax.release)[allocator]
    assert "memory_fraction" not in seen["options"]
    assert (seen["not_capped"], seen["caps"]) == ("AllocatorHasNoCap", {})


def test_only_the_cards_that_jax_may_see_are_asked_about(jax: Installed) -> None:
    [gpu] = survey(jax.release)["second card"]["caps"]
    assert gpu == numbered_device(1).uuid


def test_another_platform_is_left_alone(jax: Installed) -> None:
    seen = survey(jax.release)["another platform"]
    assert "memory_fraction" not in seen["options"]
    assert seen["not_capped"] == "NotStarted"


def test_cards_that_hide_their_memory_are_not_capped_and_that_is_told(jax: Installed) -> None:
    seen = survey(jax.release, hidden=True)["nothing"]
    assert "memory_fraction" not in seen["options"]
    assert (seen["not_capped"], seen["caps"]) == ("NoTotal", {})


def test_a_backend_that_does_not_start_has_no_cap(jax: Installed) -> None:
    seen = survey(jax.release)["failing"]
    assert seen["error"] == "no GPU today"
    assert (seen["not_capped"], seen["caps"]) == ("NotStarted", {})


def test_a_process_on_the_cpu_works_as_before(jax: Installed) -> None:
    jax.environment["JAX_PLATFORMS"] = "cpu"
    total = jax.run("import json, jax.numpy as np; print(json.dumps(float(np.ones(3).sum())))")
    assert total == 3.0
    assert jax.told()["notCapped"] == "NotStarted"
