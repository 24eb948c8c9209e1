"""The simulation of scaling, and the page that shows its numbers."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.rasterized import is_of
from bench.scaling_day import HEADER, QUOTA_PODS, Day, days
from bench.scaling_picture import picture

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def played() -> list[Day]:
    return days()


def test_the_policy_stays_inside_the_quota_and_does_not_go_back_and_forth(
    played: list[Day],
) -> None:
    policy, grows, both = played
    assert max(moment.replicas for moment in policy.moments) <= QUOTA_PODS
    assert policy.turns * 100 < both.turns
    assert policy.oscillations == 0
    assert both.oscillations > 1000
    assert max(moment.replicas for moment in grows.moments) > QUOTA_PODS


def test_the_page_shows_the_numbers_and_the_picture_of_this_version(played: list[Day]) -> None:
    page = (DOCS / "scaling.md").read_text()
    table = page.partition("<!-- simulation -->\n")[2].partition("<!-- end -->")[0].strip()
    assert table == "\n".join([HEADER, *(day.row for day in played)])
    drawn = picture(played, quota=QUOTA_PODS)
    assert (DOCS / "scaling-day.svg").read_text() == drawn
    ElementTree.fromstring(drawn)
    assert is_of((DOCS / "scaling-day.png").read_bytes(), drawn)
    assert not is_of((DOCS / "scaling-day.png").read_bytes(), drawn.replace("quota", "Quota"))
