"""Makes the golden access events: `python -m tests.access.make_golden_access`. It never writes over one that is there."""

from __future__ import annotations

import json
from pathlib import Path

from eventlog.privacy.access_event import GENESIS, AccessEvent, AccessOutcome, encode

GOLDEN = Path(__file__).resolve().parents[2] / "schemas" / "golden"
SESSION = "018bcfe5-6800-4000-8000-0000000000f1"
CHECKPOINT = "018bcfe5-6800-7000-8000-0000000000c1"
EVENT = "018bcfe5-6800-7000-8000-000000000001"
PREVIOUS = bytes.fromhex("5a" * 32)

CASES: dict[str, tuple[AccessEvent, int, bytes]] = {
    "minimal": (AccessEvent(1_700_000_000_000, "ops", ("admin",), None, "sql", AccessOutcome.ALLOWED), 0, GENESIS),
    "read": (
        AccessEvent(
            1_700_000_000_001, "Zoë <zoe@example.org>", ("reader", "writer"), "acme-north", "history", AccessOutcome.ALLOWED,
            CHECKPOINT, 3, 102, None, None, 100, "0:17,3:9", "ticket 4711: Grüße 🎉", None,
        ),
        1,
        PREVIOUS,
    ),
    "write": (
        AccessEvent(1_700_000_000_002, "desk", ("writer",), "default", "compare_and_swap", AccessOutcome.FAILED, CHECKPOINT, 4, None, EVENT,
                    None, None, None, None, "CONFLICT"),
        2,
        PREVIOUS,
    ),
    "refused": (
        AccessEvent(1_700_000_000_003, "audit", ("auditor",), "acme", "load", AccessOutcome.REFUSED, CHECKPOINT,
                    detail="the roles do not allow it"),
        3,
        PREVIOUS,
    ),
    "absent": (AccessEvent(1_700_000_000_004, "x", ("reader",), "south", "load", AccessOutcome.ABSENT, CHECKPOINT), 4, PREVIOUS),
    "report": (
        AccessEvent(1_700_000_000_005, "audit", ("auditor",), "acme", "report_access", AccessOutcome.ALLOWED, target="access", items=2**40),
        2**63 - 1,
        PREVIOUS,
    ),
}  # fmt: skip


def main() -> None:
    for name, (event, number, previous) in CASES.items():
        path = GOLDEN / f"access_event.v1.{name}.bin"
        if path.exists():
            continue
        data, digest = encode(event, session=SESSION, number=number, previous_hash=previous)
        values = {
            "what": name,
            "event": {**event._asdict(), "roles": list(event.roles)},
            "session": SESSION,
            "number": number,
            "previous_hash": previous.hex(),
            "hash": digest.hex(),
        }
        path.write_bytes(data)
        path.with_suffix(".json").write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
