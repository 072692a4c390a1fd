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
    settings: dict[str, str] = field(default_factory=dict, repr=False)  # they may hold a password

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
    except ValueError:  # its text may hold any part of the address, so a password too
        raise InvalidRequest("address", "it cannot be taken apart", hint=_HINT) from None
    if parts.scheme != "kafka":
        raise InvalidRequest("address", f"unknown kind of store: {parts.scheme}://", hint=_HINT)
    if "@" in parts.netloc:
        raise InvalidRequest("address", "it names a user before the server", hint="Give sasl_plain_username and a password as settings.")
    if "#" in address:
        raise InvalidRequest("address", "it holds a #, behind which nothing counts", hint="In a setting's value write %23.")
    servers = tuple(server for server in parts.netloc.split(",") if server)
    topic = parts.path.strip("/")
    wrong = next((server for server in servers if not _SERVER(server)), None)
    if not servers or wrong is not None:
        raise InvalidRequest("address", f"{wrong or 'nothing'} is not host:port", hint=_HINT)
    if not _TOPIC(topic) or topic in {".", ".."}:
        raise InvalidRequest("address", f"{topic!r} is not a topic's name", hint=_HINT)
    try:
        pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise InvalidRequest("address", "its settings cannot be read", hint=f"{_HINT} In a value write %26 for &, %2B for +.") from None
    if len(pairs) != len(settings := dict(pairs)):
        raise InvalidRequest("address", "a setting is given twice", hint=_HINT)
    return KafkaAddress(servers, topic, settings)
