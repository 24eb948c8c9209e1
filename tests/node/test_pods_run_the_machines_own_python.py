"""Workloads of `make gpu-e2e`: programs of this machine in an image that has nothing."""

from __future__ import annotations

import json
import sys

import pytest

from devcluster.node import Node
from gpu_e2e.workload import of_this_machine
from patience import WAIT

pytestmark = pytest.mark.cluster

PROGRAM = """
import ctypes, json, sqlite3, ssl, sys, yaml
open("/tmp/written", "w").close()
print(json.dumps({"prefix": sys.prefix, "libc": ctypes.CDLL("libc.so.6").abs(-7)}))
"""


def test_with_its_packages_and_with_the_systems_libraries(node: Node) -> None:
    raw = of_this_machine(sys.executable).pod("own-python", PROGRAM, {})
    node.cluster.kubectl("create", "-f", "-", input=json.dumps(raw))
    wait = ["wait", "pod/own-python", "--for=jsonpath={.status.phase}=Succeeded", WAIT]
    done = node.cluster.kubectl(*wait, check=False)

    said = node.cluster.kubectl("logs", "own-python", check=False).stdout
    assert done.returncode == 0, said + node.cluster.kubectl("describe", "pod", "own-python").stdout
    assert json.loads(said) == {"prefix": sys.prefix, "libc": 7}
