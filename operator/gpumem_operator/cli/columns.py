"""Cells in columns, in kubectl's manner: as wide as their longest cell, no blanks at line ends."""

from collections.abc import Iterable, Sequence

from gpumem_operator.api.printable import one_line

_GAP = "   "


def in_columns(rows: Iterable[Sequence[str]]) -> list[str]:
    """One line for each row, all of which have the same number of cells."""
    shown = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return [
        _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in shown
    ]
