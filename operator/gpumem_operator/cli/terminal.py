"""Lines on a person's terminal: whatever is in one, it stays one line and moves no cursor.

Names, messages and reasons come from objects that others write. JSON and YAML escape by themselves
what a terminal would obey.
"""

import typer

from gpumem_operator.api.printable import one_line


def say(line: str) -> None:
    """Print a line of the result."""
    typer.echo(one_line(line))


def remark(line: str) -> None:
    """Print a line that is not the result: a note, a warning, an error."""
    typer.echo(one_line(line), err=True)
