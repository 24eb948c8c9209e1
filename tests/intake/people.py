"""People at their command lines, each with what a role gives them and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from devcluster.installation import Installation
from devcluster.roleprocess import SOURCES
from patience import PATIENCE_SECONDS

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
        self._bind("clusterrolebinding", self.name, "--clusterrole=view")
        return self._who_may("list", "pods", "-A")

    def views(self, namespace: str) -> Person:
        """ClusterRole view, in one namespace."""
        self._bind("rolebinding", f"{self.name}-view", "--clusterrole=view", "-n", namespace)
        return self._who_may("list", "pods", "-n", namespace)

    def reads(self) -> Person:
        """The chart's Role of those who may ask the leader."""
        where = ("-n", self._operator.namespace)
        role = f"--role={self._operator.release}-reader"
        self._bind("rolebinding", f"{self.name}-reader", role, *where)
        account = f"serviceaccounts/{self._operator.release}-reader"
        return self._who_may("create", account, "--subresource=token", *where)

    def asks(self, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        return gpumem(self.kubeconfig, *arguments, status=status)

    def leave(self) -> None:
        for kind, name, _, *where in self._bound:
            self._kubectl("delete", kind, name, *where)
        self._kubectl("delete", "serviceaccount", self.name, "-n", HOME)

    def _who_may(self, *what: str) -> Person:
        """Wait for what a binding gives: the API server's authorizer follows it by a watch."""
        impersonated = f"--as=system:serviceaccount:{HOME}:{self.name}"
        deadline = time.monotonic() + PATIENCE_SECONDS
        question = ("auth", "can-i", *what, impersonated)
        while self._operator.cluster.kubectl(*question, check=False).returncode != 0:
            assert time.monotonic() < deadline, f"{what} was not allowed"
        return self

    def _bind(self, kind: str, name: str, role: str, *where: str) -> None:
        subject = f"--serviceaccount={HOME}:{self.name}"
        self._kubectl("create", kind, name, role, subject, *where)
        self._bound.append((kind, name, role, *where))

    def _kubectl(self, *arguments: str) -> str:
        return self._operator.cluster.kubectl(*arguments).stdout.strip()
