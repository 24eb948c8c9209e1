"""`python -m bench.readme`: the table "Figures" of the README, from the JSON of the last run."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.costs import PARTS_FOLDER
from bench.reports import TARGET_PER_CORE

Found = dict[str, Any]
"""What each part wrote, by its name; parts that did not run are missing."""
PARTS = ("admission", "reports", "sidecar", "shim", "overuse", "tenants", "scale")


def read(folder: Path) -> Found:
    """Raises FileNotFoundError with the next step where nothing was measured."""
    paths = {part: folder / f"{part}.json" for part in PARTS}
    found = {part: json.loads(path.read_text()) for part, path in paths.items() if path.exists()}
    if "admission" not in found:
        raise FileNotFoundError(f"{paths['admission']} is not there: run `make bench` first")
    return found


def figures(found: Found) -> str:
    """The table in Markdown."""
    machine = found["admission"]["machine"]
    where = f"{machine['date'].split()[0]}, {machine['machine'].split(',')[0]}"
    title = f"{where}, Kubernetes {machine['Kubernetes'].removeprefix('v')}"
    lines = [f"| measured ({title}) | figure | to reach |", "|---|---|---|"]
    lines += [
        _ratios(found, "GPU pod, 1 client / 8 clients", "GPU pod", ["1 client", "8 clients"]),
        _ratios(found, "GPU pod, 32 clients", "GPU pod", ["32 clients"]),
        _ratios(found, "GPU pod, 50 per second", "GPU pod", ["50 per second"]),
        _states(found, "CPU pod, webhook up / hung / stopped (1 client)"),
    ]
    rows: list[tuple[str, str, Callable[[str], bool]]] = [
        ("CPU of the webhook per 1,000 pods", "admission", _starts("CPU per 1,000 pods, 1 client")),
        ("RSS of the webhook", "admission", _starts("RSS")),
        ("ledger of 10,000 pods on 1,000 nodes rebuilt", "scale", _starts("start until")),
        ("RSS of the controller with them", "scale", _starts("RSS")),
        ("CPU of the controller with them, at rest", "scale", _starts("CPU at rest")),
        ("RSS of the sidecar, simulated driver", "sidecar", _starts("sidecar: RSS later")),
        ("CPU of the sidecar, median interval", "sidecar", _starts("sidecar: CPU")),
        ("RSS of the agent, simulated driver", "sidecar", _starts("agent: RSS later")),
        ("CPU of the agent, median interval", "sidecar", _starts("agent: CPU")),
        ("shim in a process without a framework", "shim", lambda what: "without" in what),
        ("shim in a process with one", "shim", lambda what: "with one" in what),
        (
            "end of the grace period until the agent kills",
            "overuse",
            _starts("agent, Kill: after it"),
        ),
        (
            "end of the grace period until a sidecar's pod is evicted",
            "overuse",
            _starts("sidecar, Evict: after it"),
        ),
    ]
    lines += [_worst(found, *row) for row in rows]
    return "\n".join([*lines, *_tenants(found), _reports(found)])


def _starts(text: str) -> Callable[[str], bool]:
    return lambda what: what.startswith(text)


def _row(what: str, figure: str, asked: str) -> str:
    return f"| {what} | {figure} | {asked} |"


def _asked(target: str, *, good: bool) -> str:
    return f"{target}: {'met' if good else 'missed'}"


def _ratios(found: Found, what: str, shape: str, loads: Sequence[str]) -> str:
    """Pod creates with the webhook against creates without it."""
    rows = [
        row
        for load in loads
        for row in _comparisons(found, shape, state="up")
        if _load(row).startswith(load)
    ]
    return _of_ratios(f"{what}, ratio", rows)


def _states(found: Found, what: str) -> str:
    states = [_comparisons(found, "CPU pod", state=state) for state in ("up", "hung", "stopped")]
    rows = [row for each in states for row in each if _load(row).startswith("1 client")]
    return _of_ratios(f"{what}, ratio", rows)


def _of_ratios(what: str, rows: Sequence[Any]) -> str:
    shown = " / ".join(f"{row['ratio']:.2f}" for row in rows)
    target = rows[0]["plan"]["target"]
    return _row(what, shown, _asked(f"<= {target:g}", good=all(row["good"] for row in rows)))


def _comparisons(found: Found, shape: str, *, state: str) -> list[Any]:
    return [
        row
        for row in found["admission"]["comparisons"]
        if (row["plan"]["shape"], row["plan"]["state"]) == (shape, state)
        and row["plan"]["target"] is not None
    ]


def _load(row: Any) -> str:
    load = row["plan"]["load"]
    if load["per_second"] is not None:
        return f"{load['per_second']:g} per second"
    return f"{load['clients']} client{'s' if load['clients'] > 1 else ''}"


def _worst(found: Found, what: str, part: str, wanted: Callable[[str], bool]) -> str:
    """The largest of the figures that are wanted: of several interpreters, say."""
    costs = found.get(part, [])
    costs = costs["costs"] if part == "admission" else costs
    chosen = [cost for cost in costs if wanted(cost["what"])]
    if not chosen:
        return _row(what, "not measured", "")
    worst = max(chosen, key=lambda cost: float(cost["value"]))
    asked = _asked(f"<= {worst['target']:g} {worst['unit']}", good=worst["good"])
    return _row(what, f"{worst['value']:.3g} {worst['unit']}", asked)


def _tenants(found: Found) -> list[str]:
    gates, refusals = (
        "gates opened per second",
        "create where room is reserved, 1 / 8 clients, ratio",
    )
    costs = found.get("tenants")
    if costs is None:
        return [_row(gates, "not measured", ""), _row(refusals, "not measured", "")]
    rate, *others = costs
    asked = _asked(f">= {rate['target']:g}", good=rate["good"])
    ratios = [f"{cost['value']:.2f}" for cost in others if cost["unit"] == "x"]
    return [_row(gates, f"{rate['value']:.0f}", asked), _row(refusals, " / ".join(ratios), "")]


def _reports(found: Found) -> str:
    what = "reports taken in, per second and core"
    if "reports" not in found:
        return _row(what, "not measured", "")
    rate = found["reports"][0]["per_core"]
    return _row(
        what, f"{rate:.0f}", _asked(f">= {TARGET_PER_CORE:g}", good=rate >= TARGET_PER_CORE)
    )


def main() -> int:
    """Print the table; 2 where nothing was measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.readme", description=__doc__)
    parser.add_argument("--output", type=Path, default=PARTS_FOLDER, help="folder of the JSON")
    try:
        print(figures(read(parser.parse_args().output)))
    except FileNotFoundError as error:
        print(f"bench.readme: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
