"""Where the demo is told: commands as a person types them, with what they print."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster.failure import ClusterError

PATIENCE_SECONDS = 180.0
LONGEST_LINE = 96
_BOLD, _DIM, _PLAIN = "\033[1m", "\033[2m", "\033[0m"


@dataclass(frozen=True)
class Stage:
    """Where commands run."""

    kubeconfig: Path
    kubectl: Path
    root: Path
    no_live_use: str = ""
    """Why pods can not hold memory here; empty where they can."""
    node: str = "gpu-node"
    """The node with GPUs."""
    runs_pods: bool = False
    """Whether it is a real one."""

    def run(self, *arguments: str, show: bool = True, check: bool = True) -> str:
        """Run kubectl; the command and what it prints are shown as a person would see them."""
        return self._run("kubectl", [str(self.kubectl), *arguments], show=show, check=check)

    def gpumem(self, *arguments: str, show: bool = True, check: bool = True) -> str:
        """Run the product's own command line."""
        program = self.root / ".venv" / "bin" / "kubectl-gpumem"
        return self._run("kubectl gpumem", [str(program), *arguments], show=show, check=check)

    def get(self, *arguments: str) -> Any:
        return json.loads(self.run("get", *arguments, "-o", "json", show=False))

    def _run(self, shown: str, command: list[str], *, show: bool, check: bool) -> str:
        environment = {
            **os.environ,
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.kubeconfig.parent / "kubectl-cache"),
        }
        if show:
            print(bold(_command_line([shown, *command[1:]])))
        result = subprocess.run(
            command, env=environment, cwd=self.root, capture_output=True, text=True
        )
        if check and result.returncode != 0:
            raise ClusterError(f"`{' '.join(command)}` failed:\n{result.stdout}{result.stderr}")
        if show:
            print((result.stderr + result.stdout).rstrip() + "\n")
        return result.stdout + result.stderr

    def wait_for(self, what: str, *arguments: str, until: str) -> None:
        """Wait until what kubectl prints matches a pattern."""
        self._wait(
            what, lambda: bool(re.search(until, self.run(*arguments, show=False, check=False)))
        )

    def wait_for_gpumem(self, what: str, *arguments: str, until: str) -> None:
        """The same for the product's own command line."""
        self._wait(what, lambda: until in self.gpumem(*arguments, show=False, check=False))

    def _wait(self, what: str, happened: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            if happened():
                return
            time.sleep(0.2)
        raise ClusterError(f"{what} did not happen within {PATIENCE_SECONDS:.0f} s")


def _command_line(words: list[str]) -> str:
    """As one would type it, over several lines where it is long."""
    lines = [f"$ {words[0]}"]
    for option in re.findall(r"-\S+(?: [^-]\S*)?|\S+", shlex.join(words[1:])):
        if len(lines[-1]) + len(option) > LONGEST_LINE:
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += f" {option}"
    return "\n".join(lines)


def explain(*lines: str) -> None:
    """What the next command shows."""
    print("\n".join(_style(_DIM, line) for line in lines))


def conclude(*lines: str) -> None:
    """What the command before has shown."""
    explain(*lines)
    print()


def bold(text: str) -> str:
    return _style(_BOLD, text)


def _style(code: str, text: str) -> str:
    """Colour only for people: not in files and pipes, and not where NO_COLOR says so."""
    plain = not os.isatty(1) or "NO_COLOR" in os.environ
    return text if plain else f"{code}{text}{_PLAIN}"
