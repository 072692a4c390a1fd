"""Where a store is: a directory, or a topic of a Kafka cluster."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from eventlog.errors import InvalidRequest

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,200}").fullmatch  # Kafka allows 249; room for `.keys`, `.access` and `-writer-<partition>`
_SERVER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):\d{1,5}").fullmatch
_HINT = "An address is a directory, or kafka://host:port[,host:port]/topic[?setting=value&...]."


@dataclass(frozen=True, slots=True)
class DirectoryAddress:
    """An embedded store."""

    directory: Path

    def __str__(self) -> str:
        return str(self.directory)


@dataclass(frozen=True, slots=True)
class KafkaAddress:
    """A topic of a Kafka cluster.

    `settings` are the client's (TLS, SASL) and two of the store's: `state`, the projection's directory, and `hold_ms`, how long every
    revision must stay in the topic (7 days unless given; the topic is made with it and held to it).
    """

    servers: tuple[str, ...]
    topic: str
    settings: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """Without settings: they may hold a password."""
        return f"kafka://{','.join(self.servers)}/{self.topic}"


def parse_address(address: str | Path | DirectoryAddress | KafkaAddress) -> DirectoryAddress | KafkaAddress:
    """Reads an address. Raises `InvalidRequest`."""
    if isinstance(address, DirectoryAddress | KafkaAddress):
        return address
    if isinstance(address, Path):
        return DirectoryAddress(address)
    if not isinstance(address, str) or not address or "\x00" in address:
        raise InvalidRequest("address", f"not a store's address: {address!r}", hint=_HINT)
    if "://" not in address:
        return DirectoryAddress(Path(address).expanduser())
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise InvalidRequest("address", f"{error}", hint=_HINT) from error
    if parts.scheme != "kafka":
        raise InvalidRequest("address", f"unknown kind of store: {parts.scheme}://", hint=_HINT)
    servers = tuple(server for server in parts.netloc.split(",") if server)
    topic = parts.path.strip("/")
    wrong = next((server for server in servers if not _SERVER(server)), None)
    if not servers or wrong is not None:
        raise InvalidRequest("address", f"{wrong or 'nothing'} is not host:port", hint=_HINT)
    if not _TOPIC(topic) or topic in {".", ".."}:
        raise InvalidRequest("address", f"{topic!r} is not a topic's name", hint=_HINT)
    try:
        settings = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError as error:
        raise InvalidRequest("address", f"its settings cannot be read: {error}", hint=_HINT) from error
    return KafkaAddress(servers, topic, settings)
