"""Numbers of the role `controller`."""

from typing import Final

from prometheus_client import Counter, Gauge, Histogram

LEADER: Final = Gauge("gpumem_leader", "1 while this process leads, else 0.")
RECONCILE_SECONDS: Final = Histogram(
    "gpumem_reconcile_seconds",
    "Time from taking up changes until their result is written; its count is the number of runs.",
    ["controller"],
    buckets=(0.005, 0.02, 0.1, 0.5, 2, 10, 60),
)
RECONCILE_ERRORS: Final = Counter(
    "gpumem_reconcile_errors_total",
    "Objects whose state could not be read or written; each is tried again.",
    ["controller"],
)
SLIPPED_PODS: Final = Gauge(
    "gpumem_slipped_pods", "GPU pods that have not finished and never went through admission."
)
LEAF_EXPIRY: Final = Gauge(
    "gpumem_certificate_expiry_timestamp_seconds",
    "When the webhook's certificate expires, in seconds since 1970; 0 before it was read.",
)
