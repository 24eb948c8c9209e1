"""Carries a `helm upgrade` that somebody makes by hand over to the processes on this machine.

In a cluster the chart's Deployments do that: their pods carry a hash of the settings.
"""

from __future__ import annotations

import os
import subprocess
import time
from types import TracebackType
from typing import Self

from devcluster.failure import ClusterError
from devcluster.installation import NAMESPACE, RELEASE, Installation
from devcluster.progress import say

RETRY_SECONDS = 1.0


class Upgrades:
    """Something to wait for with `select`: it is readable when there may be new settings."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._watch = self._start_watch()

    def fileno(self) -> int:
        assert self._watch.stdout is not None
        return self._watch.stdout.fileno()

    def take_over(self) -> None:
        """Give the settings to the processes; a failure is told and ends nothing."""
        if not os.read(self.fileno(), 65536):
            # The API server went away, and the watch with it.
            time.sleep(RETRY_SECONDS)
            self._end_watch()
            self._watch = self._start_watch()
            return
        try:
            self._installation.take_settings()
        except ClusterError as error:
            say(f"the settings of the last upgrade are not in use: {error}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end_watch()

    def _start_watch(self) -> subprocess.Popen[bytes]:
        """Prints a line for the settings as they are, and one for each change."""
        what = ["configmap", "-n", NAMESPACE, f"--field-selector=metadata.name={RELEASE}-settings"]
        return self._installation.cluster.watch("get", *what, "-o", "name", "--watch")

    def _end_watch(self) -> None:
        with self._watch:
            self._watch.terminate()
