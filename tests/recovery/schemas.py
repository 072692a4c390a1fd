"""The payload documents' JSON Schemas."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

FOLDER = Path(__file__).resolve().parents[2] / "schemas" / "payloads"


@cache
def validator(name: str) -> Draft202012Validator:
    schema = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def conforms(name: str, payload: Any) -> None:
    """The payload is as documented."""
    errors = [f"{each.json_path}: {each.message}" for each in validator(name).iter_errors(payload)]
    assert errors == []
