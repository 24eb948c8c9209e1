"""Label selectors as text, the form in which a scale subresource tells whose replicas it counts.

Source of the grammar: kubernetes, k8s.io/apimachinery/pkg/labels (Parse).
"""

import re
from typing import Any, Final

from gpumem_operator.api.selector import LabelSelector

_PART: Final = re.compile(
    r"\s*(?:(?P<absent>!)\s*(?P<missing>[^\s,()=!<>]+)"
    r"|(?P<key>[^\s,()=!<>]+)\s*"
    r"(?:(?P<set>in|notin)\s*\((?P<values>[^()]*)\)|(?P<compare>==|=|!=)\s*(?P<value>[^\s,()=!<>]*))?"
    r")\s*(?:,|$)"
)
_SET: Final = {"in": "In", "notin": "NotIn"}


def parse_selector(text: str) -> LabelSelector:
    """The selector. Raises ValueError for what is none, or has comparisons of numbers."""
    expressions = []
    place = 0
    while place < len(text):
        match = _PART.match(text, place)
        if match is None:
            raise ValueError(f"{text[:200]!r} is not a label selector")
        expressions.append(_expression(match))
        place = match.end()
    return LabelSelector.model_validate({"matchExpressions": expressions})


def _expression(match: re.Match[str]) -> dict[str, Any]:
    if match["absent"]:
        return {"key": match["missing"], "operator": "DoesNotExist"}
    if match["set"]:
        values = [value.strip() for value in match["values"].split(",")]
        return {"key": match["key"], "operator": _SET[match["set"]], "values": values}
    if match["compare"]:
        operator = "NotIn" if match["compare"] == "!=" else "In"
        return {"key": match["key"], "operator": operator, "values": [match["value"]]}
    return {"key": match["key"], "operator": "Exists"}
