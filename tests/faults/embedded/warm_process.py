"""A process that has imported everything and forks a fresh one for each task; its stdin is the socket that it is told them by.

A start of Python with all that a store imports takes a second, a fork of this one some milliseconds; hundreds of kills need that.
It opens no store and has one thread, so that what it forks is as good as new.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import traceback
from typing import Any, NoReturn

from tests.faults.embedded.notes import Notes
from tests.faults.embedded.tasks import TASKS

VIOLATION = 3  # exit status of a task that has ended by an exception
_PR_SET_PTRACER, _ANY = 0x59616D61, ctypes.c_ulong(-1)  # prctl(2): where the Yama module asks for it


def serve(control: socket.socket) -> None:
    """Forks a child for each message (a task, its arguments, and the channel that it talks over); says its pid, then how it ended."""
    while True:
        message, channels, _, _ = socket.recv_fds(control, 1 << 17, 1)
        if not message:
            return
        pid = os.fork()
        if pid == 0:
            control.close()
            run(socket.socket(fileno=channels[0]), *json.loads(message))
        os.close(channels[0])
        control.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        control.send(str(os.waitstatus_to_exitcode(status)).encode())


def run(channel: socket.socket, task: str, arguments: list[Any]) -> NoReturn:
    """Waits for the word to go, runs a task, and ends without what Python would still write at its end."""
    notes = Notes(channel)
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANY, 0, 0, 0)
        if channel.recv(16):
            TASKS[task](notes, *arguments)
    except BaseException:  # noqa: BLE001 - whatever it is goes to the parent, which fails the test with it
        notes.violation(traceback.format_exc())
        os._exit(VIOLATION)
    os._exit(0)


if __name__ == "__main__":
    serve(socket.socket(fileno=0))
