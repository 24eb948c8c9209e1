"""Numbers of the endpoint for reports."""

from typing import Final

from prometheus_client import Counter

ANSWERS: Final = Counter(
    "gpumem_intake_answers_total",
    "Answers of the endpoint for reports, by HTTP status; 200 is a report that was taken in.",
    ["status"],
)
