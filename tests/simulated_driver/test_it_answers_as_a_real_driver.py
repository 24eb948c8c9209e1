"""The same questions to the simulation and, once, to an H200 with driver 580.159.04.

To ask a real one again: `python questions.py python real_hold.py` as root, in this folder.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from devcluster.simulated_driver import build, environment
from simulated_driver.node import HERE, Node, needs_namespaces


@needs_namespaces
def test_codes_texts_lists_and_namespaces_are_as_recorded(node: Node) -> None:
    holder = [str(build().program), "--gpu", "0", "--mib", "64"]
    done = subprocess.run(
        [sys.executable, str(HERE / "questions.py"), *holder],
        env=environment(node.folder),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    recorded = json.loads(Path(HERE / "answers_of_a_real_driver.json").read_text())
    assert json.loads(done.stdout) == recorded
