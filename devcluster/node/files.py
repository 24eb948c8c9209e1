"""The folders that a node finds at the usual places, and where they lie on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from devcluster.node.kubelet import TUNABLES


class NodeFiles:
    """Everything that a node writes, below one folder that is removed with it.

    With folders of its own mounted at /run, /var/lib and /var/log, the node keeps to the usual
    paths (the DaemonSets of this world expect its sockets there), several nodes do not meet, and no
    socket's path becomes too long.
    """

    KUBELET_CONFIGURATION = Path("/run/kubelet.json")
    _MOUNTED = (Path("/run"), Path("/var/lib"), Path("/var/log"))

    def __init__(self, root: Path) -> None:
        self.root = root

    def create(self) -> None:
        self.root.mkdir(mode=0o755)
        for target in self._MOUNTED:
            self._outside(target).mkdir(parents=True)

    def write(self, path: Path, content: str) -> None:
        """Write a file that the node is to find at `path`, before it starts."""
        outside = self._outside(path)
        outside.parent.mkdir(parents=True, exist_ok=True)
        outside.write_text(content)

    def tunable(self, name: str) -> Path:
        """What the node reads as /proc/sys/`name`."""
        return self.root / "sys" / name

    def binds(self) -> Iterator[tuple[Path, str]]:
        """(what is mounted, where) in the node."""
        for target in self._MOUNTED:
            yield self._outside(target), str(target)
        for name in TUNABLES:
            yield self.tunable(name), f"/proc/sys/{name}"

    def _outside(self, path: Path) -> Path:
        return self.root / path.relative_to("/")
