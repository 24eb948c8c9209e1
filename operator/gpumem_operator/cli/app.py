"""The executable `kubectl-gpumem`, which kubectl runs as `kubectl gpumem`."""

from importlib.metadata import version
from typing import Annotated

import typer

from gpumem_operator.cli import files, live
from gpumem_operator.cli.standard_streams import with_streams

app = typer.Typer(
    name="kubectl-gpumem",
    help="GPU memory of pods: what a policy does to them and what tenants are charged.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(files.render)
app.command()(files.charge)
app.command()(live.top)
app.command()(live.tenants)
app.command()(live.why)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"kubectl-gpumem {version('gpu-memory-operator')}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """GPU memory of pods: what a policy does to them and what tenants are charged."""


def main() -> None:
    """Entry point of the executable `kubectl-gpumem`."""
    with_streams(app)
