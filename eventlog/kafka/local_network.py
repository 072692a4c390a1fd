"""The local broker's ports, and whether it answers there."""

from __future__ import annotations

import errno
import random
import socket

from kafka.errors import KafkaError

from eventlog.address import KafkaAddress
from eventlog.errors import CheckpointError, Unavailable
from eventlog.kafka.client import admin

HOST = "127.0.0.1"
# Below the ports that systems give to outgoing connections (Linux from 32768, macOS from 49152): a client that keeps trying a stopped
# broker's port from such a range can be given that port itself, connect to itself, and keep the broker from coming back.
_PORTS = range(20_000, 32_000)


class BrokerFailed(Unavailable):
    """The local broker did not start, or ended while starting; the message carries the end of its log."""


def free_port(*, avoid: int = 0) -> int:
    """A port of the loopback address that nothing listens on, outside the range that the system gives away by itself."""
    # The system's randomness: tests seed the other one alike in several processes, which would then all choose the same port.
    for port in random.SystemRandom().sample(_PORTS, k=len(_PORTS)):
        if port != avoid and _is_free(port):
            return port
    raise BrokerFailed(HOST, f"no free port from {_PORTS.start} to {_PORTS.stop - 1}", hint="Name one.")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True


def answers(port: int) -> bool:
    """Whether the broker answers a request for its cluster's metadata and names itself in it."""
    try:
        # The client logs every refused connection, so it is asked only when there is one to be had.
        with socket.create_connection((HOST, port), timeout=1.0):
            pass
        client = admin(KafkaAddress((f"{HOST}:{port}",), topic=""), bootstrap_timeout_ms=2000, request_timeout_ms=2000)
    except (OSError, CheckpointError):
        return False
    try:
        return any(broker["port"] == port for broker in client.describe_cluster()["brokers"])
    except KafkaError:
        return False
    finally:
        client.close()
