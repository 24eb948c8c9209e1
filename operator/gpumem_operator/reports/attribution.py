"""From pictures to pods: who holds how much of which card, or why that is not known.

    fresh agent of the pod's node  >  fresh sidecar of the pod  (in it: NVML > shim)  >  Unknown

The best source that knows everything about the pod counts, whole; a pod is never put together from
two of them. A sender speaks only for its own: an agent for pods of its node, a sidecar for its pod.
Nothing that is not known is ever taken for zero.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from gpumem_operator.reports.agent_view import AgentView
from gpumem_operator.reports.cards import Card, card_of
from gpumem_operator.reports.freshness import why_stale
from gpumem_operator.reports.measured import MeasuredPod
from gpumem_operator.reports.pictures import Amount, Picture, Sender
from gpumem_operator.reports.reasons import NO_REPORT
from gpumem_operator.reports.sidecar_view import sidecar_view
from gpumem_operator.reports.uses import UNNAMED, GpuUse, PodUse, Usage

_NEVER_NEW: Final[Mapping[str, float]] = MappingProxyType({})
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
    since: Mapping[str, float] = _NEVER_NEW,
) -> Usage:
    """What every pod holds at `now`, in the seconds by which pictures were taken in.

    `by_agent` has the uids of pods that shall be measured by the agent of their node, `since` when
    pods were first seen, by uid, in the same seconds.
    """
    asked = {pod.uid: pod for pod in pods}
    by_node: defaultdict[str, list[MeasuredPod]] = defaultdict(list)
    for pod in asked.values():
        by_node[pod.node].append(pod)
    seen: dict[str, PodUse] = {}
    cards: list[Card] = []
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
        cards += view.cards(node, uses.values())
    return Usage(
        {
            uid: _use(
                pod,
                _choose(pod, seen.get(uid), pictures, now),
                _why(pod, pictures, now, by_agent=by_agent),
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


def _choose(
    pod: MeasuredPod, agent: PodUse | None, pictures: Mapping[Sender, Picture], now: float
) -> PodUse | None:
    """What the best source says; None where nobody's picture is fresh."""
    if agent is not None and agent.total.known:
        return agent
    picture = pictures.get(Sender("Sidecar", pod.uid))
    if picture is not None and why_stale(picture, now) is None:
        sidecar = sidecar_view(pod, picture)
        if sidecar.total.known or agent is None:
            return sidecar
    return agent


def _why(
    pod: MeasuredPod,
    pictures: Mapping[Sender, Picture],
    now: float,
    *,
    by_agent: Collection[str],
) -> str:
    for sender in (Sender("Sidecar", pod.uid), Sender("NodeAgent", pod.node)):
        if sender in pictures and (stale := why_stale(pictures[sender], now)) is not None:
            return stale
    if pod.has_sidecar:
        return NO_REPORT
    return NO_AGENT_ON_NODE if pod.uid in by_agent else NOT_MEASURED


def _without_picture(pod: MeasuredPod, amount: Amount) -> PodUse:
    names = [container.name for container in pod.containers] or [UNNAMED]
    return PodUse(pod, tuple(GpuUse(name, UNNAMED, amount) for name in names), None)
