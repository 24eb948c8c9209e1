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
    with _without_system_authorities():
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
def _without_system_authorities() -> Iterator[None]:
    """Let imports find no authorities.

    aiohttp parses all of the system's when it is imported, in case that somebody asks the internet:
    2 MiB. A context that is made later, say for an API server without a CA of its own, has them.
    """
    names = ("SSL_CERT_FILE", "SSL_CERT_DIR")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, os.devnull))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
