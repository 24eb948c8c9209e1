"""What tests do with a cluster in which the webhook is registered."""

import json
import re
import urllib.request
from typing import Any

from devcluster import Cluster
from devcluster.installation import Installation
from gpumem_operator import names


def default_account(cluster: Cluster, namespace: str) -> bool:
    found = cluster.kubectl("get", "serviceaccount", "default", "-n", namespace, check=False)
    return found.returncode == 0


def apply(cluster: Cluster, raw: dict[str, Any]) -> None:
    cluster.kubectl("apply", "-f", "-", input=json.dumps(as_authored(raw)))


def as_authored(raw: dict[str, Any]) -> dict[str, Any]:
    """The object without what the server chooses."""
    keys = ("name", "namespace", "labels")
    return raw | {"metadata": {k: v for k, v in raw["metadata"].items() if k in keys}}


def create(cluster: Cluster, raw: dict[str, Any], *flags: str) -> Any:
    """The stored object, or the error text."""
    result = cluster.kubectl(
        "create", "-f", "-", "-o", "json", *flags, input=json.dumps(raw), check=False
    )
    return json.loads(result.stdout) if result.returncode == 0 else result.stderr


def env_of(pod: Any) -> dict[str, str | None]:
    assert not isinstance(pod, str), pod
    [main] = [c for c in pod["spec"]["containers"] if c["name"] == "main"]
    return {entry["name"]: entry.get("value") for entry in main.get("env", [])}


def is_handled(pod: Any) -> bool:
    return names.LIMIT_SOURCE_ENV in env_of(pod)


def reviews(webhook: Installation) -> float:
    """Answers that the webhook gave so far."""
    with urllib.request.urlopen(webhook.health_urls("webhook")[0] + "/metrics") as answer:
        text = answer.read().decode()
    found = re.findall(r"^gpumem_admission_reviews_total\{.*\} (\S+)$", text, re.MULTILINE)
    return sum(map(float, found))


def complaints(webhook: Installation) -> list[str]:
    """Lines of the webhook's log that tell of rights that it lacks, or of mistakes."""
    bad = re.compile(r"(?<!,)\b403\b|forbidden|traceback", re.IGNORECASE)
    return [line for line in webhook.webhook_log.read_text().splitlines() if bad.search(line)]
