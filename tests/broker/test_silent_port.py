"""A broker that is still starting, or hangs: its port takes connections, and nobody answers."""

from __future__ import annotations

import socket
import threading

from eventlog.kafka.local_network import HOST, answers


def test_asking_a_silent_port_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    with socket.create_server((HOST, 0)) as silent:
        assert not answers(silent.getsockname()[1])
    assert set(threading.enumerate()) == before
