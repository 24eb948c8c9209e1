"""Entry of the role `webhook`."""

import asyncio
import sys

from gpumem_operator.api.values import Values
from gpumem_operator.settings import Flags, SettingsError


def run(flags: Flags, values: Values) -> int:
    """Serve until SIGTERM; returns the exit status. Raises SettingsError for unusable flags."""
    if flags.cert_secret is None and flags.cert_dir is None:
        raise SettingsError("role webhook needs --cert-secret NAME or --cert-dir DIR")
    _keep_out("kubernetes")
    from gpumem_operator.webhook.service import serve

    asyncio.run(serve(flags, values))
    return 0


def _keep_out(package: str) -> None:
    """Make the package look as if it was not installed.

    kopf imports the Kubernetes client by itself wherever it can, for features that this process
    does not use. That costs 20 MiB of memory and most of a second at every start.
    """
    sys.modules[package] = None  # type: ignore[assignment]
