"""This process: which frameworks it has, which GPUs they use, and what each may hold there.

A framework's adapter calls `started` when the framework is about to use a GPU for the first time;
the thread calls `refresh`. One lock covers it all: it is held while frameworks are told their caps,
and no framework calls us while it holds a lock of its own that setting a cap needs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from gpumem_shim import frameworks, state
from gpumem_shim.faults import is_theirs, kept
from gpumem_shim.limits import Limits, excess, limits_from
from gpumem_shim.sharing import User, share_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from gpumem_shim.cards import Card, Cards
    from gpumem_shim.frameworks import Adapter

NO_TOTAL = "NoTotal"
"""The card does not say how much memory it has, so there is no fraction of it to set."""


@dataclass
class Process:
    """Everything that is known in here."""

    limits: Limits
    told: state.State
    adapters: dict[str, Adapter] = field(default_factory=dict)
    using: dict[int, list[str]] = field(default_factory=dict)
    """Frameworks on each GPU, by its CUDA ordinal; who is in it has its cap, or the reason."""
    cards: Cards | None = None
    lowers_servers: bool = False
    """Whether the share of the card that inference servers take is lowered."""

    def imported(self, name: str, module: ModuleType) -> None:
        """A framework is there: arrange for its cap, and tell."""
        with state.lock(), kept:
            if self._is_arranged(name, module):
                return
            version = getattr(module, "__version__", None)
            text = None if version is None else str(version)[: state.LONGEST_VERSION]
            # What stays where it is another release than we know, or half a module.
            told = state.Framework(text, not_capped=frameworks.FAILED)
            self.told.frameworks[name] = told
            try:
                adapter = frameworks.adapter_for(name, module, self)
                if adapter is None:
                    told.not_capped = self.limits.obstacle or frameworks.NO_ADAPTER
                    return
                waiting = adapter.arrange()
                told.not_capped = self.limits.obstacle or waiting
                told.reclaim = "Supported" if adapter.can_reclaim else "Unsupported"
                adapter.arranged_in = adapter.place(module)
                self.adapters[name] = adapter
            except frameworks.NotCapped as reason:
                told.not_capped, told.reclaim = str(reason), "Unsupported"
            finally:
                state.write(self.told)

    def _is_arranged(self, name: str, module: ModuleType) -> bool:
        """Whether a module was only executed once more (importlib.reload), and our functions stand
        in a part of it that was not."""
        before = self.adapters.get(name)
        return before is not None and before.place(module) is before.arranged_in

    def started(self, name: str, ordinal: int) -> int | None:
        """A framework is about to use a GPU: its cap is set, and is the answer, in bytes.

        None where there is none; the state says why.
        """
        with state.lock():
            cap = self._started(name, ordinal)
            state.write(self.told)
            return cap

    def _started(self, name: str, ordinal: int) -> int | None:
        users = self.using.get(ordinal, [])
        users = users if name in users else [*users, name]
        card = self.card(ordinal)
        told = self.told.frameworks[name]
        told.not_capped = self.limits.obstacle or (NO_TOTAL if card is None else None)
        if card is not None and told.not_capped is None:
            outside = self.told.gpus.get(card.uuid, state.UNKNOWN).outside_bytes
            self._set_caps(ordinal, card, outside, users)
        # Not before: who finds it there goes on, and who was interrupted has to come again.
        self.using[ordinal] = users
        self.start_thread()
        return told.caps.get(card.uuid) if card else None

    def start_thread(self) -> None:
        """Where none can be had, caps are in force all the same, and the next use tries again."""
        with kept:
            from gpumem_shim import thread

            thread.start(self)

    def lowered(self, name: str, ordinal: int, fraction: float) -> None:
        """A framework that has one fraction for all GPUs took a lower one than it was given."""
        card = self.card(ordinal)
        if card is not None:
            self.told.frameworks[name].caps[card.uuid] = int(fraction * card.total_bytes)
            state.write(self.told)

    def withdrew(self, name: str) -> None:
        """A framework that was about to use GPUs could not start."""
        with state.lock():
            for users in self.using.values():
                if name in users:
                    users.remove(name)
            self.uncapped(name, frameworks.NOT_STARTED)

    def uncapped(self, name: str, reason: str) -> None:
        """The caps of a framework do not hold; `reason` is one word."""
        with state.lock():
            self.told.frameworks[name].caps = {}
            self.told.frameworks[name].not_capped = reason
            state.write(self.told)

    def start_driver(self) -> int:
        """For a framework that is about to do so itself; how many GPUs the process sees."""
        return self._all_cards().start()

    def refresh(self) -> bool:
        """Measure, put the caps where they should be, and tell what changed; whether it did."""
        with state.lock():
            before = state.significant(self.told)
            self._notice()
            for adapter in self.adapters.values():
                self.told.frameworks[adapter.name].cap_hits = adapter.cap_hits
            for ordinal in self.using:
                self._measure(ordinal)
            now = state.significant(self.told)
            # Whoever was interrupted may have left that to the next look.
            if not state.is_written(now):
                state.write(self.told)
            return now != before

    def notice(self) -> None:
        """Cap what came into use without being announced; much cheaper than `refresh`."""
        with state.lock():
            if self._notice():
                state.write(self.told)

    def _notice(self) -> bool:
        new = [
            (adapter.name, ordinal)
            for adapter in self.adapters.values()
            for ordinal in adapter.in_use()
            if adapter.name not in self.using.get(ordinal, ())
        ]
        for name, ordinal in new:
            self._started(name, ordinal)
        return bool(new)

    @property
    def watching(self) -> bool:
        """Whether a GPU may come into use that nobody announces."""
        return any(adapter.watching for adapter in self.adapters.values())

    def _measure(self, ordinal: int) -> None:
        users = [self.adapters[name] for name in self.using[ordinal]]
        card = self.card(ordinal)
        # One that is just being started would be waited for, and may wait for us.
        if card is None or self.cards is None or any(ordinal not in u.in_use() for u in users):
            return
        held = _held_by(users, ordinal)
        measured = self.cards.held_by_this_process(card)
        outside = None if measured is None or held is None else max(0, measured - held)
        if measured is not None and (outside or 0) > self.limits.reserve_bytes:
            # What was allocated between the two looks is not outside: a cap is not lowered for it.
            outside = max(0, measured - max(held or 0, _held_by(users, ordinal) or 0))
        self.told.gpus[card.uuid] = state.Held(measured, outside)
        if self.limits.obstacle is None:
            self._set_caps(ordinal, card, outside, self.using[ordinal])

    def _set_caps(self, ordinal: int, card: Card, outside: int | None, users: list[str]) -> None:
        pool = self.limits.pool_bytes or 0
        pool = min(pool - excess(outside, self.limits.reserve_bytes), card.total_bytes)
        share_out(pool, [self._user(name, ordinal, card) for name in users])

    def _user(self, name: str, ordinal: int, card: Card) -> User:
        adapter, cap = self.adapters[name], self.told.frameworks[name].caps.get(card.uuid)
        return User(
            name,
            held=lambda: held_in(adapter, ordinal) or 0,
            put=lambda cap: self._set_cap(name, ordinal, card, cap),
            cap_bytes=cap,
            is_fixed=not adapter.resizable and cap is not None,
        )

    def _set_cap(self, name: str, ordinal: int, card: Card, cap: int) -> None:
        told = self.told.frameworks[name]
        try:
            told.caps[card.uuid] = self.adapters[name].set_cap(ordinal, card.total_bytes, cap)
            if self._is_capped_everywhere(name):
                told.not_capped = None
        except frameworks.NotCapped as reason:
            told.caps.pop(card.uuid, None)
            told.not_capped = str(reason)
        except Exception as error:
            told.caps.pop(card.uuid, None)
            told.not_capped = frameworks.FAILED
            if is_theirs(error):
                raise

    def _is_capped_everywhere(self, name: str) -> bool:
        caps = self.told.frameworks[name].caps
        cards = [self.card(ordinal) for ordinal, names in self.using.items() if name in names]
        return all(card is not None and card.uuid in caps for card in cards)

    def card(self, ordinal: int) -> Card | None:
        """The GPU with this CUDA ordinal; None where its memory can not be read."""
        return self._all_cards().card(ordinal)

    def _all_cards(self) -> Cards:
        if self.cards is None:
            from gpumem_shim.cards import Cards

            self.cards = Cards()
        return self.cards

    def forked(self) -> None:
        """In a child: it has the frameworks, and neither CUDA nor anything on a GPU."""
        self.using, self.cards = {}, None
        self.told.gpus, self.told.servers, self.told.reclaimed = {}, {}, None
        for name, adapter in self.adapters.items():
            told = self.told.frameworks[name]
            if told.caps or told.not_capped == NO_TOTAL:
                told.caps, told.not_capped = {}, frameworks.NOT_STARTED
            adapter.forked()
            told.cap_hits = adapter.cap_hits
        state.write(self.told)


def held_in(adapter: Adapter, ordinal: int) -> int | None:
    """Bytes in its allocator; None where it does not tell, whatever it raises."""
    with kept:
        return adapter.held(ordinal)
    # An allocator that keeps no count, or another release than we know.
    return None


def _held_by(users: list[Adapter], ordinal: int) -> int | None:
    """In all their allocators; None where one does not tell."""
    held = [held_in(adapter, ordinal) for adapter in users]
    return None if None in held else sum(one or 0 for one in held)


def _this_process() -> Process:
    bounds = limits_from(os.environ)
    lowers = os.environ.get("GPUMEM_SERVER_ARGS") == "Enabled"
    return Process(bounds, state.State(bounds), lowers_servers=lowers)


own = _this_process()
"""Made with the first import of a framework: what the program does to the environment later does
not raise its limit."""


def _after_fork() -> None:
    try:
        state.new_lock()
        own.forked()
    except Exception:
        pass


os.register_at_fork(after_in_child=_after_fork)
