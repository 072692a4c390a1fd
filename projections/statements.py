"""SQL lives in .sql files beside the code; this reads them, whole or by the `-- name:` lines that divide them."""

from __future__ import annotations

import re
from pathlib import Path

_FOLDER = Path(__file__).parent
_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def script(file: str) -> str:
    """Return the text of a .sql file of this package."""
    return (_FOLDER / file).read_text(encoding="utf-8")


def named(file: str) -> dict[str, str]:
    """Return the statements of a .sql file by the `-- name:` line above each."""
    parts = _NAME.split(script(file))
    return {name: text.strip().rstrip(";") for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def literal(text: str) -> str:
    """Return `text` as an SQL string, for the few statements (ATTACH, SET) that take no parameters."""
    return "'" + text.replace("'", "''") + "'"


def identifier(text: str) -> str:
    """Return `text` as an SQL name, for a database whose name comes from its file."""
    return '"' + text.replace('"', '""') + '"'
