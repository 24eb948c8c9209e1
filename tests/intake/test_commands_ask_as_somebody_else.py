"""Impersonation: nobody is shown more than the user as whom a command shall ask may see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpumem_operator.cli.cluster import Access, NoCluster, impersonation
from intake.people import HOME, Person, gpumem
from intake.senders import Cast
from report_builders import GIB, process, raw_report

GROUPS = ("team-a", "gpu-readers")


def admins(cast: Cast, folder: Path, **impersonated: object) -> Path:
    """The administrator's kubeconfig whose user asks as somebody else."""
    config = yaml.safe_load(cast.cluster.kubeconfig.read_text())
    for user in config["users"]:
        user["user"] |= impersonated
    path = folder / "as-somebody"
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.fixture
def train(cast: Cast) -> Cast:
    uid = cast.pod("train")
    assert cast.send(cast.token("train"), raw_report(process(GIB, pod=uid))).status == 200
    return cast


@pytest.mark.cluster
def test_the_user_of_the_kubeconfig_is_honoured(
    train: Cast, person: Callable[[], Person], tmp_path: Path
) -> None:
    member = person().views(train.namespace)
    account = f"system:serviceaccount:{HOME}:{member.name}"
    config = admins(train, tmp_path, **{"as": account})
    shown = gpumem(config, "top", "-n", train.namespace)
    assert "unknown: NotPermitted" in shown.stdout
    assert account in shown.stderr
    told = gpumem(config, "why", "pod/train", "-n", train.namespace, "-o", "json").stdout
    assert '"unknown": "NotPermitted"' in told
    assert f'"{account}"' in gpumem(config, "top", "-A", status=2).stderr
    assert f'"{account}"' in gpumem(config, "tenants", status=2).stderr


@pytest.mark.cluster
def test_an_option_stands_before_the_kubeconfig(
    train: Cast, person: Callable[[], Person], tmp_path: Path
) -> None:
    reader = person().views_everything().reads()
    account = f"system:serviceaccount:{HOME}:{reader.name}"
    config = admins(train, tmp_path, **{"as": "nobody"})
    assert '"nobody"' in gpumem(config, "top", "-A", status=2).stderr
    assert "train" in gpumem(config, "top", "-A", "--as", account).stdout


@pytest.mark.cluster
def test_every_group_is_asked_as(train: Cast, tmp_path: Path) -> None:
    """Only the last of the groups has the right."""
    role = f"{train.operator.release}-reader"
    where = ("-n", train.operator.namespace)
    bind = ("rolebinding", train.namespace, f"--role={role}", f"--group={GROUPS[-1]}", *where)
    train.cluster.kubectl("create", *bind)
    try:
        options = ("--as", "bob", "--as-group", GROUPS[0], "--as-group", GROUPS[1])
        shown = gpumem(train.cluster.kubeconfig, "top", "-n", train.namespace, *options)
        assert shown.stderr == ""
        assert "1Gi" in shown.stdout
        config = admins(train, tmp_path, **{"as": "bob", "as-groups": list(GROUPS)})
        assert gpumem(config, "top", "-n", train.namespace).stdout == shown.stdout
        gpumem(train.cluster.kubeconfig, "top", "--as", "bob", "--as-group", GROUPS[0], status=2)
    finally:
        train.cluster.kubectl("delete", "rolebinding", train.namespace, *where)


def test_uid_and_extras_go_along() -> None:
    user: dict[str, Any] = {
        "as": "bob",
        "as-uid": "7",
        "as-user-extra": {"example.com/scope": ["a", "b"]},
    }
    assert list(impersonation(user, Access())) == [
        ("Impersonate-User", "bob"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Extra-example.com%2Fscope", "a"),
        ("Impersonate-Extra-example.com%2Fscope", "b"),
    ]


@pytest.mark.parametrize(
    ("user", "access"),
    [({"as-groups": ["a"]}, Access()), ({}, Access(groups=("a",))), ({"as-uid": "7"}, Access())],
    ids=["groups of the kubeconfig", "groups of the options", "a uid"],
)
def test_groups_of_nobody_are_refused(user: dict[str, Any], access: Access) -> None:
    with pytest.raises(NoCluster, match="--as USER"):
        list(impersonation(user, access))


def test_a_login_program_that_gives_nothing_is_named(tmp_path: Path) -> None:
    """Without this the server would be asked as nobody, and answer that nobody may not ask."""
    answer = '{"apiVersion": "client.authentication.k8s.io/v1", "status": {}}'
    program = tmp_path / "login"
    program.write_text(f"#!/bin/sh\necho '{answer}'\n")
    program.chmod(0o755)
    login = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(program)}
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"exec": login}}],
    }
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config))
    assert f"{program}, by which" in gpumem(path, "top", status=2).stderr
