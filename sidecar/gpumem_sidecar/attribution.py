"""Whose memory it is: from a reading and what the kernel knows, to a picture. Pure.

Nothing is invented: a process that is gone takes no bytes along (they are the card's still, and
belong to nobody), and an amount that the driver hides is unknown with a reason, never 0. What its
shim claims stands beside the reason then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Literal, NamedTuple

from gpumem_sidecar.cgroups import Place, place_of
from gpumem_sidecar.driver_version import Era, era_of
from gpumem_sidecar.mps_limit import limit_on
from gpumem_sidecar.picture import Gpu, Picture, Process
from gpumem_sidecar.processes import Facts
from gpumem_sidecar.reading import Card, Listed, Reading, Reason
from gpumem_sidecar.shim_state import Key, State

Sender = Literal["Sidecar", "NodeAgent"]


class Viewpoint(NamedTuple):
    """Where the sender stands."""

    sender: Sender
    pod_uid: str | None = None
    """Of the sidecar's own pod."""
    child_namespace: bool = False
    """The sender is not in the PID namespace of the machine."""
    namespace_of_pod: bool = False
    """Its PID namespace is that of its pod: whoever is in it is of the pod."""
    alone: bool = False
    """The sender shares its PID namespace with nobody: it can see no process."""


class Surroundings(NamedTuple):
    """What was found out about the processes of a reading."""

    facts: Mapping[int, Facts]
    """By PID as listed; a process that is gone is missing, and one that can not be read."""
    states: Mapping[Key, State]
    """What shims wrote, of living processes."""
    unread: Collection[Key] = ()
    """Living processes of which nobody looked whether a shim wrote anything."""
    unreadable: Collection[int] = ()
    """PIDs of processes that are there and of which the kernel does not tell whose they are."""
    mps_limits: Mapping[int, str] = {}
    """CUDA_MPS_PINNED_DEVICE_MEM_LIMIT of clients of MPS by PID as listed, where it is known."""


def attribute(reading: Reading, viewpoint: Viewpoint, found: Surroundings) -> Picture:
    """The picture that is sent."""
    era = era_of(reading.driver_version, child_namespace=viewpoint.child_namespace)
    unknown = why_not_whole(reading, viewpoint)
    claimed = _claimed(found, unknown) if unknown is not None else ()
    listed = () if unknown is not None else _listed(reading, era, viewpoint, found)
    processes = _with_names((*listed, *claimed))
    return Picture(
        reading.driver_version,
        unknown,
        tuple(map(_gpu, reading.cards)),
        tuple(processes),
        driver_limits=reading.driver_limits,
    )


def why_not_whole(reading: Reading, viewpoint: Viewpoint) -> Reason | None:
    """Why the lists of processes tell this sender nothing; None where they do."""
    if reading.unknown is not None:
        return reading.unknown
    if viewpoint.alone:
        return "ProcessesNotShared"
    # The list has the node's PIDs, those of other tenants too: it is looked at no further.
    era = era_of(reading.driver_version, child_namespace=viewpoint.child_namespace)
    return "HostPids" if era == "HostPids" else None


def _gpu(card: Card) -> Gpu:
    return Gpu(*card[:8])


def _listed(
    reading: Reading, era: Era, viewpoint: Viewpoint, found: Surroundings
) -> Iterator[Process]:
    cards = Counter(listed.pid for card in reading.cards for listed in card.processes)
    for card in reading.cards:
        for listed in card.processes:
            if listed.pid in found.unreadable:
                yield _unreadable(card, listed, viewpoint, era)
                continue
            facts = found.facts.get(listed.pid)
            # Younger than the list: another process got the PID.
            if facts is None or facts.start_time > card.listed_ticks:
                continue
            told = place_of(facts.cgroup)
            place = _own_place(told, viewpoint)
            if place is not None:
                key = _key(place, facts)
                process = _process(
                    card, listed, facts.start_time, place, era, found.states.get(key)
                )
                text = found.mps_limits.get(listed.pid) if listed.mps else None
                yield process._replace(
                    mps_limit_bytes=limit_on(card.uuid, cards[listed.pid], text),
                    shim_left_out=key in found.unread,
                )
            elif told.pod_uid is None and viewpoint.child_namespace:
                # A node that is a container has such processes, and they may be anybody's.
                yield Process(listed.pid, card.uuid, facts.start_time, unknown="NotAttributed")


