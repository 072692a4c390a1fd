"""The golden events: read to the values that they had when they were released, and written to the same bytes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from eventlog import codec, payload
from eventlog.errors import HistoryRemoved, SchemaMismatch
from eventlog.event import to_checkpoint
from tests.core.make_golden import CASES, GOLDEN, SALT, encoded, plain

FINGERPRINT = "c3d141a7a992eb9a"  # checkpoint_event.v1, as it stands in every event
FILES = sorted(GOLDEN.glob("checkpoint_event.*.bin"))
ERASED = "erased"


def values(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return found


def test_every_case_is_there() -> None:
    assert {path.name for path in FILES} == {f"checkpoint_event.v1.{name}.bin" for name in CASES}
    values_of = {path.name for path in GOLDEN.glob("checkpoint_event.*.json")}
    assert values_of == {path.stem + ".json" for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_is_read_to_its_values(path: Path) -> None:
    wanted = values(path)
    event = codec.decode(path.read_bytes())
    assert {key: plain(part) for key, part in event.header._asdict().items()} == wanted["header"]
    assert (event.hash.hex(), event.salt.hex(), event.stored.hex()) == (wanted["hash"], wanted["salt"], wanted["stored"])
    assert event.header.checkpoint_id.encode().hex() == wanted["key"]
    assert codec.decode_header(path.read_bytes()) == (event.header, event.hash)
    if event.header.encryption is not None:
        with pytest.raises(SchemaMismatch, match="k-1"):
            event.json_text()
    elif wanted["what"] == ERASED:
        with pytest.raises(HistoryRemoved, match="erased"):
            event.json_text()
    elif wanted["json"] is not None:
        assert event.json_text().decode() == wanted["json"]
        checkpoint = to_checkpoint(event.header, event.json_text())
        assert checkpoint.payload == json.loads(wanted["json"])
        assert checkpoint.labels == wanted["header"]["labels"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_is_written_to_the_same_bytes(path: Path) -> None:
    wanted = values(path)
    fields = {**wanted["header"]}
    previous = bytes.fromhex(fields.pop("previous_hash"))
    digest = fields.pop("payload_digest")
    if fields["encryption"] is not None:
        fields["encryption"]["nonce"] = bytes.fromhex(fields["encryption"]["nonce"])
    stored = bytes.fromhex(wanted["stored"])
    if wanted["what"] == ERASED:
        value = CASES[ERASED][1]
        stored = payload.store_form(payload.dump_json(value))[1]
    else:
        assert bytes.fromhex(wanted["salt"]) == SALT
    data = encoded(fields, stored, previous)
    body = len(SALT) + len(stored) + 1 + (1 if len(stored) < 64 else 2 if len(stored) < 8192 else 3)
    released = path.read_bytes()
    assert data[: len(data) - body] == released[: len(data) - body]
    assert wanted["what"] == ERASED or data == released
    assert hashlib.sha256(SALT + stored).hexdigest() == digest


def test_the_hash_and_the_place_of_the_header() -> None:
    """What another language needs to check a chain: SHA-256 of all between the ten bytes before the header and the body."""
    path = GOLDEN / "checkpoint_event.v1.erased.bin"
    data = path.read_bytes()
    assert data[-2:] == b"\x00\x00"
    assert hashlib.sha256(data[10:-2]).hexdigest() == values(path)["hash"]


# -- the fingerprint, by the letter of the Avro specification --------------------------------------------------------


def crc_64_avro(data: bytes) -> int:
    """The Rabin fingerprint of the Avro specification, "Schema fingerprints"."""
    empty = 0xC15D213AA4D7A795
    table = []
    for entry in range(256):
        value = entry
        for _ in range(8):
            value = (value >> 1) ^ (empty & -(value & 1))
        table.append(value)
    result = empty
    for byte in data:
        result = (result >> 8) ^ table[(result ^ byte) & 0xFF]
    return result


def canonical(node: Any, namespace: str) -> str:
    """The Parsing Canonical Form of the Avro specification, as far as our schemas need it."""
    if isinstance(node, str):
        primitive = node in {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
        return json.dumps(node if primitive or "." in node else f"{namespace}.{node}")
    if isinstance(node, list):
        return "[" + ",".join(canonical(each, namespace) for each in node) + "]"
    kind = node["type"]
    namespace = node.get("namespace", namespace)
    if kind not in {"record", "enum", "fixed", "map", "array"}:
        return canonical(kind, namespace)
    parts = []
    if "name" in node:
        parts.append(f'"name":{json.dumps(namespace + "." + node["name"])}')
    parts.append(f'"type":"{kind}"')
    if "fields" in node:
        fields = ('{"name":%s,"type":%s}' % (json.dumps(each["name"]), canonical(each["type"], namespace)) for each in node["fields"])  # noqa: UP031
        parts.append('"fields":[' + ",".join(fields) + "]")
    if "symbols" in node:
        parts.append('"symbols":' + json.dumps(node["symbols"], separators=(",", ":")))
    if "items" in node:
        parts.append('"items":' + canonical(node["items"], namespace))
    if "values" in node:
        parts.append('"values":' + canonical(node["values"], namespace))
    if "size" in node:
        parts.append(f'"size":{node["size"]}')
    return "{" + ",".join(parts) + "}"


def test_the_fingerprint_is_the_specifications() -> None:
    assert crc_64_avro(b'"null"') == 0x63DD24E7CC258F8A  # the specification's own example
    schema = json.loads(codec.schema_text("checkpoint_event.v1.avsc"))
    assert crc_64_avro(canonical(schema, "").encode()).to_bytes(8, "little").hex() == FINGERPRINT


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_event_begins_with_it(path: Path) -> None:
    assert path.read_bytes()[:10].hex() == "c301" + FINGERPRINT
    assert codec.event_schema(1).fingerprint.hex() == FINGERPRINT
