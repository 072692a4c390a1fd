"""What a command prints: a table for people, JSON or CSV for programs.

    table   in colour on a terminal; in a pipe plain, aligned, one line a row, never cut
    json    one JSON document; `tail`, which has no end, prints one JSON object a line
    csv     a header line; nested values as JSON text

Data goes to stdout, everything else (notes, progress, errors) to stderr.
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

_KEPT_WHOLE = 36  # characters of a UUID
_BETWEEN = 2  # characters between two columns
_UNBOUNDED = 100_000  # columns of a pipe: nothing is wrapped or cut
_NUMBERS = (int, float, Decimal)


class OutputFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class Output:
    """Prints in one format. Values may be whatever a store or DuckDB hands out; see `plain`."""

    def __init__(self, *, output_format: OutputFormat) -> None:
        self.format = output_format

    def rows(
        self, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, shown: Mapping[str, Callable[[Any], str]] | None = None
    ) -> None:
        """Prints rows. `shown` shortens a column in tables only (a hash, say)."""
        if self.format is OutputFormat.JSON:
            self.document([dict(zip(columns, row, strict=True)) for row in rows])
        elif self.format is OutputFormat.CSV:
            lines = self.lines(columns)
            for row in rows:
                lines(row)
        else:
            short = shown or {}
            self._table(
                columns,
                [[short[name](value) if name in short else value for name, value in zip(columns, row, strict=True)] for row in rows],
            )

    def record(self, fields: Mapping[str, Any]) -> None:
        """Prints one thing: its fields below each other in a table, beside each other in CSV."""
        if self.format is OutputFormat.JSON:
            self.document(fields)
        elif self.format is OutputFormat.CSV:
            self.rows(list(fields), [list(fields.values())])
        else:
            table = Table(box=None, show_header=False, pad_edge=False)
            table.add_column(style="bold", no_wrap=True)
            table.add_column(overflow="fold")
            for name, value in fields.items():
                table.add_row(Text(name), Text(cell(value)))
            _print(table)

    def document(self, value: Any) -> None:
        """Prints a JSON document: indented on a terminal, on one line in a pipe."""
        sys.stdout.write(f"{json.dumps(plain(value), ensure_ascii=False, indent=2 if sys.stdout.isatty() else None)}\n")

    def lines(self, columns: Sequence[str], *, widths: Mapping[str, int] | None = None) -> Callable[[Sequence[Any]], None]:
        """For rows that come one at a time: a function that prints each at once, under a header printed now (not for JSON)."""
        if self.format is OutputFormat.JSON:
            return lambda row: _write(json.dumps(plain(dict(zip(columns, row, strict=True))), ensure_ascii=False))
        if self.format is OutputFormat.CSV:
            _write(_csv_line(columns))
            return lambda row: _write(_csv_line([_csv_value(value) for value in row]))
        given = widths or {}
        console = Console(file=sys.stdout, highlight=False, soft_wrap=True)

        def line(row: Sequence[Any], style: str | None = None) -> None:
            cells = (cell(value).ljust(given.get(name, len(name))) for name, value in zip(columns, row, strict=True))
            console.print(Text("  ".join(cells).rstrip(), style=style or ""))
            sys.stdout.flush()

        line(columns, "bold")
        return line

    def text(self, text: str) -> None:
        """Prints a sentence for people; programs that asked for JSON or CSV are spared."""
        if self.format is OutputFormat.TABLE:
            Console(file=sys.stdout, highlight=False, soft_wrap=True).print(Text(text))

    def note(self, text: str, style: str = "dim") -> None:
        """Says something beside the data, on stderr."""
        Console(stderr=True, highlight=False, soft_wrap=True).print(Text(text, style=style))

    def _table(self, columns: Sequence[str], rows: list[list[Any]]) -> None:
        """On a terminal long texts are folded; ids, times and numbers stay whole, on lines that the terminal wraps if they must."""
        terminal = sys.stdout.isatty()
        table = Table(box=None, pad_edge=False, padding=(0, _BETWEEN, 0, 0), header_style="bold cyan")
        least = 0
        for index, name in enumerate(columns):
            values = [row[index] for row in rows if row[index] is not None]
            longest = max([len(name), *(len(cell(value)) for value in values)])
            whole = not terminal or longest <= _KEPT_WHOLE
            numeric = bool(values) and all(isinstance(value, _NUMBERS) and not isinstance(value, bool) for value in values)
            table.add_column(Text(name), justify="right" if numeric else "left", overflow="fold", no_wrap=whole)
            least += (longest if whole else _KEPT_WHOLE) + _BETWEEN
        for row in rows:
            table.add_row(*(Text(cell(value), style=_STYLES.get(value, "") if isinstance(value, str) else "") for value in row))
        _print(table, least)


_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red", "DELETED": "red"}


def plain(value: Any) -> Any:
    """A value as JSON has it: times as ISO 8601 in UTC, bytes as hex, ids and positions as text, NaN as null."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | set | frozenset) or type(value) is tuple:
        return [plain(each) for each in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return str(value)


def instant(moment: datetime) -> str:
    """A time as every command prints and accepts it: ISO 8601, UTC, milliseconds."""
    return (
        (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )


def cell(value: Any) -> str:
    """A value on one line, without anything that a terminal would obey."""
    value = plain(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False) if value else ""
    text = str(value)
    return text if text.isprintable() else "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _csv_value(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else cell(value)


def _print(table: Table, least: int = 0) -> None:
    terminal = sys.stdout.isatty()
    console = Console(file=sys.stdout, highlight=False)
    console.width = max(console.width, least) if terminal else _UNBOUNDED
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        if terminal or line.strip():
            sys.stdout.write(f"{line if terminal else line.rstrip()}\n")


def _csv_line(values: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return line.getvalue()


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
