"""The part of the demo's story in which the operator acts on what it measures."""

from __future__ import annotations

from devcluster.demo_stage import Stage, conclude, explain

_RESEARCH, _VISION = ["-n", "research"], ["-n", "vision"]


def over_the_limit_is_answered(stage: Stage) -> None:
    """One pod gives cached memory back and lives, the other one is evicted."""
    if stage.no_live_use:
        explain(f"Left out: {stage.no_live_use}.\n")
        return
    explain(
        "So far the policy only recorded (Audit, the default). Now it acts, after a grace period",
        "of 10 s: Reclaim asks the program for cached memory, Evict takes the pod away. A second",
        "pod comes along, `cached`: a PyTorch program that got rid of its cap. It holds 9Gi in its",
        "cache where 8Gi are allowed.",
    )
    stage.run("apply", "-f", "examples/demo/6-enforce.yaml")
    _wait_for_event(stage, "the eviction of greedy", "greedy", "Evicted", _RESEARCH)
    _wait_for_event(stage, "the order to cached", "cached", "Reclaiming", _RESEARCH)
    explain(
        "`greedy` was over its limit before; 10 s after it went over, its turn has come. Its shim",
        "found no framework that could give memory back (`why` said NoFramework above), so nobody",
        "is asked, and the next action follows at once:",
    )
    _events(stage, "greedy", _RESEARCH)
    stage.wait_for(
        "the end of the excess", "get", "pod", "cached", *_RESEARCH, "-o", _OVERUSE, until="False"
    )
    explain(
        "`cached` is told that it is over its limit. 10 s later its shim is asked and empties the",
        "cache, and the pod lives:",
    )
    _events(stage, "cached", _RESEARCH, "type=Warning")
    stage.run("get", "pod", "cached", *_RESEARCH, "-o", _OVERUSE_MESSAGE)
    line = r'{.time} {.pod} {.action}: {.result}{"\n"}'
    lines = f"jsonpath={{range .status.recentActions[*]}}{line}{{end}}"
    stage.wait_for("both lines", "get", "gmp", "training", *_RESEARCH, "-o", lines,
                   until=r"(?s)(?=.*cached Reclaim: Done)(?=.*greedy Evict: Done)")  # fmt: skip
    explain(
        "The policy keeps the last actions, the newest first, with what was tried in vain and what",
        "would have been done under Audit:",
    )
    stage.run("get", "gmp", "training", *_RESEARCH, "-o", lines)


_OVERUSE = "jsonpath={.status.conditions[?(@.type=='gpumemory.dev/Overuse')].status}"
_OVERUSE_MESSAGE = "jsonpath={.status.conditions[?(@.type=='gpumemory.dev/Overuse')].message}"


def replicas_follow(stage: Stage) -> None:
    """A Deployment grows with what its pods hold, and shrinks again."""
    if stage.no_live_use:
        explain(f"Left out: {stage.no_live_use}.\n")
        return
    explain(
        "A policy also keeps replicas right. The pods of the Deployment `detect` shall hold 80 %",
        "of their limits; its one pod holds 3800Mi of 4Gi, which is 92 %:",
    )
    stage.run("apply", "-f", "examples/demo/7-scaling.yaml")
    _wait_for_event(stage, "that it grows", "detect", "ScaledUp", _VISION)
    _wait_for_pods(stage, 2)
    explain("The load goes, and each of its pods holds 512Mi now:")
    stage.run("annotate", "pods", "-l", "app=detect", *_VISION, "simulation/holds=512Mi",
              "--overwrite")  # fmt: skip
    _wait_for_event(stage, "that it shrinks", "detect", "ScaledDown", _VISION)
    explain("Both changes, with their reasons:")
    _events(stage, "detect", _VISION, "reason!=ScalingReplicaSet")
    conclude(
        "It waited 15 s with that, as the policy says (300 s is the default), so that a short dip",
        "takes nothing away.",
    )


def _wait_for_pods(stage: Stage, number: int) -> None:
    running = "{.items[?(@.status.phase=='Running')].metadata.name}"
    stage.wait_for(f"{number} pods of it", "get", "pods", "-l", "app=detect", *_VISION, "-o",
                   f"jsonpath={running}", until=rf"(\S+\s*){{{number}}}")  # fmt: skip


def _wait_for_event(stage: Stage, what: str, name: str, reason: str, where: list[str]) -> None:
    about = f"--field-selector=involvedObject.name={name},reason={reason}"
    stage.wait_for(what, "get", "events", *where, about, "-o", "name", until="event/")


def _events(stage: Stage, name: str, where: list[str], *more: str) -> None:
    selector = ",".join([f"involvedObject.name={name}", "reason!=Scheduled", *more])
    columns = "custom-columns-file=examples/demo/columns/told.txt"
    stage.run("get", "events", *where, f"--field-selector={selector}", "-o", columns,
              "--sort-by=.lastTimestamp")  # fmt: skip
