"""The CA that comes with the webhook's certificate goes into new sidecars."""

import asyncio
import base64
import json
from pathlib import Path

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
from webhook.builders import gpu_pod, policy

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


async def test_the_ca_is_known_before_the_webhook_is_ready() -> None:
    serving = ServingCertificate()
    heard: list[tuple[str, bool]] = []
    copy = SecretCopy(
        serving,
        origin="Secret a/b",
        trust=lambda pem: heard.append((pem, serving.loaded.is_set())),
    )
    files = {"tls.crt": b"x", "tls.key": b"y", "ca.crt": OURS.encode()}
    copy.put({"data": {key: base64.b64encode(value).decode() for key, value in files.items()}})
    assert heard == [(OURS, False)]


async def test_a_folder_may_have_a_ca_that_changes_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FOLDER_SECONDS", 0.01)
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).write_text("x")
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
