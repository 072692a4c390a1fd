"""The local broker's settings: the shared ones, and what differs on one node."""

from __future__ import annotations

import base64
import struct
import uuid
from collections.abc import Mapping
from types import MappingProxyType

from eventlog.kafka.local_jars import resources

# What cannot be as in server.properties when there is one node. Addresses, id and directory come from the LocalBroker itself.
SINGLE_NODE: Mapping[str, str] = MappingProxyType(
    {
        "default.replication.factor": "1",
        "min.insync.replicas": "1",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        # After a crash the one controller refuses the one broker, as a second of its name, until the dead one's session ends: with Kafka's
        # default of 9 s a restart after kill -9 took 12 s, with 2 s it takes 5.
        "broker.session.timeout.ms": "2000",
        "broker.heartbeat.interval.ms": "400",
    }
)


def shared_settings() -> dict[str, str]:
    """The settings of compose/broker/server.properties, which every broker of this project starts from."""
    lines = (resources() / "server.properties").read_text(encoding="ascii").splitlines()
    pairs = (line.split("=", 1) for line in lines if line.strip() and not line.startswith("#"))
    return {name.strip(): value.strip() for name, value in pairs}


def properties_text(settings: Mapping[str, str]) -> str:
    """Settings as the text of a properties file."""
    return "".join(f"{name}={_escaped(value)}\n" for name, value in settings.items())


def _escaped(value: str) -> str:
    """A value as Java's property files want it: plain ASCII, anything else as UTF-16 code units."""
    units = (unit for (unit,) in struct.iter_unpack(">H", value.encode("utf-16-be")))
    return "".join(chr(unit) if 0x20 <= unit < 0x7F and chr(unit) != "\\" else f"\\u{unit:04x}" for unit in units)


def new_cluster_id() -> str:
    """Sixteen random bytes as Kafka writes them. The tool would take a leading dash for an option."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode("ascii").rstrip("=")
        if not text.startswith("-"):
            return text
