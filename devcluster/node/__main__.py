"""`python -m devcluster.node`: prepare what a node and its tests need, or say why there is none.

Building takes minutes the first time. Done before the tests, it shows its progress and counts
against no test's time.
"""

from __future__ import annotations

import sys

from devcluster.binaries import find_node_binaries
from devcluster.failure import ClusterError
from devcluster.node.images import product_archives, why_no_images
from devcluster.node.requirements import why_not
from devcluster.progress import say


def main() -> int:
    if (reason := why_not() or why_no_images()) is not None:
        say(f"tests on a real node are skipped: {reason}")
        return 0
    try:
        find_node_binaries()
        product_archives()
    except ClusterError as error:
        print(f"devcluster: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
