"""The role `controller` as a process: flags in, exit status out."""

import asyncio
import faulthandler
import gc
import logging
from typing import Final

from gpumem_operator.api.values import Values
from gpumem_operator.controllers.controller import Controller
from gpumem_operator.controllers.options import (
    CertificateOptions,
    ControllerOptions,
    ReportOptions,
)
from gpumem_operator.controllers.sealing import SealChangedError
from gpumem_operator.kube.lease import LeadershipLost
from gpumem_operator.serving.process import prepare
from gpumem_operator.settings import Flags, SettingsError

_LOG = logging.getLogger(__name__)

END_SECONDS: Final = 20.0
"""Several times what the end of all parts may take by their own timeouts, and less than the 30 s
after which a kubelet kills."""


_COLLECTED_AFTER: Final = (20_000, 10, 10)
"""Python's own numbers begin with 700 new objects. Each look at the use of ten thousand pods makes
hundreds of thousands that live until the next look, so that all that is kept was looked through for
garbage several times a minute: half of what a controller at rest took."""


def run(flags: Flags, values: Values) -> int:
    """Run until SIGTERM; returns the exit status, 1 after a lost leadership.

    A process that lost the lease starts from nothing, so that nothing it still remembers, and no
    request that it still waits for, outlives its term. Raises SettingsError for unusable flags.
    """
    options = options_of(flags, values)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    # kopf tells about every connection; what goes wrong there comes as warnings.
    logging.getLogger("kopf").setLevel(logging.WARNING)
    prepare()
    gc.set_threshold(*_COLLECTED_AFTER)
    status = 0
    try:
        asyncio.run(_run(options))
    except* (LeadershipLost, SealChangedError) as lost:
        for error in lost.exceptions:
            _LOG.error("%s: this process ends, and the next one starts from nothing", error)
        status = 1
    return status


async def _run(options: ControllerOptions) -> None:
    await Controller(options, ending=bound_the_end).run()


def bound_the_end(seconds: float = END_SECONDS) -> None:
    """From now on the process lives for so many seconds at most, whatever it still waits for.

    A replica that lost the lease and hangs at its end would neither lead nor be started again. One
    that is still there then prints where each of its threads stands, and ends with status 1.
    """
    faulthandler.dump_traceback_later(seconds, exit=True)


def options_of(flags: Flags, values: Values) -> ControllerOptions:
    """What the flags mean. Raises SettingsError where some are missing."""
    if not flags.lease:
        raise SettingsError("role controller needs --lease NAME")
    if not flags.seal_secret:
        raise SettingsError("role controller needs --seal-secret NAME")
    return ControllerOptions(
        values=values,
        namespace=flags.namespace,
        lease=flags.lease,
        seal_secret=flags.seal_secret,
        nodes_config_map=flags.nodes_config_map,
        kubeconfig=flags.kubeconfig,
        bind=flags.bind,
        health_port=flags.health_port,
        certificates=_certificates(flags),
        reports=_reports(flags),
    )


def _reports(flags: Flags) -> ReportOptions | None:
    if flags.cert_secret is None:
        return None
    return ReportOptions(
        port=flags.port,
        cert_secret=flags.cert_secret,
        agent_account=flags.agent_account,
        reader_account=flags.reader_account,
        pod=flags.pod,
    )


def _certificates(flags: Flags) -> CertificateOptions | None:
    if flags.ca_secret is None:
        return None
    if flags.cert_secret is None:
        raise SettingsError("--ca-secret needs --cert-secret NAME as well")
    return CertificateOptions(
        ca_secret=flags.ca_secret,
        cert_secret=flags.cert_secret,
        webhook_configurations=flags.webhook_configurations,
        hosts=flags.webhook_hosts,
    )
