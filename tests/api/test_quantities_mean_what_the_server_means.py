"""Our reading of quantities against the API server's own, on the same texts.

The server evaluates the rules that every quantity of the API carries, and compares amounts with
its own parser; both on a definition that exists for this test only.
"""

import json
import re
from collections.abc import Iterator
from itertools import product
from typing import Any, Final

import pytest

from devcluster import Cluster
from gpumem_operator.api.model import LONGEST_QUANTITY
from gpumem_operator.api.quantity import QuantityError, parse_bytes
from gpumem_operator.api.quantity_rules import QUANTITY_SCHEMA
from patience import WAIT

pytestmark = pytest.mark.cluster

NUMBERS: Final = (
    "0", "1", "7", "0.5", "1.5", ".25", "1.", ".", "", "007", "+3", "-2", "-0", "4.7", "1.1",
    "123456789012", "9223372036854775807", "9223372036854775808", "1.0000000001", "1000", "999",
)  # fmt: skip
SUFFIXES: Final = (
    "", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "n", "u", "m", "K", "ki",
    "e3", "E2", "e-1", "e+1", "e0002", "e30", "e", "B", "GB", " Gi", "i", "e1.5", "_000",
)  # fmt: skip
TEXTS: Final = tuple(number + suffix for number, suffix in product(NUMBERS, SUFFIXES))
AT_ONCE: Final = 100


def definition() -> dict[str, Any]:
    text = {"type": "string", "maxLength": 64}
    same = "quantity(self.text).compareTo(quantity(self.bytes)) == 0"
    lists: dict[str, Any] = {
        "judged": {
            "type": "array",
            "maxItems": AT_ONCE,
            "items": {**QUANTITY_SCHEMA, "maxLength": LONGEST_QUANTITY},
        },
        "compared": {
            "type": "array",
            "maxItems": AT_ONCE,
            "items": {
                "type": "object",
                "required": ["text", "bytes"],
                "properties": {"text": text, "bytes": text},
                "x-kubernetes-validations": [{"rule": same, "message": "differs"}],
            },
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "quantityprobes.test.gpumemory.dev"},
        "spec": {
            "group": "test.gpumemory.dev",
            "scope": "Cluster",
            "names": {"kind": "QuantityProbe", "plural": "quantityprobes"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"spec": {"type": "object", "properties": lists}},
                        }
                    },
                }
            ],
        },
    }


@pytest.fixture(scope="module")
def probe(cluster: Cluster) -> Iterator[Cluster]:
    text = json.dumps(definition())
    cluster.kubectl("create", "-f", "-", input=text)
    cluster.kubectl("wait", "--for=condition=Established", WAIT, "-f", "-", input=text)
    yield cluster
    cluster.kubectl("delete", "-f", "-", input=text)


def refused_entries(probe: Cluster, field: str, entries: list[Any]) -> set[int]:
    """Positions of the entries that the server does not like."""
    document = {
        "apiVersion": "test.gpumemory.dev/v1",
        "kind": "QuantityProbe",
        "metadata": {"name": "probe"},
        "spec": {field: entries},
    }
    answer = probe.kubectl(
        "create", "--dry-run=server", "-f", "-", input=json.dumps(document), check=False
    )
    refused = {int(found) for found in re.findall(rf"spec\.{field}\[(\d+)\]", answer.stderr)}
    assert bool(refused) == (answer.returncode != 0), answer.stderr
    return refused


def bytes_or_none(text: str) -> int | None:
    try:
        return parse_bytes(text)
    except QuantityError:
        return None


@pytest.mark.parametrize("start", range(0, len(TEXTS), AT_ONCE))
def test_the_server_refuses_the_texts_that_we_refuse(probe: Cluster, start: int) -> None:
    texts = list(TEXTS[start : start + AT_ONCE])
    refused = refused_entries(probe, "judged", texts)
    assert [text for position, text in enumerate(texts) if position in refused] == [
        text for text in texts if bytes_or_none(text) is None
    ]


@pytest.mark.parametrize("start", range(0, len(TEXTS), AT_ONCE))
def test_the_server_reads_the_same_number_of_bytes(probe: Cluster, start: int) -> None:
    pairs = [
        {"text": text, "bytes": str(amount)}
        for text in TEXTS[start : start + AT_ONCE]
        if (amount := bytes_or_none(text)) is not None
    ]
    assert [pairs[position] for position in refused_entries(probe, "compared", pairs)] == []


def test_the_comparison_would_notice_one_byte(probe: Cluster) -> None:
    pairs = [{"text": "1Ki", "bytes": "1024"}, {"text": "1Ki", "bytes": "1025"}]
    assert refused_entries(probe, "compared", pairs) == {1}
