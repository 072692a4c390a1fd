"""SQL lives in `.sql` files beside the code; this reads their statements by the `-- name:` line above each."""

from __future__ import annotations

import re
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def named(file: str) -> dict[str, str]:
    """The statements of a `.sql` file of this package."""
    parts = _NAME.split(resources.files("eventlog").joinpath(file).read_text(encoding="utf-8"))
    return {name: text.strip().rstrip(";") for name, text in zip(parts[1::2], parts[2::2], strict=True)}
