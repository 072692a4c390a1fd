"""SELECTs that people type, kept to reading this projection's tables.

This is not a sandbox: a statement may still use all memory and time that the process allows, and its author sees every tenant. It guards
against accidents. One of them is worse than it looks: with external access off DuckDB still lets `read_blob` open the database's own
file, and closing that descriptor drops the process's lock on it (measured). Hence table functions are allowed by name, not refused by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from projections.database import Table, fetched, translated
from projections.errors import InvalidQuery

_TABLE_FUNCTIONS = frozenset(
    {"range", "generate_series", "unnest", "json_each", "json_tree", "duckdb_tables", "duckdb_views", "duckdb_columns"}
)
_SCALAR_FUNCTIONS_REFUSED = frozenset({"nextval", "write_log", "getenv"})
_PLAIN_NAME = re.compile(r"\w+")  # anything else that stands for a table is the name of a file


def run_select(connection: duckdb.DuckDBPyConnection, statement: str, path: Path | None) -> Table:
    """Run one SELECT and return its result. Raises `InvalidQuery` if it is anything else, or does not run."""
    try:
        statements = connection.extract_statements(statement)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise InvalidQuery("one SELECT statement is expected")
        tree = connection.execute("SELECT json_serialize_sql(?::VARCHAR)::VARCHAR", [statement]).fetchall()[0][0]
        _require_own_tables(json.loads(tree))
        return fetched(connection.execute(statements[0]))
    except duckdb.Error as error:
        raise translated(error, path) from error


def _require_own_tables(tree: Any) -> None:
    if tree.get("error"):
        raise InvalidQuery(str(tree.get("error_message", "the statement cannot be checked")))
    for node in _nodes(tree):
        kind = node.get("type")
        if kind == "TABLE_FUNCTION" and node["function"]["function_name"].lower() not in _TABLE_FUNCTIONS:
            raise InvalidQuery(f"the table function {node['function']['function_name']} is not available here")
        if kind == "FUNCTION" and node["function_name"].lower() in _SCALAR_FUNCTIONS_REFUSED:
            raise InvalidQuery(f"the function {node['function_name']} is not available here")
        if kind == "BASE_TABLE" and not _PLAIN_NAME.fullmatch(node["table_name"]):
            raise InvalidQuery(f"{node['table_name']} is not a table of this projection")


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
        for value in tree.values():
            yield from _nodes(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _nodes(value)
