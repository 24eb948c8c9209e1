"""Every link from one page of the repository to another finds the file, and the heading in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!\w+:)([^)\s]*)\)")


def headings(page: Path) -> set[str]:
    """As Git hosts make anchors of them: small letters, no punctuation, dashes for blanks."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    lines = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_finds_its_page_and_heading(page: Path) -> None:
    for link in LINK.findall(page.read_text()):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link}: there is no {target.name}"
        if anchor:
            assert anchor in headings(target), f"{link}: {target.name} has no such heading"


def test_links_are_seen() -> None:
    assert sum(len(LINK.findall(page.read_text())) for page in PAGES) > 50
    assert "ways-round-it" in headings(ROOT / "docs" / "frameworks.md")
