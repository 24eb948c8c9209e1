"""The command `python -m gpumem_shim install TARGET`, run by the init container."""

from __future__ import annotations

import sys

from gpumem_shim.install import install


def main(arguments: list[str]) -> int:
    if len(arguments) != 2 or arguments[0] != "install":
        print("usage: python -m gpumem_shim install TARGET", file=sys.stderr)
        return 2
    try:
        install(arguments[1])
    except OSError as error:
        print(
            f"gpumem_shim: the shim was not installed into {arguments[1]}: {error}."
            " Next step: the folder must exist or be creatable, and be writable for this user.",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
