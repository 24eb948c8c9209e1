"""`python3 -m bench.real_gpu`: the sampler of sidecar and agent on a machine with an NVIDIA GPU.

Needs root (for PID namespaces), a C compiler, nvidia-smi and nvidia-ml-py, and nothing else of
this repository's packages. Prints one row per check, and writes them to the file given by
`--output`; the exit status is 1 where one failed. `--simulated` tries the script itself.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.cost import rss_mib
from bench.cpu import cpu_percent
from bench.gpu_machine import BASE_MIB, NEW_NAMESPACE, Machine, machine_in

MIB = 2**20
MORE_MIB = 4096
TOLERANCE_MIB = 2
GONE_SECONDS = 10.0
SETTLE_SECONDS = 5.0


class Check(NamedTuple):
    """One row."""

    what: str
    expected: str
    seen: str
    good: bool


def amounts(report: Any) -> dict[int, int | str]:
    """Bytes or the reason by PID."""
    return {one["pid"]: one["bytes"] or one["unknown"] for one in report["processes"]}


def checks(machine: Machine) -> Iterator[Check]:
    yield from _one_process(machine)
    yield from _namespaces(machine)
    yield from _a_child_namespace(machine)
    yield from _killed(machine)
    yield from _what_it_takes(machine)


def _one_process(machine: Machine) -> Iterator[Check]:
    with machine.holding() as holder:
        before = machine.report(agent=True)
        holder.set(BASE_MIB + MORE_MIB)
        after = machine.report(agent=True)
        smi = {} if machine.simulated else machine.nvidia_smi()
    rise = (_known(after, holder.pid) - _known(before, holder.pid)) / MIB
    yield _near(f"a process allocates {MORE_MIB} MiB more", rise)
    used = (after["gpus"][0]["usedBytes"] - before["gpus"][0]["usedBytes"]) / MIB
    yield _near("the card's use rises by as much", used)
    if smi:
        own = _known(after, holder.pid) // MIB
        yield _same("nvidia-smi shows the same MiB", smi.get(holder.pid), own)
    gpu = after["gpus"][0]
    left = gpu["totalBytes"] - gpu["reservedBytes"] - gpu["usedBytes"]
    attributed = sum(one for one in amounts(after).values() if isinstance(one, int))
    unattributed = gpu["usedBytes"] - attributed
    parts = [gpu["reservedBytes"], attributed, unattributed, left]
    text = " + ".join(f"{part // MIB}" for part in parts)
    yield Check(
        "total = reserved + attributed + unattributed + free, none negative",
        f"{gpu['totalBytes'] // MIB} MiB",
        text,
        sum(parts) == gpu["totalBytes"] and min(parts) >= 0,
    )


def _namespaces(machine: Machine) -> Iterator[Check]:
    """Two pods on one card."""
    with machine.holding(*NEW_NAMESPACE) as one, machine.holding(*NEW_NAMESPACE) as two:
        two.set(BASE_MIB + MORE_MIB)
        host = amounts(machine.report(agent=True))
        inside = [amounts(machine.report(*_enter(holder.pid))) for holder in (one, two)]
        stranger = machine.report(*NEW_NAMESPACE)
    yield _same("the agent sees both, under the node's PIDs", {one.pid, two.pid}, set(host))
    for name, holder, seen in (("first", one, inside[0]), ("second", two, inside[1])):
        expected = {holder.inner_pid: host.get(holder.pid)}
        yield _same(f"the sidecar of the {name} pod sees its process alone", expected, seen)
    yield _same(
        "a sidecar that shares no namespace says so", "ProcessesNotShared", stranger["unknown"]
    )


def _a_child_namespace(machine: Machine) -> Iterator[Check]:
    """A process whose PID namespace is a child of the pod's."""
    nested = (*NEW_NAMESPACE, "sh", "-c", '"$0" "$@"; exit', *NEW_NAMESPACE)
    with machine.holding(*nested) as holder:
        host = amounts(machine.report(agent=True))
        inner = amounts(machine.report(*_enter(holder.pid)))
        pod = amounts(machine.report(*_enter(holder.outer_pid)))
    yield _same("the agent sees a process two namespaces below", {holder.pid}, set(host))
    yield _same("its own namespace sees it", {holder.inner_pid: host.get(holder.pid)}, inner)
    yield _same("and the pod's, with the same bytes", [host.get(holder.pid)], [*pod.values()])


def _killed(machine: Machine) -> Iterator[Check]:
    with machine.holding() as holder:
        listed = holder.pid in amounts(machine.report(agent=True))
        os.kill(holder.pid, 9)
        since = time.monotonic()
        gone = listed
        while gone and (gone := holder.pid in amounts(machine.report(agent=True))):
            if time.monotonic() - since > GONE_SECONDS:
                break
        seconds = time.monotonic() - since
    yield Check(
        "a killed process is in no report any more",
        f"within {GONE_SECONDS:g} s",
        f"{seconds:.2f} s" if listed and not gone else "still listed",
        listed and not gone,
    )


def _what_it_takes(machine: Machine) -> Iterator[Check]:
    """Of the running program. Nobody takes its reports here, but TLS is loaded."""
    with machine.holding(), machine.measuring() as process:
        time.sleep(SETTLE_SECONDS)
        rss, percent = rss_mib(process.pid), cpu_percent(process.pid, 30)
    yield Check("RSS", "<= 56 MiB", f"{rss:.1f} MiB", rss <= 56)
    yield Check("CPU at 5 s", "<= 0.1 % of a core", f"{percent:.3f} %", percent <= 0.1)


def _near(what: str, mib: float) -> Check:
    good = abs(mib - MORE_MIB) <= TOLERANCE_MIB
    return Check(what, f"+{MORE_MIB} MiB, within {TOLERANCE_MIB}", f"{mib:+.2f} MiB", good)


def _same(what: str, expected: object, seen: object) -> Check:
    return Check(what, str(expected), str(seen), expected == seen)


def _known(report: Any, pid: int) -> int:
    amount = amounts(report).get(pid)
    if not isinstance(amount, int):
        raise SystemExit(f"process {pid} is {amount} in {report}")
    return amount


def _enter(pid: int) -> tuple[str, ...]:
    return ("nsenter", "--target", str(pid), "--pid", "--mount")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.real_gpu", description=__doc__)
    parser.add_argument("--output", type=Path, help="file for the rows as JSON")
    parser.add_argument("--simulated", action="store_true", help="try the script itself")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        machine = machine_in(Path(folder), simulated=options.simulated)
        driver = machine.report(agent=True)
        print(f"driver {driver['driverVersion']}, {driver['gpus'][0]['model']}", flush=True)
        rows = []
        for check in checks(machine):
            rows.append(check)
            verdict = "pass" if check.good else "FAIL"
            print(f"{verdict}  {check.what}: {check.seen} (expected {check.expected})", flush=True)
    if options.output:
        options.output.write_text(json.dumps([row._asdict() for row in rows], indent=2) + "\n")
    return 0 if all(row.good for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
