"""Copies the shim into the volume that GPU containers mount.

The containers start after this is done, but a restart of the node may run it again beside running
ones: each file is replaced as a whole, and what Python looks for first comes last.
"""

from __future__ import annotations

import os

PACKAGE = os.path.dirname(os.path.abspath(__file__))
MODULES = (
    # What is imported last comes first: half a shim is as good as none.
    "frameworks/captures.py",
    "frameworks/torch.py",
    "frameworks/cupy.py",
    "frameworks/tensorflow.py",
    "frameworks/jax.py",
    "frameworks/__init__.py",
    "cards.py",
    "faults.py",
    "limits.py",
    "sharing.py",
    "state.py",
    "thread.py",
    "reclaim.py",
    "process.py",
    "servers.py",
    "listener.py",
    "missing.py",
    "chain.py",
    "__init__.py",
)
INSTALLED = (
    *((module, f"gpumem_shim/{module}") for module in MODULES),
    ("site/usercustomize.py", "usercustomize.py"),
    ("site/sitecustomize.py", "sitecustomize.py"),
)
"""Files of this package, and where each is found by Python in the target folder."""


def install(target: str) -> None:
    """Copy everything into the folder `target`, readable for every user. Raises OSError."""
    os.makedirs(target, exist_ok=True)
    for folder in ("gpumem_shim", "gpumem_shim/frameworks"):
        os.makedirs(os.path.join(target, folder), exist_ok=True)
        os.chmod(os.path.join(target, folder), 0o755)
    for source, destination in INSTALLED:
        with open(os.path.join(PACKAGE, source), "rb") as file:
            _replace(os.path.join(target, destination), file.read())


def _replace(path: str, content: bytes) -> None:
    temporary = f"{path}.new"
    with open(temporary, "wb") as file:
        file.write(content)
        os.fchmod(file.fileno(), 0o644)
    os.replace(temporary, path)
