"""Whom the sender trusts: PEM in the settings, or a file that may have another CA tomorrow."""

from __future__ import annotations

from pathlib import Path

import pytest

from devcluster.pki import Authority
from gpumem_sidecar.trust import Trust


def authority() -> str:
    return Authority().pair.certificate.decode()


def trusted(trust: Trust) -> list[bytes]:
    """Certificates (DER) of the next connection."""
    return trust.context().get_ca_certs(binary_form=True)


def test_another_ca_in_the_file_counts_from_the_next_connection_on(tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    file.write_text(authority())
    trust = Trust(file=str(file))
    first = trusted(trust)
    assert trust.context() is trust.context(), "the same file is not read into a new context"

    file.write_text(authority())

    assert len(trusted(trust)) == 1
    assert trusted(trust) != first


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="missing"),
        pytest.param("", id="empty: not a reason to trust all the world"),
        pytest.param("no PEM", id="no PEM"),
    ],
)
def test_a_file_that_can_not_be_used_may_be_good_later(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "ca.crt"
    if content is not None:
        file.write_text(content)
    trust = Trust(file=str(file))

    with pytest.raises(OSError, match=r"ca\.crt"):
        trust.context()

    file.write_text(authority())
    assert len(trusted(trust)) == 1


def test_pem_in_the_settings_comes_before_a_file() -> None:
    assert len(trusted(Trust(authority(), "/nowhere"))) == 1
