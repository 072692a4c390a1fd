"""One session a token and process: PKCS#11 logs a whole process in and out, so that the first store to close would log out all others."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import Any, NamedTuple


class TokenSession:
    """A session that is logged in, and its lock: a session does one thing at a time."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.lock = threading.Lock()
        self.users = 0


class _Token(NamedTuple):
    pid: int  # a forked child's sessions are its own
    module: Path
    label: str


_open: dict[_Token, TokenSession] = {}
_opening = threading.Lock()


def take(module: Path, label: str, pin: str) -> TokenSession:
    """The process's session of a token; give it back by `release`. Raises what python-pkcs11 raises."""
    import pkcs11

    token = _Token(os.getpid(), module, label)
    with _opening:
        held = _open.get(token)
        if held is None:
            held = _open[token] = TokenSession(pkcs11.lib(str(module)).get_token(token_label=label).open(rw=True, user_pin=pin))
        held.users += 1
        return held


def release(held: TokenSession) -> None:
    """Gives a session back; the last one to do so closes it."""
    with _opening:
        held.users -= 1
        if held.users:
            return
        for token in [token for token, each in _open.items() if each is held]:
            del _open[token]
            if token.pid == os.getpid():
                with contextlib.suppress(Exception):  # the token may have gone
                    held.session.close()
