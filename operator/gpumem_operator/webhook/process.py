"""Entry of the role `webhook`."""

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from gpumem_operator.api.values import Values
from gpumem_operator.settings import Flags, SettingsError


def run(flags: Flags, values: Values) -> int:
    """Serve until SIGTERM; returns the exit status. Raises SettingsError for unusable flags."""
    if flags.cert_secret is None and flags.cert_dir is None:
        raise SettingsError("role webhook needs --cert-secret NAME or --cert-dir DIR")
    if flags.seal_secret is None:
        raise SettingsError("role webhook needs --seal-secret NAME")
    _keep_out("kubernetes")
    with _lean_imports():
        from gpumem_operator.webhook.service import serve

    asyncio.run(serve(flags, values))
    return 0


def _keep_out(package: str) -> None:
    """Make the package look as if it was not installed.

    kopf imports the Kubernetes client by itself wherever it can, for features that this process
    does not use. That costs 20 MiB of memory and most of a second at every start.
    """
    sys.modules[package] = None  # type: ignore[assignment]


@contextmanager
def _lean_imports() -> Iterator[None]:
    """Let imports find no authorities, and no compiled frozenlist.

    aiohttp parses all authorities of the system when it is imported, in case that somebody asks the
    internet: 2 MiB. A context that is made later, say for an API server without a CA of its own,
    has them. The lists of signals that frozenlist is about are touched once for each session, and
    its compiled form alone needs the library of C++: 1 MiB.
    """
    changed = {
        "SSL_CERT_FILE": os.devnull,
        "SSL_CERT_DIR": os.devnull,
        "FROZENLIST_NO_EXTENSIONS": "1",
    }
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
