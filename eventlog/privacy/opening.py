"""A store's keys made and opened with it: the table of wrapped keys, the provider, and the check that they belong together."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from eventlog.codec import decode_header
from eventlog.embedded_files import KEY_SOURCE, KEYS_FILE, create, translate
from eventlog.errors import ConfigurationError, InvalidRequest
from eventlog.event import EventHeader
from eventlog.log import Log
from eventlog.privacy.data_keys import DataKeys, put_probe, require_same_keys
from eventlog.privacy.embedded_keys import EmbeddedKeys, create_keys
from eventlog.privacy.providers.key_file import KeyFile
from eventlog.privacy.providers.provider import KeyProvider, NoKeys, provider_of
from eventlog.privacy.table import KeyTable


def create_directory(directory: Path, encryption: KeyProvider | None) -> None:
    """Makes an embedded store. Raises what `embedded_files.create` raises, `InvalidRequest`, `KeysUnavailable`."""
    if encryption is None:
        create(directory)
        return
    require_apart(encryption, directory)

    def beside(store_id: str) -> dict[str, str]:
        """The keys stand before the log does, so that a log that says that it is encrypted has them."""
        encryption.create()
        path = directory / KEYS_FILE
        try:
            create_keys(path, store_id)
        except sqlite3.Error as error:
            raise translate(error, path) from error
        table = EmbeddedKeys(directory=directory, store_id=store_id)
        table.open()
        try:
            put_probe(table, encryption)
        finally:
            table.close()
        return {KEY_SOURCE: encryption.source}

    create(directory, beside=beside)


def require_apart(provider: KeyProvider, directory: Path) -> None:
    """Raises `InvalidRequest` for a key file inside of a store's directory: whoever copied that would have both."""
    if isinstance(provider, KeyFile) and provider.path.resolve().is_relative_to(directory.expanduser().resolve()):
        raise InvalidRequest(
            "keys",
            f"{provider.path} lies inside of the store's directory",
            hint="A copy of the directory would carry its key: put it elsewhere.",
        )


def open_keys(log: Log, *, source: str | None, open_table: Callable[[], KeyTable], given: KeyProvider | None) -> DataKeys | None:
    """The data keys of a store that has just been opened; None when it is not encrypted.

    Arguments:
        source: what the store remembers; None: it is not encrypted.
        open_table: opens its wrapped keys.
        given: a provider of the caller's instead.
    """
    if source is None:
        if given is None or isinstance(given, NoKeys):
            return None
        raise ConfigurationError(
            "keys were given, and the store is not encrypted",
            hint="Whether a store is encrypted is chosen when it is made: `eventlog init --encrypt`.",
        )
    provider = provider_of(source) if given is None else given
    provider.open()
    table: KeyTable | None = None
    try:
        table = open_table()
        keys = DataKeys(
            table=table, provider=provider, head_of=lambda checkpoint_id: head_of(log, checkpoint_id), owns_provider=given is None
        )
        if keys.can_open:
            require_same_keys(table, provider)
    except BaseException:
        if table is not None:
            table.close()
        if given is None:
            provider.close()
        raise
    return keys


def head_of(log: Log, checkpoint_id: str) -> EventHeader | None:
    """The header of a checkpoint's latest event, as of now."""
    record = None if log.place(checkpoint_id, at_least=None) is None else log.latest(checkpoint_id)
    return None if record is None or record.value is None else decode_header(record.value)[0]
