"""Keys in a file that nobody but its owner may read, in clear or sealed with a passphrase."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn
from urllib.parse import parse_qsl, unquote

from eventlog.errors import InvalidRequest, KeysUnavailable
from eventlog.privacy.envelope import KEY_BYTES
from eventlog.privacy.providers import key_file_form as form
from eventlog.privacy.providers.key_file_disk import locked, made_once, read, replaced
from eventlog.privacy.providers.master_keys import MasterKeys

PASSPHRASE_HINT = "Set the variable to the passphrase that the file was made with."


class KeyFile:
    """A JSON file with mode 0600, whose highest version wraps. A file that another process has rotated is read again.

    Arguments:
        path: where it is; made by `create` when missing, never by `open`.
        passphrase_env: the environment variable with its passphrase; None: the file is in clear, and its mode is all that protects it.
    """

    def __init__(self, *, path: Path, passphrase_env: str | None = None) -> None:
        self.path = path.expanduser().absolute()
        self._passphrase_env = passphrase_env
        self._keys: MasterKeys | None = None
        self._read_from: tuple[int, ...] = ()  # what the file looked like when it was read
        self._lock = threading.Lock()

    @classmethod
    def of(cls, text: str) -> KeyFile:
        """From `PATH[?passphrase=env:NAME]`. Raises `InvalidRequest`."""
        path, question, settings = text.partition("?")
        if not question:
            return cls(path=Path(unquote(path)))
        found = dict(parse_qsl(settings))
        name = found.pop("passphrase", "").removeprefix("env:")
        if found or not name or f"env:{name}" not in settings:
            raise InvalidRequest(
                "keys", "a key file takes one setting, passphrase=env:NAME", hint="The passphrase itself is never written."
            )
        return cls(path=Path(unquote(path)), passphrase_env=name)

    @property
    def source(self) -> str:
        path = str(self.path).replace("%", "%25").replace("?", "%3F")
        return f"file:{path}" + ("" if self._passphrase_env is None else f"?passphrase=env:{self._passphrase_env}")

    def create(self) -> None:
        """See `KeyProvider.create`. Of several processes that make it at once, all use the file of the first."""
        with self._told(), self._lock:
            if not self.path.exists():
                made_once(self.path, form.encode({1: os.urandom(KEY_BYTES)}, self._passphrase()))
        self.open()

    def open(self) -> None:
        """See `KeyProvider.open`."""
        with self._lock:
            self._load()

    def current(self, tenant: str) -> str:  # noqa: ARG002 - one key for all
        """See `KeyProvider.current`."""
        return str(self._fresh().current)

    def wrap(self, tenant: str, key: bytes, context: bytes) -> tuple[str, bytes]:
        """See `KeyProvider.wrap`. By the newest version in the file, whoever has put it there."""
        return self._fresh().wrap(tenant, key, context)

    def unwrap(self, tenant: str, version: str, wrapped: bytes, context: bytes) -> bytes:
        """See `KeyProvider.unwrap`."""
        return self._fresh().unwrap(tenant, version, wrapped, context)

    def advance(self, tenant: str) -> None:  # noqa: ARG002
        """See `KeyProvider.advance`. The file is written anew beside the old one and put in its place."""
        with self._told(), self._lock, locked(self.path):
            keys = form.decode(read(self.path), self._passphrase())
            keys[max(keys) + 1] = os.urandom(KEY_BYTES)
            replaced(self.path, form.encode(keys, self._passphrase()))
        self.open()

    def close(self) -> None:
        """See `KeyProvider.close`."""
        self._keys = None

    def _fresh(self) -> MasterKeys:
        with self._lock:
            if self._keys is None:
                raise KeysUnavailable(self.source, "is not open")
            with contextlib.suppress(FileNotFoundError):  # what was read goes on being used; the next to open is told
                if self._looks() != self._read_from:
                    self._load()
            return self._keys

    def _load(self) -> None:
        with self._told():
            looks = self._looks()
            self._keys = MasterKeys(source=self.source, keys=form.decode(read(self.path), self._passphrase()))
            self._read_from = looks

    def _looks(self) -> tuple[int, ...]:
        found = os.stat(self.path)
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _passphrase(self) -> bytes | None:
        if self._passphrase_env is None:
            return None
        passphrase = os.environ.get(self._passphrase_env)
        if not passphrase:
            raise KeysUnavailable(self.source, f"the variable {self._passphrase_env} is not set", hint=PASSPHRASE_HINT)
        return passphrase.encode()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Errors in the store's own words, without what the file holds."""
        try:
            yield
        except form.Unreadable as error:
            raise KeysUnavailable(self.source, str(error), hint=error.hint) from None
        except OSError as error:
            raise KeysUnavailable(self.source, f"{error.strerror or error}") from error

    def __repr__(self) -> str:
        return f"KeyFile({self.path})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("keys do not leave their process")
