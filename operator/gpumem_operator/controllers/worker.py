"""What all workers of the leader have in common: a failure is counted, logged and tried again."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from gpumem_operator.controllers.sealing import SealChangedError
from gpumem_operator.kube.errors import ApiError, Conflict
from gpumem_operator.kube.lease import LeadershipLost
from gpumem_operator.metrics.controller import RECONCILE_ERRORS

_LOG = logging.getLogger(__name__)


@dataclass
class Outcome:
    """How one piece of work ended; known after its block."""

    failed: bool = False
    """It has to be done again."""
    overtaken: bool = False
    """It failed only because somebody else wrote first: doing it again needs no pause."""


@contextmanager
def attempt(controller: str, what: str) -> Iterator[Outcome]:
    """Run one piece of work whose failure must not stop the others.

    Only what ends the process passes: then nothing may be tried any more.
    """
    outcome = Outcome()
    try:
        yield outcome
    except (LeadershipLost, SealChangedError):
        raise
    except Conflict as error:
        # Somebody was faster. The watch brings what they wrote, and the work is done again.
        outcome.failed = outcome.overtaken = True
        _LOG.debug("%s: %s: %s", controller, what, error)
    except ApiError as error:
        outcome.failed = True
        RECONCILE_ERRORS.labels(controller).inc()
        _LOG.warning("%s: %s: %s", controller, what, error)
    except Exception:
        outcome.failed = True
        RECONCILE_ERRORS.labels(controller).inc()
        _LOG.exception("%s: %s failed", controller, what)


def utc_now() -> datetime:
    return datetime.now(UTC)


def timestamp(moment: datetime) -> str:
    """As Kubernetes writes times: RFC 3339 in UTC, whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
