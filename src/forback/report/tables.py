"""Tables as text: aligned, or in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A title, a header and rows of text."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Align columns by spaces under a ruled header.

    Parameters
    ----------
    header : sequence of str
        A heading for each column.
    rows : sequence of sequences of str
        The cells of each line.

    Returns
    -------
    str
        The lines, without trailing blanks.
    """
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    widths[-1] = len(header[-1])

    def line(cells: Sequence[str]) -> str:
        return "  ".join(
            cell.ljust(width) for cell, width in zip(cells, widths, strict=True)
        ).rstrip()

    return "\n".join([line(header), line(["-" * width for width in widths]), *map(line, rows)])


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table in Markdown.

    Parameters
    ----------
    header : sequence of str
        A heading for each column.
    rows : sequence of sequences of str
        The cells of each line; a bar within a cell is not escaped.

    Returns
    -------
    str
        The lines of the table.
    """
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
