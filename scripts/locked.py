"""Prints the part of requirements.lock that one image needs, with its hashes.

    python scripts/locked.py operator | sidecar

The lock says behind each package what asked for it (`# via ...`): followed from the direct
dependencies, that gives exactly what the image needs, and nothing of the tests' tools.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def direct_dependencies(image: str) -> set[str]:
    """Names of what pyproject.toml asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    requirements = project["dependencies"] if image == "operator" else optional[image]
    return {_normal(re.split(r"[^A-Za-z0-9._-]", text)[0]) for text in requirements}


def needed_blocks(direct: set[str], lock: str) -> str:
    """The blocks of the direct dependencies and of all that these need.

    Raises LookupError where the lock lacks one.
    """
    blocks = {
        _normal(block.partition("==")[0]): block
        for block in re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE)
        if "==" in block
    }
    if missing := direct - blocks.keys():
        raise LookupError(f"requirements.lock has no {', '.join(sorted(missing))}: make it anew")
    needed: set[str] = set()
    while more := {n for n in blocks if n in direct or needed & _askers(blocks[n])} - needed:
        needed |= more
    return "".join(blocks[name] for name in sorted(needed))


def _askers(block: str) -> set[str]:
    _, _, via = block.partition("# via")
    return {_normal(name) for name in re.findall(r"[A-Za-z0-9][A-Za-z0-9._-]*", via)}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    sys.stdout.write(
        needed_blocks(direct_dependencies(sys.argv[1]), (ROOT / "requirements.lock").read_text())
    )
