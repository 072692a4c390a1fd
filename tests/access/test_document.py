"""docs/privacy.md shows the roles as the code has them. After a deliberate change: EVENTLOG_UPDATE_SNAPSHOTS=1."""

from __future__ import annotations

import os
from pathlib import Path

from eventlog.privacy.principals import MEANINGS, WHOLE_STORE, Grant, Operation, Role, grant
from eventlog.privacy.recorder import BUFFERED_SECONDS, MOST_BUFFERED

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "privacy.md"
BEGINNING, END = "<!-- roles: made from the code by tests/access/test_document.py -->\n", "<!-- end -->"
CELL = {Grant.FULL: "yes", Grant.METADATA: "metadata", Grant.NONE: ""}


def table() -> str:
    lines = [f"| operation | | {' | '.join(Role)} |", "|---|---|" + "---|" * len(Role)]
    for operation in Operation:
        cells = " | ".join(CELL[grant(operation, [role])] for role in Role)
        lines.append(f"| `{operation}`{' *' if operation in WHOLE_STORE else ''} | {MEANINGS[operation]} | {cells} |")
    return "\n".join(lines) + "\n"


def test_the_table_of_roles_is_the_codes() -> None:
    before, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(BEGINNING)
    shown, _, after = rest.partition(END)
    if os.environ.get("EVENTLOG_UPDATE_SNAPSHOTS") == "1":
        DOCUMENT.write_text(f"{before}{BEGINNING}\n{table()}\n{END}{after}", encoding="utf-8")
        return
    assert shown.strip() == table().strip(), "made anew with EVENTLOG_UPDATE_SNAPSHOTS=1"


def test_the_bounds_of_buffering_are_the_codes() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert f"within {BUFFERED_SECONDS:g} s, or when {MOST_BUFFERED} wait" in text
    assert f"at most {MOST_BUFFERED} accesses, none older than {BUFFERED_SECONDS:g} s" in text
