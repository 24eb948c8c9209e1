"""People at their command lines, each with what a role gives them and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from devcluster.installation import Installation
from devcluster.roleprocess import SOURCES

HOME = "default"
"""Namespace of their accounts."""


def gpumem(kubeconfig: Path, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run `kubectl gpumem`; it has to end with this status."""
    command = [sys.executable, "-c", "from gpumem_operator.cli.app import main; main()"]
    result = subprocess.run(
        [*command, *arguments, "--kubeconfig", str(kubeconfig)],
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == status, result.stdout + result.stderr
    return result


class Person:
    """An account of its own with these bindings; gone at `leave`."""

    def __init__(self, operator: Installation, name: str, folder: Path) -> None:
        self._operator = operator
        self.name = name
        self._bound: list[Sequence[str]] = []
        self._kubectl("create", "serviceaccount", name, "-n", HOME)
        token = self._kubectl("create", "token", name, "-n", HOME)
        self.kubeconfig = folder / name
        operator.cluster.kubeconfig_for_token(token, self.kubeconfig)

    def views_everything(self) -> Person:
        """ClusterRole view, in the whole cluster."""
        return self._bind("clusterrolebinding", self.name, "--clusterrole=view")

    def views(self, namespace: str) -> Person:
        """ClusterRole view, in one namespace."""
        return self._bind("rolebinding", f"{self.name}-view", "--clusterrole=view", "-n", namespace)

    def reads(self) -> Person:
        """The chart's Role of those who may ask the leader."""
        where = ("-n", self._operator.namespace)
        role = f"--role={self._operator.release}-reader"
        return self._bind("rolebinding", f"{self.name}-reader", role, *where)

    def asks(self, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        return gpumem(self.kubeconfig, *arguments, status=status)

    def leave(self) -> None:
        for kind, name, _, *where in self._bound:
            self._kubectl("delete", kind, name, *where)
        self._kubectl("delete", "serviceaccount", self.name, "-n", HOME)

    def _bind(self, kind: str, name: str, role: str, *where: str) -> Person:
        subject = f"--serviceaccount={HOME}:{self.name}"
        self._kubectl("create", kind, name, role, subject, *where)
        self._bound.append((kind, name, role, *where))
        return self

    def _kubectl(self, *arguments: str) -> str:
        return self._operator.cluster.kubectl(*arguments).stdout.strip()
