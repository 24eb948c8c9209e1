"""Which devices the kubelet gave to which container, from its pod-resources socket.

The kubelet names a pod by namespace and name and tells no UID. Since 1.34 it lists active pods
alone (gate KubeletPodResourcesListUseActivePods), so a device that an ended pod had is not there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import NamedTuple

from gpumem_sidecar.assignments import Device, Given
from gpumem_sidecar.wire import submessages, text

METHOD = "/v1.PodResourcesLister/List"
CALL_SECONDS = 2.0
"""The kubelet answers in milliseconds; one that hangs must not hold up what NVML says."""
SHORTEST_PAUSE_SECONDS = 1.0
"""Between two questions: the kubelet limits the rate of all who ask together."""


class Answer(NamedTuple):
    """What was given, or why that is not known."""

    given: tuple[Given, ...] = ()
    failure: str | None = None


def read(message: bytes) -> tuple[Given, ...]:
    """From a ListPodResourcesResponse. Raises ValueError where it is none."""
    return tuple(
        Given(text(pod, 2), text(pod, 1), text(container, 1), _devices(container))
        for pod in submessages(message, 1)
        for container in submessages(pod, 3)
    )


def _devices(container: bytes) -> tuple[Device, ...]:
    by_plugins = [
        Device(text(devices, 1), identifier.decode())
        for devices in submessages(container, 2)
        for identifier in submessages(devices, 2)
    ]
    by_claims = [
        Device(text(device, 2), text(device, 4))
        for claim in submessages(container, 5)
        for device in submessages(claim, 4)
    ]
    return (*by_plugins, *by_claims)


class PodResources:
    """Asks the kubelet, not more often than it likes. Not for several threads at once."""

    def __init__(self, path: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._asked = float("-inf")
        self._answer = Answer()

    def ask(self) -> Answer:
        """The latest answer, at most a moment old. What was given once and can not be asked about
        now is not given any more: pods come and go."""
        if self._clock() - self._asked >= SHORTEST_PAUSE_SECONDS:
            self._asked = self._clock()
            self._answer = _ask(self._path)
        return self._answer


def _ask(path: str) -> Answer:
    if not os.path.exists(path):
        return Answer(failure=f"{path}: No such file or directory")
    # Only where it is needed: HTTP/2 takes 3 MiB.
    from gpumem_sidecar.grpc_call import CallFailed, call

    try:
        return Answer(read(call(path, METHOD, CALL_SECONDS)))
    except CallFailed as error:
        return Answer(failure=str(error))
    except ValueError as error:
        return Answer(failure=f"the answer can not be read: {error}")
