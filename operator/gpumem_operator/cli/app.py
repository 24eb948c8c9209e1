"""`kubectl gpumem`: what would happen to pods, from files and without a cluster.

Exit codes: 0 done (warnings go to stderr), 1 a pod is refused, 2 a file can not be used.
"""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer
import yaml

from gpumem_operator.api.values import Values
from gpumem_operator.cli import charge as charging
from gpumem_operator.cli.documents import DocumentError, Documents, read_documents
from gpumem_operator.cli.offline import Admitted, admit
from gpumem_operator.settings import SettingsError, load_values

app = typer.Typer(
    name="kubectl-gpumem",
    help="GPU memory of pods: what a policy does to them and what tenants are charged.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Files = Annotated[
    list[Path],
    typer.Option(
        "-f",
        "--filename",
        help="File with policies, tenants, namespaces, pods and workloads; may be repeated.",
    ),
]
ValuesFile = Annotated[
    Path | None,
    typer.Option("--values", help="Values of the chart. Default: the chart's own defaults."),
]


class Output(StrEnum):
    """Forms in which objects are printed."""

    YAML = "yaml"
    JSON = "json"


@app.command()
def render(
    filename: Files,
    values: ValuesFile = None,
    output: Annotated[Output, typer.Option("-o", "--output", help="Form.")] = Output.YAML,
) -> None:
    """Print each pod as it would be stored."""
    documents, settings = _read(filename, values)
    admitted = list(admit(documents, settings))
    accepted = _report(admitted)
    pods = [one.pod for one in accepted]
    if output == Output.JSON:
        typer.echo(json.dumps({"items": pods}, indent=2))
    elif pods:
        typer.echo(yaml.safe_dump_all(pods, sort_keys=False), nl=False)
    _exit(admitted)


@app.command()
def charge(
    filename: Files,
    values: ValuesFile = None,
    output: Annotated[Output, typer.Option("-o", "--output", help="Form.")] = Output.JSON,
) -> None:
    """Print what each pod and each tenant would be charged, in bytes of GPU memory."""
    documents, settings = _read(filename, values)
    admitted = list(admit(documents, settings))
    accepted = _report(admitted)
    for one in accepted:
        if (warning := charging.unknown_charge(one, settings)) is not None:
            _say("warning", one, warning)
    result = {
        "pods": [charging.pod_row(one, settings) for one in accepted],
        "tenants": charging.tenant_rows(accepted, documents.tenants, settings),
    }
    if output == Output.JSON:
        typer.echo(json.dumps(result, indent=2))
    else:
        typer.echo(yaml.safe_dump(result, sort_keys=False), nl=False)
    _exit(admitted)


def _read(files: list[Path], values: Path | None) -> tuple[Documents, Values]:
    try:
        settings = load_values(values, whole_chart=True) if values else Values()
        return read_documents(files), settings
    except (DocumentError, SettingsError) as error:
        _fail(str(error))


def _fail(text: str) -> NoReturn:
    typer.echo(f"error: {text}", err=True)
    raise typer.Exit(2)


def _report(admitted: list[Admitted]) -> list[Admitted]:
    """Says what is refused and what is doubtful; returns what is let through."""
    accepted = []
    for one in admitted:
        for warning in one.warnings:
            _say("warning", one, warning)
        if one.verdict.refusal is None:
            accepted.append(one)
        else:
            _say("error", one, one.verdict.refusal)
    return accepted


def _say(level: str, admitted: Admitted, text: str) -> None:
    typer.echo(f"{level}: {admitted.workload.title}: {text}", err=True)


def _exit(admitted: list[Admitted]) -> NoReturn:
    raise typer.Exit(1 if any(one.verdict.refusal for one in admitted) else 0)


def main() -> None:
    """Entry point of the executable `kubectl-gpumem`."""
    app()
