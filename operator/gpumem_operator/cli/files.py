"""`render` and `charge`: what would happen to the pods of files, without a cluster.

Exit codes: 0 done (warnings go to stderr), 1 a pod is refused, 2 a file can not be used or the
result not be written, and with `charge --fail-if-over` 3 where what is charged does not fit into a
tenant's quota.
"""

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
import yaml

from gpumem_operator.api.values import Values
from gpumem_operator.cli import charge as charging
from gpumem_operator.cli.coverage import gaps
from gpumem_operator.cli.documents import Documents, read_documents
from gpumem_operator.cli.offline import Admitted, admit
from gpumem_operator.cli.python_path import HINT, containers_without_the_images
from gpumem_operator.cli.remarks import Remark, lines
from gpumem_operator.cli.sources import DocumentError, read_sources
from gpumem_operator.cli.table import charge_table
from gpumem_operator.cli.terminal import remark
from gpumem_operator.settings import SettingsError, load_values

Files = Annotated[
    list[Path],
    typer.Option(
        "-f",
        "--filename",
        help="Policies, tenants, namespaces, pods and workloads: a file, a folder (its *.yaml, "
        "*.yml and *.json, not those of folders in it) or - for standard input; may be repeated.",
    ),
]
ValuesFile = Annotated[
    Path | None,
    typer.Option("--values", help="Values of the chart. Default: the chart's own defaults."),
]


class Form(StrEnum):
    """Forms in which objects are printed."""

    YAML = "yaml"
    JSON = "json"


class ChargeForm(StrEnum):
    """Forms in which charges are printed; bytes become quantities in the table."""

    JSON = "json"
    YAML = "yaml"
    TABLE = "table"


class _WithoutAliases(yaml.SafeDumper):
    """Writes what occurs twice twice: people copy from one pod and not from the one before."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


@dataclass(frozen=True)
class _Answer:
    """The pods of the files after admission."""

    documents: Documents
    values: Values
    admitted: list[Admitted]

    @property
    def accepted(self) -> list[Admitted]:
        return [one for one in self.admitted if one.verdict.refusal is None]

    @property
    def refused(self) -> bool:
        return len(self.accepted) < len(self.admitted)

    def remarks(self) -> Iterable[Remark]:
        """What is doubtful, then what is refused."""
        yield from self.documents.remarks
        yield from gaps(self.documents, self.admitted)
        for one in self.admitted:
            yield from (Remark(text, one.workload.title) for text in one.warnings)
        for one in self.admitted:
            if one.verdict.refusal is not None:
                yield Remark(one.verdict.refusal, one.workload.title, "error")

    def notes(self) -> Iterable[Remark]:
        """What is worth knowing about pods as they would be stored."""
        for one in self.accepted:
            if one.verdict.operations and containers_without_the_images(one.pod):
                yield Remark(HINT, one.workload.title, "note")


def render(
    filename: Files,
    values: ValuesFile = None,
    output: Annotated[Form, typer.Option("-o", "--output", help="Form.")] = Form.YAML,
) -> None:
    """Print each pod as it would be stored. Exit 1: a pod is refused; 2: a file can not be used."""
    answer = _answer(filename, values)
    _say([*answer.remarks(), *answer.notes()])
    pods = [one.pod for one in answer.accepted]
    if output == Form.JSON:
        typer.echo(json.dumps({"items": pods}, indent=2))
    elif pods:
        text = yaml.dump_all(pods, Dumper=_WithoutAliases, sort_keys=False)
        typer.echo(text, nl=False)
    raise typer.Exit(1 if answer.refused else 0)


def charge(
    filename: Files,
    values: ValuesFile = None,
    output: Annotated[ChargeForm, typer.Option("-o", "--output", help="Form.")] = ChargeForm.JSON,
    fail_if_over: Annotated[
        bool,
        typer.Option("--fail-if-over", help="Exit with 3 where a tenant's quota does not suffice."),
    ] = False,
) -> None:
    """Print what pods and tenants would be charged, in bytes of GPU memory. Exit 1: a pod is
    refused; 2: a file can not be used."""
    answer = _answer(filename, values)
    unknown = [
        Remark(text, one.workload.title)
        for one in answer.accepted
        if (text := charging.unknown_charge(one, answer.values)) is not None
    ]
    _say([*answer.remarks(), *unknown])
    pods = [charging.pod_row(one, answer.values) for one in answer.accepted]
    tenants = charging.tenant_rows(answer.accepted, answer.documents.tenants, answer.values)
    if output == ChargeForm.TABLE:
        typer.echo(charge_table(pods, tenants), nl=False)
    elif output == ChargeForm.YAML:
        result = {"pods": pods, "tenants": tenants}
        typer.echo(yaml.dump(result, Dumper=_WithoutAliases, sort_keys=False), nl=False)
    else:
        typer.echo(json.dumps({"pods": pods, "tenants": tenants}, indent=2))
    if answer.refused:
        raise typer.Exit(1)
    over = [row for row in tenants if not row["fits"]]
    raise typer.Exit(3 if over and fail_if_over else 0)


def _answer(files: list[Path], values: Path | None) -> _Answer:
    try:
        settings = load_values(values, whole_chart=True) if values else Values()
        # It is None where the shell has closed it.
        stdin = None if sys.stdin is None else typer.get_binary_stream("stdin")
        documents = read_documents(read_sources(files, stdin))
    except (DocumentError, SettingsError) as error:
        _fail(str(error))
    return _Answer(documents, settings, list(admit(documents, settings)))


def _fail(text: str) -> NoReturn:
    remark(f"error: {text}")
    raise typer.Exit(2)


def _say(remarks: Iterable[Remark]) -> None:
    for line in lines(remarks):
        remark(line)
