"""What `kubectl gpumem why -o json` prints: one document, of the form that `top` has."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpumem_operator.cli.declared_limits import as_believed, limits_of
from gpumem_operator.cli.event_lines import time_of
from gpumem_operator.cli.explain import Known, explain_pod, steps_for
from gpumem_operator.cli.stored_pods import stored_pod
from gpumem_operator.reports.reasons import NO_REPORT

Row = Mapping[str, Any]


def pod_document(
    pod: Row, known: Known, *, about_nodes: Sequence[str], unasked: str = ""
) -> dict[str, Any]:
    """A pod's row as `top` has it, and what `why` knows beside it.

    `unasked` is why the leader was not asked, where it was not.
    """
    return {
        **(known.usage or stored_pod(pod, unknown=unasked or NO_REPORT)),
        "phase": (pod.get("status") or {}).get("phase"),
        "others": list(known.others),
        "limits": limits_of(as_believed(pod), known.values),
        "events": event_rows(known.events),
        "nextSteps": steps_for(pod, known),
        "lines": explain_pod(pod, known, about_nodes=about_nodes),
    }


def policy_document(policy: Row, lines: Sequence[str]) -> dict[str, Any]:
    """A policy's row as `top` has it, with the rest of its status."""
    status = policy.get("status") or {}
    return {
        "namespace": policy["metadata"]["namespace"],
        "name": policy["metadata"]["name"],
        "memory": status.get("memory") or {},
        "pods": status.get("pods"),
        "enforcers": status.get("enforcers"),
        "recentActions": status.get("recentActions") or [],
        "conditions": status.get("conditions") or [],
        "lines": list(lines),
    }


def event_rows(events: Sequence[Row]) -> list[dict[str, Any]]:
    """Reason and message of each, and when it was last seen."""
    return [
        {"time": time_of(event) or None, **{key: event.get(key) for key in ("reason", "message")}}
        for event in events
    ]
