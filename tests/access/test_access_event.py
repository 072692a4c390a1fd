"""The golden access events: read to the values that they had when they were released, and written to the same bytes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from eventlog.codec import schema_text
from eventlog.errors import Corrupted, SchemaMismatch
from eventlog.privacy.access_event import AccessEvent, AccessOutcome, decode, encode
from tests.access.make_golden_access import CASES, GOLDEN
from tests.core.test_golden import canonical, crc_64_avro

FINGERPRINT = "53f497373eaa6cbb"
FILES = sorted(GOLDEN.glob("access_event.*.bin"))


def values(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return found


def test_every_case_is_there() -> None:
    assert {path.name for path in FILES} == {f"access_event.v1.{name}.bin" for name in CASES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_is_read_to_its_values_and_written_to_the_same_bytes(path: Path) -> None:
    wanted, data = values(path), path.read_bytes()
    sealed = decode(data)
    assert {**sealed.event._asdict(), "roles": list(sealed.event.roles)} == wanted["event"]
    assert (sealed.session, sealed.number, sealed.previous_hash.hex()) == (wanted["session"], wanted["number"], wanted["previous_hash"])
    assert sealed.hash.hex() == wanted["hash"] == hashlib.sha256(data[10:]).hexdigest()
    fields = {**wanted["event"], "roles": tuple(wanted["event"]["roles"]), "outcome": AccessOutcome(wanted["event"]["outcome"])}
    again, _ = encode(AccessEvent(**fields), session=sealed.session, number=sealed.number, previous_hash=sealed.previous_hash)
    assert again == data


def test_the_fingerprint_is_the_specifications() -> None:
    schema = json.loads(schema_text("access_event.v1.avsc"))
    assert crc_64_avro(canonical(schema, "").encode()).to_bytes(8, "little").hex() == FINGERPRINT
    assert all(path.read_bytes()[:10].hex() == "c301" + FINGERPRINT for path in FILES)


def test_what_is_no_access_event_is_refused_by_name() -> None:
    data = FILES[0].read_bytes()
    with pytest.raises(Corrupted, match="single-object"):
        decode(b"nonsense")
    with pytest.raises(SchemaMismatch, match="fingerprint"):
        decode(data[:2] + bytes(8) + data[10:])
    for damaged in (data[:-1], data + b"\0", data[:20]):
        with pytest.raises(Corrupted):
            decode(damaged)
