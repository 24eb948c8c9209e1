"""The cards and MIG instances of a machine: whoever was there stays in the picture.

A card that NVML counts and does not tell about, and one that was seen and is gone, may hold
anything. Each is listed with a reason, because a card that is absent would be read as one that
nobody uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from gpumem_sidecar.nvml_errors import name_of, reason_of
from gpumem_sidecar.reading import Card, Reason

GAPS = ("NotFound", "InvalidArgument")
"""What NVML says of an index that no MIG instance has; NVIDIA's own go-nvlib takes both for it."""


class Measure(Protocol):
    """Asks NVML for the amounts of one card or instance; errors become reasons there."""

    def __call__(self, card: Card, handle: Any, *, with_processes: bool = True) -> Card: ...


class KnownCards:
    """Remembers for the life of the process what it has seen. Not for several threads at once."""

    def __init__(self) -> None:
        self._cards: dict[str, Card] = {}
        """By UUID, without amounts."""
        self._instances: dict[str, dict[int, Card]] = {}
        """By the UUID of their card and their index there."""

    def read(self, nvml: Any, count: int, measure: Measure) -> tuple[Card, ...]:
        """All cards by index, each before its instances. Raises nothing of NVML's."""
        here: dict[str, Any] = {}
        unread: dict[int, Reason] = {}
        for index in range(count):
            try:
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
                uuid = nvml.nvmlDeviceGetUUID(handle)
            except Exception as error:
                unread[index] = reason_of(error)
            else:
                here[uuid] = handle
                self._cards[uuid] = Card(uuid, index, self._model(nvml, handle, uuid))
        found = [self._unread(*one) for one in self._missing(here, unread)]
        for uuid, handle in here.items():
            found.append(self._with_instances(nvml, self._cards[uuid], handle, measure))
        # Where an index has changed hands, the card that is there now comes last.
        ordered = sorted(found, key=lambda cards: cards[0].number)
        return tuple(card for cards in ordered for card in cards)

    def _model(self, nvml: Any, handle: Any, uuid: str) -> str:
        try:
            return str(nvml.nvmlDeviceGetName(handle))
        except Exception:
            # A name is no reason to lose sight of a card.
            return self._cards[uuid].model if uuid in self._cards else ""

    def _missing(
        self, here: dict[str, Any], unread: dict[int, Reason]
    ) -> Iterator[tuple[Card, Reason]]:
        """Cards that were seen before and are not now, and those that nobody knows by name."""
        reasons = dict(unread)
        for uuid, card in self._cards.items():
            if uuid not in here:
                yield card, reasons.pop(card.number, "DeviceLost")
        for index, reason in reasons.items():
            yield Card(f"index-{index}", index), reason

    def _unread(self, card: Card, reason: Reason) -> list[Card]:
        instances = self._instances.get(card.uuid, {}).values()
        return [one._replace(unknown=reason) for one in (card, *instances)]

    def _with_instances(self, nvml: Any, card: Card, handle: Any, measure: Measure) -> list[Card]:
        known = self._instances.setdefault(card.uuid, {})
        try:
            most = nvml.nvmlDeviceGetMaxMigDeviceCount(handle)
        except Exception as error:
            reason = reason_of(error)
            if reason != "NotSupported" or known:
                # It may be divided: its own list, if there is one, is not the whole.
                whole = measure(card, handle, with_processes=False)
                return [whole._replace(unknown=reason), *self._unread(card, reason)[1:]]
            most = 0  # a driver or a card that knows no MIG
        if most == 0:
            known.clear()
            return [measure(card, handle)]
        # Its processes are those of its instances, and would be counted twice.
        whole = measure(card, handle, with_processes=False)
        instances = (_instance(nvml, handle, card, index, known) for index in range(most))
        return [whole, *(_measured(one, measure) for one in instances if one is not None)]


def _instance(
    nvml: Any, handle: Any, card: Card, index: int, known: dict[int, Card]
) -> tuple[Card, Any] | None:
    """The instance with its handle, or with a reason; None where no instance has the index."""
    last = known.get(index, Card(f"{card.uuid}/{index}", index, card.model, parent=card.uuid))
    try:
        instance = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
    except Exception as error:
        name = name_of(error)
        if name == "NotFound" or (name in GAPS and index not in known):
            known.pop(index, None)
            return None
        return last._replace(unknown=reason_of(error)), None
    try:
        uuid = nvml.nvmlDeviceGetUUID(instance)
    except Exception as error:
        return last._replace(unknown=reason_of(error)), None
    known[index] = Card(uuid, index, card.model, parent=card.uuid)
    return known[index], instance


def _measured(found: tuple[Card, Any], measure: Measure) -> Card:
    card, handle = found
    return card if card.unknown is not None else measure(card, handle)
