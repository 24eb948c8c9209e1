"""What the webhook counts."""

from typing import Final, Literal

from prometheus_client import Counter, Gauge, Histogram

Result = Literal["allowed", "mutated", "refused", "error"]

REVIEWS: Final = Counter(
    "gpumem_admission_reviews_total",
    "Answers to the API server. allowed: unchanged; mutated: with a patch; refused: by a rule;"
    " error: refused because something could not be read or done.",
    ["result"],
)
SECONDS: Final = Histogram(
    "gpumem_admission_review_seconds",
    "Time from the last byte of a request to its answer.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0),
)
UNCACHED_READS: Final = Counter(
    "gpumem_admission_uncached_reads_total",
    "Reads of a namespace, its policies and the tenants because the copies could not decide.",
)
RESERVATION_WRITES: Final = Counter(
    "gpumem_admission_reservation_writes_total",
    "Attempts to store room in a tenant for the pods that asked together. overtaken: somebody else"
    " wrote first, and it was tried again; failed: the tenant could not be read or written.",
    ["result"],
)
CERTIFICATE_EXPIRY: Final = Gauge(
    "gpumem_webhook_certificate_expiry_timestamp_seconds",
    "When the certificate that is served ends, in seconds since 1970. 0: none is loaded.",
)
CERTIFICATE_FAILURES: Final = Counter(
    "gpumem_webhook_certificate_load_failures_total",
    "Certificates that were not taken because they are broken; the one before is served on.",
)

_RESULTS: Final = {
    result: REVIEWS.labels(result) for result in ("allowed", "mutated", "refused", "error")
}


def count_review(result: Result, seconds: float) -> None:
    _RESULTS[result].inc()
    SECONDS.observe(seconds)
