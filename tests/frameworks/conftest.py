"""Containers with a real release of a framework. FRAMEWORKS=all: every pinned one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from frameworks.installed import Installed
from frameworks.releases import NotInstalledError, Release, releases

WHICH = os.environ.get("FRAMEWORKS", "newest")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name in {one.name for one in releases("all")}:
        if name in metafunc.fixturenames:
            rows = [one for one in releases(WHICH) if one.name == name]
            metafunc.parametrize(name, rows, ids=lambda row: row.version, indirect=True)


def _folder(release: Release) -> Path:
    try:
        return release.installed()
    except NotInstalledError as reason:
        pytest.skip(str(reason))


def _installed(tmp_path: Path, release: Release, *, cards: int = 0) -> Installed:
    _folder(release)
    return Installed(tmp_path, release, cards=cards)


@pytest.fixture
def torch(tmp_path: Path, request: pytest.FixtureRequest) -> Installed:
    return _installed(tmp_path, request.param)


@pytest.fixture
def cupy(tmp_path: Path, request: pytest.FixtureRequest) -> Installed:
    return _installed(tmp_path, request.param)


@pytest.fixture
def tensorflow(tmp_path: Path, request: pytest.FixtureRequest) -> Installed:
    return _installed(tmp_path, request.param, cards=2)


@pytest.fixture
def vllm(tmp_path: Path, request: pytest.FixtureRequest) -> Installed:
    made = _installed(tmp_path, request.param, cards=1)
    [torch] = [one for one in releases("newest") if one.name == "torch"]
    made.beside = (_folder(torch),)
    return made


@pytest.fixture
def ipykernel(tmp_path: Path, request: pytest.FixtureRequest) -> Installed:
    return _installed(tmp_path, request.param, cards=1)


@pytest.fixture
def jax(tmp_path: Path, request: pytest.FixtureRequest) -> Installed:
    return _installed(tmp_path, request.param, cards=2)
