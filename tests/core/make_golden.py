"""Makes the golden events of `schemas/golden/`: `python -m tests.core.make_golden`. It never writes over one that is there.

Released bytes are what everybody's logs hold: a test that no longer agrees with them shows that the code is wrong, never that they are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest import mock

from eventlog import codec, payload

GOLDEN = Path(__file__).resolve().parents[2] / "schemas" / "golden"
SALT = bytes(range(16))
ERASED_BODY = b"\x00\x00"  # an empty salt and an empty payload

MINIMAL: dict[str, Any] = {
    "event_id": "018bcfe5-6800-7000-8000-000000000001",
    "type": "REVISION",
    "tenant": "default",
    "checkpoint_id": "018bcfe5-6800-7000-8000-0000000000c1",
    "run_id": "018bcfe5-6800-7000-8000-0000000000a1",
    "revision": 0,
    "kind": "acme.order",
    "schema_version": 1,
    "phase": None,
    "updated_at": 1_700_000_000_000,
    "actor": None,
    "labels": {},
    "usage": {},
    "encryption": None,
}
FULL: dict[str, Any] = {
    **MINIMAL,
    "event_id": "018bcfe5-6800-7000-8000-000000000002",
    "tenant": "acme-north",
    "revision": 300,
    "schema_version": 7,
    "phase": "StepInFlight",
    "updated_at": 1_767_225_599_999,
    "actor": "Zoë <zoe@example.org>",
    "labels": {"env": "prod", "team/owner": "Grüße 🎉", "empty": ""},
    "usage": {"input_tokens": 123_456_789, "cost_microusd": 2**63 - 1, "turns": 0},
}
PAYLOAD = {"phase": {"state": "StepInFlight"}, "items": [1, -0.5, None, True, "é"], "nested": {"": {}}}
PREVIOUS = bytes.fromhex("5a" * 32)

CASES: dict[str, tuple[dict[str, Any], Any, bytes]] = {
    "minimal": (MINIMAL, None, bytes(32)),
    "full": (FULL, PAYLOAD, PREVIOUS),
    "deleted": ({**FULL, "type": "DELETED", "revision": 301}, ..., PREVIOUS),
    "imported": ({**MINIMAL, "type": "IMPORTED", "revision": 41}, {"from": "elsewhere"}, bytes(32)),
    "migrated": ({**MINIMAL, "type": "MIGRATED", "revision": 42, "kind": "acme.invoice", "schema_version": 2}, [], PREVIOUS),
    "zstd": ({**MINIMAL, "revision": 1}, {"text": "lorem ipsum " * 300}, PREVIOUS),
    "big_integers": ({**MINIMAL, "revision": 2}, {"n": [2**64, -(2**200)], "s": "ü"}, PREVIOUS),
    "erased": ({**FULL, "revision": 5}, PAYLOAD, PREVIOUS),
    "encrypted": ({**MINIMAL, "encryption": {"key_id": "k-1", "nonce": bytes(range(12))}}, {"sealed": True}, PREVIOUS),
    "extremes": ({**MINIMAL, "revision": 2**63 - 1, "updated_at": -62_135_596_800_000, "schema_version": 2**31 - 1}, "", PREVIOUS),
}


def encoded(fields: dict[str, Any], stored: bytes, previous: bytes) -> bytes:
    """The event's bytes, with a salt that is no secret."""
    with mock.patch("os.urandom", lambda size: SALT[:size]):
        return codec.finish(codec.draft(dict(fields), stored), previous)[0]


def main() -> None:
    for name, (fields, value, previous) in CASES.items():
        path = GOLDEN / f"checkpoint_event.v1.{name}.bin"
        if path.exists():
            print(f"kept: {path.name}")  # noqa: T201 - a script
            continue
        text = b"" if value is ... else payload.dump_json(value)
        encoding, stored = payload.store_form(text)
        data = encoded({**fields, "payload_size": len(text), "encoding": encoding}, stored, previous)
        event = codec.decode(data)
        values = {
            "what": name,
            "key": fields["checkpoint_id"].encode().hex(),
            "header": {key: plain(part) for key, part in event.header._asdict().items()},
            "hash": event.hash.hex(),
            "salt": "" if name == "erased" else event.salt.hex(),
            "stored": "" if name == "erased" else event.stored.hex(),
            "json": None if value is ... or name == "erased" else text.decode(),
        }
        if name == "erased":
            data = data[: -len(codec.draft({**fields, "payload_size": len(text), "encoding": encoding}, stored).body)] + ERASED_BODY
        path.write_bytes(data)
        path.with_suffix(".json").write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def plain(value: Any) -> Any:
    """Bytes as hex text, so that any language can read it."""
    if isinstance(value, bytes):
        return value.hex()
    return {key: plain(part) for key, part in value.items()} if isinstance(value, dict) else value


if __name__ == "__main__":
    main()
