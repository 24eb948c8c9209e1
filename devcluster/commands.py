"""kubectl and helm for one cluster, whichever it is: all that is asked is a kubeconfig."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from devcluster.failure import ClusterError

COMMAND_SECONDS = 300.0


class Commands:
    """Runs both as whoever the kubeconfig names; what they keep lies in the folder `root`."""

    def __init__(self, kubeconfig: Path, *, root: Path, binaries: Mapping[str, Path]) -> None:
        self.kubeconfig = kubeconfig
        """The kubeconfig of the administrator."""
        self.root = root
        self._binaries = dict(binaries)

    def kubectl(
        self, *arguments: str | Path, input: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the administrator; with `check`, a failure raises ClusterError."""
        return self._run("kubectl", arguments, {}, input=input, check=check)

    def start_kubectl(self, *arguments: str) -> subprocess.Popen[str]:
        """Start kubectl as the administrator, with pipes for its input and its output."""
        return subprocess.Popen(
            [self._binaries["kubectl"], *arguments],
            env={**os.environ, **self._kubectl_environment()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def watch(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start kubectl as the administrator, for what it prints until it is ended."""
        return subprocess.Popen(
            [self._binaries["kubectl"], *arguments],
            env={**os.environ, **self._kubectl_environment()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def helm(
        self, *arguments: str | Path, input: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run helm as the administrator; with `check`, a failure raises ClusterError."""
        environment = {
            f"HELM_{kind}_HOME": str(self.root / "helm" / kind.lower())
            for kind in ("CACHE", "CONFIG", "DATA")
        }
        return self._run("helm", arguments, environment, input=input, check=check)

    def _run(
        self,
        program: str,
        arguments: Sequence[str | Path],
        environment: Mapping[str, str],
        *,
        input: str | None,
        check: bool,
    ) -> subprocess.CompletedProcess[str]:
        command = [self._binaries[program], *arguments]
        result = subprocess.run(
            command,
            input=input if input is not None else "",
            env={**os.environ, **self._kubectl_environment(), **environment},
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
        )
        if check and result.returncode != 0:
            shown = " ".join(map(str, arguments))
            raise ClusterError(
                f"`{program} {shown}` ended with status {result.returncode}:\n"
                f"{result.stdout}{result.stderr}".rstrip()
            )
        return result

    def _kubectl_environment(self) -> Mapping[str, str]:
        # Discovery is cached by address, which another cluster may have had an hour ago.
        return {
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.root / "kubectl-cache"),
        }
