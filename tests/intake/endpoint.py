"""The endpoint for reports without a cluster, and what may be sent to it."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp.test_utils import TestClient, TestServer
from hypothesis import strategies as st

from gpumem_operator.intake.exchange import Wanted
from gpumem_operator.intake.identity import Identities
from gpumem_operator.intake.senders import Accounts
from gpumem_operator.intake.server import REPORTS_PATH, Documents, Intake
from gpumem_operator.kube.api import Object
from gpumem_operator.kube.errors import ApiError
from gpumem_operator.reports.pictures import Sender
from gpumem_operator.reports.store import Store
from report_builders import Raw, gpu, process, raw_report

READER = "reader"
AGENT = "system:serviceaccount:gpumem-system:agent"
TENANT = "system:serviceaccount:team:default"


def token(pod: str, *, user: str = TENANT, node: str = "gpu-1") -> str:
    """Looks like one of ours; the reviewer of the tests reads from it what it is bound to."""
    return raw_token({"pod": pod, "user": user, "node": node})


def raw_token(claims: Raw) -> str:
    """With our audience, and whatever else it shall claim."""
    body = json.dumps({"aud": ["gpumemory.dev"], **claims}).encode()
    return f"h.{base64.urlsafe_b64encode(body).decode().rstrip('=')}.s"


def bound_token(pod: str, *, user: str = TENANT, node: str = "gpu-1", number: int = 1) -> str:
    """With the claims of one that the API server made, the next one of its sender each time."""
    bound = {"pod": {"name": "train", "uid": pod}, "node": {"name": node, "uid": "node-uid"}}
    return raw_token(
        {"pod": pod, "user": user, "node": node, "sub": user, "kubernetes.io": bound, "jti": number}
    )


class Reviewer:
    """Stands for the API server's answer about tokens."""

    def __init__(self) -> None:
        self.asked = 0
        self.fails = False

    async def create(self, path: str, body: Object, *, seconds: float = 0) -> Object:  # noqa: ARG002
        self.asked += 1
        if self.fails:
            raise ApiError("POST", "not reached")
        claims = json.loads(base64.urlsafe_b64decode(body["spec"]["token"].split(".")[1] + "=="))
        extra = {
            "authentication.kubernetes.io/pod-uid": [claims["pod"]],
            "authentication.kubernetes.io/node-name": [claims["node"]],
        }
        user = {"username": claims["user"], "extra": extra}
        audiences = ["gpumemory.dev"]
        return {"status": {"authenticated": True, "audiences": audiences, "user": user}}


class Clock:
    """Seconds that pass only when a test says so."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def serving(
    reviewer: Reviewer | None = None,
    clock: Clock | None = None,
    measured: str = "",
    *,
    lapsed: Callable[[], str | None] = lambda: None,
    expected: Callable[[Sender], bool] = lambda _: False,
    refused: Callable[[Sender], str | None] = lambda _: None,
) -> AsyncIterator[tuple[TestClient[Any, Any], Store]]:
    store, clock = Store(), clock or Clock()
    intake = Intake(
        store,
        Identities(reviewer or Reviewer(), clock),
        accounts=Accounts(agent=AGENT, reader=READER),
        limits=lambda _: [],
        exchange=lambda _, __: Wanted([], urgent=False),
        measured=lambda sender: measured in ("", sender.id),
        expected=expected,
        refused=refused,
        documents=Documents(usage=lambda _, __: {}, tenants=lambda _: {}),
        lapsed=lapsed,
        monotonic=clock,
    )
    async with TestClient(TestServer(intake.application())) as client:
        yield client, store


async def send(
    client: TestClient[Any, Any], body: bytes, pod: str = "pod-1", *, with_token: str = ""
) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {with_token or token(pod)}"}
    async with client.post(REPORTS_PATH, data=body, headers=headers) as answer:
        return answer.status, await answer.json()


json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(),
        st.text(max_size=20),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=12), inner, max_size=4)
    ),
    max_leaves=12,
)
FULL = raw_report(process(5, container_id="containerd://1"), gpus=[gpu()])


@st.composite
def spoiled(draw: st.DrawFn, whole: Raw = FULL) -> bytes:
    """A report in which one thing, anywhere, is something else."""
    report: Any = json.loads(json.dumps(whole))
    place = report
    while True:
        key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if isinstance(place[key], dict | list) and place[key] and draw(st.booleans()):
            place = place[key]
            continue
        if draw(st.booleans()):
            place[key] = draw(json_values)
        elif isinstance(place, dict):
            place[draw(st.text(max_size=12))] = place.pop(key)
        return json.dumps(report).encode()
