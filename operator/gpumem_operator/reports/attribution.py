"""From pictures to pods: who holds how much of which card, or why that is not known.

    fresh agent of the pod's node  >  fresh sidecar of the pod  (in it: NVML > shim)  >  Unknown

The best source that knows everything about the pod counts, whole; a pod is never put together from
two of them. A sender speaks only for its own: an agent for pods of its node, a sidecar for its pod,
once that is on a node. Nothing that is not known is ever taken for zero: neither what an agent can
not tell the owner of, where the pod's own sidecar lists its processes.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from gpumem_operator.reports.agent_view import AgentView
from gpumem_operator.reports.cards import Card, card_of
from gpumem_operator.reports.freshness import why_stale
from gpumem_operator.reports.measured import MeasuredPod
from gpumem_operator.reports.pictures import Amount, Picture, Sender
from gpumem_operator.reports.reasons import NO_REPORT, SENDERS_DISAGREE, SILENT
from gpumem_operator.reports.sidecar_view import sidecar_view
from gpumem_operator.reports.store import SILENT_AFTER_SECONDS
from gpumem_operator.reports.uses import LESS_THAN_A_CONTEXT, UNNAMED, GpuUse, PodUse, Usage

_NEVER_SEEN: Final[Mapping[str, float]] = MappingProxyType({})
NOT_MEASURED: Final = "NotMeasured"
"""The pod has no sidecar, and its node no agent."""
NO_AGENT_ON_NODE: Final = "NoAgentOnNode"
"""The pod is to be measured by the agent of its node, and none has reported."""


def attribute(
    pods: Iterable[MeasuredPod],
    pictures: Mapping[Sender, Picture],
    now: float,
    *,
    by_agent: Collection[str] = (),
    since: Mapping[str, float] = _NEVER_SEEN,
    running: Mapping[str, float] = _NEVER_SEEN,
) -> Usage:
    """What every pod holds at `now`, in the seconds by which pictures were taken in.

    `by_agent` has the uids of pods that shall be measured by the agent of their node, `since` when
    pods were first seen, and `running` when they were first seen started, by uid, in the same
    seconds.
    """
    asked = {pod.uid: pod for pod in pods}
    by_node: defaultdict[str, list[MeasuredPod]] = defaultdict(list)
    for pod in asked.values():
        by_node[pod.node].append(pod)
    seen: dict[str, PodUse] = {}
    cards: list[Card] = []
    doubted: set[str] = set()
    for (kind, node), picture in pictures.items():
        if kind != "NodeAgent":
            continue
        if (stale := why_stale(picture, now)) is not None:
            cards += (card_of(node, gpu, None, stale) for gpu in picture.gpus if not gpu.parent)
            continue
        on_node = by_node.get(node, ())
        newer = {
            pod.uid for pod in on_node if since.get(pod.uid, picture.sampled) > picture.sampled
        }
        view = AgentView(on_node, picture, newer=newer)
        uses = view.uses()
        seen |= uses
        of_node = view.cards(node, uses.values())
        cards += of_node
        if any(_is_partly_nobodys(card) for card in of_node):
            doubted.add(node)
    return Usage(
        {
            uid: _use(
                pod,
                _choose(pod, seen.get(uid), pictures, now, doubted=pod.node in doubted),
                _why(pod, pictures, now, by_agent=by_agent, running_since=running.get(uid, now)),
            )
            for uid, pod in asked.items()
        },
        tuple(sorted(cards, key=lambda card: (card.node, card.uuid))),
    )


def _use(pod: MeasuredPod, chosen: PodUse | None, why: str) -> PodUse:
    """`why`: what is told where nobody's word counts."""
    if not pod.started and (chosen is None or not _shows_anything(chosen)):
        # Kubelet says that no container has started. That is known, and needs no measurement.
        return _without_picture(pod, Amount(0))
    return chosen or _without_picture(pod, Amount(None, why))


def _shows_anything(use: PodUse) -> bool:
    """Whether a sender saw processes, which the pod's status may not tell of yet."""
    return any(row.processes or row.amount.bytes for row in use.rows)


def _is_partly_nobodys(card: Card) -> bool:
    """Whether more of it is in use than the agent can tell the owners of."""
    return card.parts is None or card.parts.unattributed >= LESS_THAN_A_CONTEXT


def _choose(
    pod: MeasuredPod,
    agent: PodUse | None,
    pictures: Mapping[Sender, Picture],
    now: float,
    *,
    doubted: bool,
) -> PodUse | None:
    """What the best source says; None where nobody's picture is fresh.

    `doubted`: the agent sees memory in use and not by whom. Then it may be the pod's, of which it
    sees nothing.
    """
    if agent is not None and agent.total.known and (_shows_anything(agent) or not doubted):
        return agent
    sidecar = _by_sidecar(pod, pictures, now)
    if sidecar is None:
        return agent
    if agent is not None and agent.total.known:
        return _disagreeing(sidecar) if _lists_memory(sidecar) else agent
    return sidecar if sidecar.total.known or agent is None else agent


def _by_sidecar(pod: MeasuredPod, pictures: Mapping[Sender, Picture], now: float) -> PodUse | None:
    """What a sidecar of ours says; a pod without one may send whatever it likes."""
    picture = pictures.get(Sender("Sidecar", pod.uid))
    if picture is None or not pod.may_report or why_stale(picture, now) is not None:
        return None
    return sidecar_view(pod, picture)


def _lists_memory(use: PodUse) -> bool:
    """Whether NVML lists a process for the sidecar that holds something."""
    return any(
        process.amount.floor and not process.shim for row in use.rows for process in row.processes
    )


def _disagreeing(sidecar: PodUse) -> PodUse:
    rows = (replace(row, amount=row.amount.partly(SENDERS_DISAGREE)) for row in sidecar.rows)
    return replace(sidecar, rows=tuple(rows))


def _why(
    pod: MeasuredPod,
    pictures: Mapping[Sender, Picture],
    now: float,
    *,
    by_agent: Collection[str],
    running_since: float,
) -> str:
    """`running_since`: when the pod was first seen started; `now` where it was not."""
    for sender in (Sender("Sidecar", pod.uid), Sender("NodeAgent", pod.node)):
        if sender in pictures and (stale := why_stale(pictures[sender], now)) is not None:
            return stale
    if pod.has_sidecar:
        # A new leader does not know since when it is silent; after so long it does not matter.
        return SILENT if now - running_since > SILENT_AFTER_SECONDS else NO_REPORT
    return NO_AGENT_ON_NODE if pod.uid in by_agent else NOT_MEASURED


def _without_picture(pod: MeasuredPod, amount: Amount) -> PodUse:
    names = [container.name for container in pod.containers] or [UNNAMED]
    return PodUse(pod, tuple(GpuUse(name, UNNAMED, amount) for name in names), None)
