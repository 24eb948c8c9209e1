"""`python -m bench`: the figures of admission, reports and the sidecar, measured in one run."""

import argparse
import sys
from pathlib import Path

from bench import reports, sidecar
from bench.admission import measure
from devcluster import Cluster
from devcluster.installation import Installation

FOLDER = Path(".bench")


def main() -> int:
    """Print the table; the exit status is 0 whether or not the targets are met."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few pods: does it run at all?")
    parser.add_argument("--output", type=Path, default=FOLDER, help="folder for the JSON")
    options = parser.parse_args()
    with Cluster.start() as cluster, Installation.start(cluster, roles=["webhook"]) as operator:
        report = measure(cluster, operator, quick=options.quick, say=_say)
    print(report.as_markdown())
    print(f"\n{report.write(options.output)}\n")
    print(f"{reports.run(quick=options.quick, folder=options.output)}\n")
    costs = sidecar.measure(quick=options.quick)
    print(sidecar.as_markdown(costs))
    print(f"\n{sidecar.write(costs, options.output)}")
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
