"""`python -m gpu_e2e`: the product on a real node with a real GPU, as one table.

Needs root and an NVIDIA GPU; with `--simulated` the card is simulated. The exit status is 1 where
something promised was missed, and 2 where it can not run here.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path

from devcluster.progress import say
from gpu_e2e.place import Place, real_place, simulated_place
from gpu_e2e.requirements import CanNotRunError, machine
from gpu_e2e.row import as_table, closing, missed
from gpu_e2e.run import ROUNDS, chosen, run


def main() -> int:
    names = [scenario.__name__ for together in ROUNDS for scenario in together]
    parser = argparse.ArgumentParser(prog="python -m gpu_e2e", description=__doc__)
    parser.add_argument("--simulated", action="store_true", help="on a simulated card")
    parser.add_argument("--python", default=sys.executable, help="with the frameworks in it")
    parser.add_argument("--only", nargs="*", default=[], choices=names, help="some scenarios")
    parser.add_argument("--output", type=Path, help="file for the rows as JSON")
    parser.add_argument("--logs", type=Path, help="folder for the logs of all components")
    options = parser.parse_args()
    started = time.monotonic()
    try:
        where = _place(options)
    except CanNotRunError as error:
        print(f"gpu_e2e: {error}", file=sys.stderr)
        return 2
    with where as place:
        say(f"ready after {time.monotonic() - started:.0f} s")
        rows = run(place, options.only)
        # Before anything is ended: what was found shall not be lost with what does not end.
        print(as_table(rows))
        print(closing(rows.values(), time.monotonic() - started), flush=True)
        if options.output:
            raw = {name: [row.as_raw() for row in each] for name, each in rows.items()}
            options.output.write_text(json.dumps(raw, indent=1) + "\n")
        say("ending the node and the control plane")
    return 1 if missed(rows.values()) else 0


def _place(options: argparse.Namespace) -> AbstractContextManager[Place]:
    if options.simulated:
        return simulated_place(options.logs)
    rounds = [[one.__name__ for one in together] for together in chosen(options.only)]
    return real_place(machine(options.python, rounds), options.logs)


if __name__ == "__main__":
    sys.exit(main())
