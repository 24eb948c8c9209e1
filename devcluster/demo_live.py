"""The part of the demo's story in which programs hold memory."""

from __future__ import annotations

from devcluster.demo_stage import Stage, explain

LIVE = "examples/demo/5-live.yaml"


def who_holds_what(stage: Stage) -> None:
    """Two tenants, live use, and a pod of which it is not known."""
    explain(
        "A second tenant, with a namespace of its own, and four pods. Programs and cards are",
        "simulated: annotation simulation/holds says what each takes. The sidecars are real: each",
        "asks NVML (of a simulated driver) what its pod holds, and reports it to the operator.",
        "Real is also the shim in `capped`, whose program takes it by a simulated PyTorch.",
    )
    stage.run("apply", "-f", "examples/demo/4-vision.yaml")
    stage.wait_for("the namespace's ServiceAccount", "get", "serviceaccount", "-n", "vision",
                   until="default")  # fmt: skip
    stage.run("apply", "-f", LIVE)
    if stage.no_live_use:
        explain(f"Nothing runs them here: {stage.no_live_use}. Try it as root.")
        return
    for pod, shown in (
        ("greedy", "6Gi"),
        ("steady", "3Gi"),
        ("hidden", "DriverHidesMemory"),
        ("capped", "held by Framework"),
    ):
        stage.wait_for_gpumem(f"a report of {pod}", "why", f"pod/{pod}", "-n", _namespace(pod),
                              until=shown)  # fmt: skip
    explain("Who holds how much, the most first:")
    stage.gpumem("top", "-n", "vision")
    explain(
        "The shim caps the allocator of PyTorch in `capped` at the limit less a reserve: HELD BY",
        "says Framework, and `why` shows the cap. `steady` takes its memory by other means, which",
        "no shim caps, and the operator says that too. (NVML counts 518Mi of `capped` beside",
        "the 2Gi of its annotation: the context of CUDA, which each such process has.)",
    )
    stage.gpumem("why", "pod/capped", "-n", "vision")
    explain(
        "The pod `hidden` is on a node with an old driver, which tells it 0 bytes per process.",
        "That is not 0, it is unknown, and `why` says so, and what would help:",
    )
    stage.gpumem("why", "pod/hidden", "-n", "vision")


def over_the_limit(stage: Stage) -> None:
    """Use goes above limit and charge, and everything says so."""
    if stage.no_live_use:
        explain(f"Left out: {stage.no_live_use}.\n")
        return
    explain("The program of `greedy`, whose limit is 8Gi, takes twice as much as before:")
    stage.run("annotate", "pod", "greedy", "-n", "research", "simulation/holds=12Gi", "--overwrite")
    stage.wait_for_gpumem("a report of 12Gi", "why", "pod/greedy", "-n", "research",
                          until="OverLimit")  # fmt: skip
    stage.gpumem("why", "pod/greedy", "-n", "research")
    explain(
        "Nothing held it, and the operator says that instead of promising a limit. Its tenant too:"
    )
    stage.wait_for_gpumem("the tenant's condition", "tenants", "research",
                          until="UsingMoreThanCharged: True")  # fmt: skip
    stage.gpumem("tenants")
    explain("One of them in detail, with the condition that names the pod:")
    stage.gpumem("tenants", "research")


def _namespace(pod: str) -> str:
    return "research" if pod == "greedy" else "vision"
