"""`python -m bench`: every part one after the other, each with a table and its JSON.

Each part also runs alone: `python -m bench.admission`, `.reports`, `.sidecar`, `.shim`, `.overuse`,
`.tenants`, `.scale`.
`python -m bench.readme` prints the rows of the README from the JSON.
"""

import argparse
import sys
from pathlib import Path

from bench import admission, overuse, reports, scale, shim, sidecar, tenants
from bench.costs import PARTS_FOLDER


def main() -> int:
    """Print the tables; the exit status is 0 whether or not the targets are met."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few pods: does it run at all?")
    parser.add_argument("--output", type=Path, default=PARTS_FOLDER, help="folder for the JSON")
    options = parser.parse_args()
    for part in (admission, reports, sidecar, shim, overuse, tenants, scale):
        print(f"{part.run(quick=options.quick, folder=options.output)}\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