def _unreadable(card: Card, listed: Listed, viewpoint: Viewpoint, era: Era) -> Process:
    """It is there, and may be anybody's whom the sender can see."""
    if viewpoint.namespace_of_pod:
        amount, unknown = _amount(card, listed, era)
        pod_uid = viewpoint.pod_uid
        return Process(
            listed.pid, card.uuid, pod_uid=pod_uid, bytes=amount, unknown=unknown, mps=listed.mps
        )
    return Process(listed.pid, card.uuid, unknown="NotAttributed", mps=listed.mps)


def _key(place: Place, facts: Facts) -> Key:
    return Key(place.pod_uid or "", facts.inner_pid, facts.start_time)


def _own_place(place: Place, viewpoint: Viewpoint) -> Place | None:
    """Where the process counts; None where it is not the sender's to tell about."""
    if viewpoint.sender == "NodeAgent":
        return place
    if place.pod_uid is not None:
        return place if place.pod_uid == viewpoint.pod_uid else None
    if viewpoint.namespace_of_pod or place.container_id is not None:
        return place._replace(pod_uid=viewpoint.pod_uid)
    return None


def _process(
    card: Card, listed: Listed, start_time: int, place: Place, era: Era, state: State | None
) -> Process:
    amount, unknown = _amount(card, listed, era)
    claim = _claim(card, state) if unknown is not None else None
    return Process(
        pid=listed.pid,
        gpu=card.uuid,
        start_time=start_time,
        pod_uid=place.pod_uid,
        container=state.container if state else None,
        container_id=place.container_id,
        bytes=amount if claim is None else claim,
        unknown=unknown,
        source="NVML" if claim is None else "Shim",
        mps=listed.mps,
        shim=state.shim.on(card.uuid) if state else None,
        driver_limit_bytes=listed.driver_limit_bytes,
    )


def _claim(card: Card, state: State | None) -> int | None:
    """What the process says that it holds; more than the card has is no word to pass on."""
    claim = dict(state.measured).get(card.uuid) if state else None
    is_possible = claim is not None and (card.total_bytes is None or claim <= card.total_bytes)
    return claim if is_possible else None


def _amount(card: Card, listed: Listed, era: Era) -> tuple[int | None, Reason | None]:
    if era == "DriverHidesMemory":
        return None, "DriverHidesMemory"
    # A process that NVML lists holds a context at least. More than the card has is a misreading.
    if not listed.bytes or (card.total_bytes is not None and listed.bytes > card.total_bytes):
        return None, "NotAvailable"
    return listed.bytes, None


def _claimed(found: Surroundings, unknown: Reason) -> Iterator[Process]:
    """Processes that are known by their shim alone, with what it measured where it did."""
    for key, state in found.states.items():
        common = Process(
            pid=key.pid,
            gpu="",
            start_time=key.start_time,
            pod_uid=key.pod_uid or None,
            container=state.container,
            source="Shim",
            shim=state.shim,
        )
        if not state.measured:
            yield common._replace(unknown=unknown)
        for gpu, amount in state.measured:
            yield common._replace(gpu=gpu, bytes=amount, shim=state.shim.on(gpu))


def _with_names(processes: tuple[Process, ...]) -> Iterator[Process]:
    """The name that one process of a container has from its shim is that of the others too."""
    names = {
        (process.pod_uid, process.container_id): process.container
        for process in processes
        if process.container_id and process.container
    }
    for process in processes:
        if process.container is None and process.container_id:
            name = names.get((process.pod_uid, process.container_id))
            yield process._replace(container=name)
        else:
            yield process
