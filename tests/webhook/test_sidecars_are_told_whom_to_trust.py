"""The CA that comes with the webhook's certificate goes into new sidecars."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from gpumem_operator import names
from gpumem_operator.api.records import Surroundings, namespace_record, policy_record
from gpumem_operator.api.values import Values
from gpumem_operator.kube.connection import Connection
from gpumem_operator.kube.rest import Api
from gpumem_operator.webhook import certificate as module
from gpumem_operator.webhook.certificate import SecretCopy, ServingCertificate, follow_folder
from gpumem_operator.webhook.exchange import Exchange
from gpumem_operator.webhook.reviewer import Reviewer
from webhook.builders import gpu_pod, key_pair, policy

URL = "https://reports.example/v1/reports"
OURS = "ours"
GIVEN = "-----BEGIN CERTIFICATE-----given-----END CERTIFICATE-----"
BOTH = "ours and the next"


class Policies:
    """One policy in every namespace."""

    async def of(self, namespace: str) -> Surroundings:
        space = namespace_record({"metadata": {"name": namespace}})
        return Surroundings(space, (policy_record(policy(namespace=namespace)),), ())


def reviewer(**report: str) -> Reviewer:
    api = Api(Connection(server="https://127.0.0.1:1"))
    return Reviewer(Policies(), api, Values.model_validate({"report": report}))


async def told(by: Reviewer) -> str | None:
    """What the sidecar of a new pod is told to trust."""
    verdict = await by.pod(Exchange("1", "team-a", "CREATE", "", gpu_pod(), {}))
    text = json.dumps([dict(one) for one in verdict.operations])
    assert names.SIDECAR_CONTAINER in text
    found = [one for one in (OURS, GIVEN) if f'"{names.REPORT_CA_ENV}", "value": "{one}"' in text]
    assert len(found) <= 1
    return found[0] if found else None


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        pytest.param({"url": URL}, OURS, id="the one beside the certificate"),
        pytest.param({"url": URL, "ca": GIVEN}, GIVEN, id="the one in the values goes before it"),
        pytest.param({}, None, id="none where nothing is sent"),
    ],
)
async def test_a_new_sidecar_is_told_a_ca(report: dict[str, str], expected: str | None) -> None:
    judge = reviewer(**report)
    judge.trust(OURS)
    assert await told(judge) == expected


async def test_the_latest_ca_counts() -> None:
    judge = reviewer(url=URL)
    judge.trust("before")
    judge.trust(OURS)
    assert await told(judge) == OURS


def as_secret(certificate: bytes, key: bytes, ca: str) -> dict[str, Any]:
    files = {"tls.crt": certificate, "tls.key": key, "ca.crt": ca.encode()}
    return {"data": {name: base64.b64encode(value).decode() for name, value in files.items()}}


async def test_with_the_certificate_comes_its_ca_and_not_that_of_a_broken_one() -> None:
    serving = ServingCertificate()
    heard: list[str] = []
    copy = SecretCopy(serving, origin="Secret a/b", trust=heard.append)
    certificate, key, _ = key_pair()
    copy.put(as_secret(certificate, key, OURS))
    assert (heard, serving.loaded.is_set()) == ([OURS], True)
    copy.put(as_secret(certificate, b"broken", "of what is not served"))
    assert heard == [OURS]
    copy.put(as_secret(certificate, key, BOTH))
    assert heard == [OURS, BOTH]


async def test_a_folder_may_have_a_ca_that_changes_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FOLDER_SECONDS", 0.01)
    certificate, key, _ = key_pair()
    (tmp_path / "tls.crt").write_bytes(certificate)
    (tmp_path / "tls.key").write_bytes(key)
    (tmp_path / "ca.crt").write_text(OURS)
    heard: asyncio.Queue[str] = asyncio.Queue()
    following = follow_folder(ServingCertificate(), tmp_path, trust=heard.put_nowait)
    task = asyncio.create_task(following)
    async with asyncio.timeout(10):
        assert await heard.get() == OURS
        (tmp_path / "ca.crt").write_text(BOTH)
        assert await heard.get() == BOTH, "one more is trusted, and the certificate stays"
        (tmp_path / "ca.crt").unlink()
        assert await heard.get() == "", "who is trusted no longer is not told any more"
    task.cancel()
