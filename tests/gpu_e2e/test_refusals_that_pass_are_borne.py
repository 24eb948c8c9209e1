"""While nobody answers a scenario waits; what is refused for good ends it at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from devcluster.failure import ClusterError
from gpu_e2e import refusals
from gpu_e2e.refusals import NotSeenError, answered, passes, settled, until
from gpumem_operator.kube.errors import ApiError, Unreached

NO_ENDPOINTS = ApiError("GET /usage", "503 no endpoints available", 503)


def refusing(error: Exception, times: int, answer: str) -> Callable[[], str]:
    """Who refuses so many times, and then answers."""
    count = itertools.count()

    def ask() -> str:
        if next(count) < times:
            raise error
        return answer

    return ask


@pytest.mark.parametrize(
    "error",
    [
        NO_ENDPOINTS,
        Unreached("GET /usage", "connection refused"),
        ApiError("GET /usage", "429 later", 429),
        ClusterError("Internal error occurred: failed calling webhook: i/o timeout"),
        ClusterError("Error from server (ServiceUnavailable): apiserver not ready"),
    ],
)
def test_what_a_clients_next_attempt_may_get_is_asked_for_again(error: Exception) -> None:
    assert answered(refusing(error, 2, "found")) == "found"


@pytest.mark.parametrize(
    "error",
    [
        ApiError("GET /pods", "403 may not", 403),
        ClusterError('admission webhook "pods" denied the request: 9Gi are more than max 8Gi'),
        ClusterError("Error from server (NotFound): pods are not there"),
    ],
)
def test_what_is_refused_for_good_is_told_at_once(error: Exception) -> None:
    assert not passes(error)
    with pytest.raises(type(error)):
        answered(refusing(error, 1, "found"))


def test_a_refusal_is_told_when_it_does_not_pass() -> None:
    with pytest.raises(ApiError, match="no endpoints"):
        answered(refusing(NO_ENDPOINTS, 1000, "never"), seconds=0)


def test_time_without_an_answer_does_not_count_against_what_is_waited_for() -> None:
    """The patience is over when the first answer comes, and that one is not as wanted yet."""
    answers = iter([NO_ENDPOINTS, NO_ENDPOINTS, "", "found"])

    def look() -> str:
        if isinstance(found := next(answers), Exception):
            raise found
        return str(found)

    assert until(look, "it", seconds=refusals.PAUSE_SECONDS) == "found"


def test_what_never_is_as_wanted_is_shown_as_it_is() -> None:
    assert settled(lambda: "other", lambda seen: seen == "wanted", seconds=0) == "other"
    with pytest.raises(NotSeenError, match="it: not within 0 s"):
        until(lambda: None, "it", seconds=0)
