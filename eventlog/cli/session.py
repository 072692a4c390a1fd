"""What a command works with: the settings in force, the store that they name, and the output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eventlog.cli.logs import LogFormat, LogLevel
from eventlog.cli.output import Output, OutputFormat
from eventlog.errors import InvalidRequest, KeysUnavailable

if TYPE_CHECKING:
    from eventlog.privacy.principals import Principal
    from eventlog.privacy.providers import KeyProvider
    from eventlog.settings import Settings
    from eventlog.store import CheckpointStore


@dataclass
class Given:
    """Options on the command line; None where the environment or the file decides."""

    store: str | None = None
    tenant: str | None = None
    actor: str | None = None
    acting_as: str | None = None
    role: str | None = None
    timeout: float | None = None
    format: OutputFormat | None = None
    log_format: LogFormat | None = None
    log_level: LogLevel | None = None

    def over(self, other: Given) -> Given:
        """These options, and those of `other` where these are not given."""
        return Given(
            **{
                name: other_value if value is None else value
                for (name, value), other_value in zip(vars(self).items(), vars(other).values(), strict=True)
            }
        )


class Session:
    """One command's run. Settings are read when they are first needed."""

    def __init__(self, *, given: Given) -> None:
        self._given = given
        self._settings: Settings | None = None

    @property
    def settings(self) -> Settings:
        if self._settings is None:
            from eventlog.settings import load_settings

            self._settings = load_settings()
        return self._settings

    @property
    def output(self) -> Output:
        return Output(output_format=self._given.format or OutputFormat(self.settings.format))

    @property
    def log_format(self) -> LogFormat | None:
        """How the log on stderr is to look; None: there is none."""
        given = self._given.log_format or self.settings.log_format
        return None if given is None else LogFormat(given)

    @property
    def log_level(self) -> LogLevel:
        return self._given.log_level or LogLevel(self.settings.log_level)

    @property
    def address(self) -> str:
        """The store's address. Raises `InvalidRequest` when nothing names one."""
        address = self._given.store or self.settings.store
        if not address:
            raise InvalidRequest(
                "--store", "no store is named", hint="Use --store DIRECTORY or --store kafka://host:port/topic, or set EVENTLOG_STORE."
            )
        return address

    def at(self, address: str | None) -> Session:
        """The same session with a store that was named by itself, where it was."""
        return self if address is None else Session(given=Given(store=address).over(self._given))

    @property
    def tenant(self) -> str | None:
        return self._given.tenant or self.settings.tenant

    @property
    def principal(self) -> Principal | None:
        """Who is asking; None: the local user, who may do everything. Raises `InvalidRequest`."""
        subject, role = self._given.acting_as or self.settings.subject, self._given.role or self.settings.role
        if subject is None and role is None:
            return None
        if subject is None or role is None:
            missing, given = ("--as", "--role") if subject is None else ("--role", "--as")
            raise InvalidRequest(missing, f"is needed with {given}", hint="Say who is asking, and as what: --as SUBJECT --role ROLE.")
        if self._given.actor is not None and self._given.actor != subject:
            raise InvalidRequest("--actor", f"is {self._given.actor} where {subject} is asking", hint="The subject is the actor.")
        from eventlog.privacy.principals import Principal

        return Principal(subject, self.tenant, [each.strip() for each in role.split(",")])

    def require(self, operation: str) -> None:
        """Whether whoever is asking may do something for which there is no store yet. Raises `AccessDenied`."""
        from eventlog.privacy.principals import Operation, granted

        principal = self.principal
        if principal is not None:
            granted(Operation(operation), principal)

    def of_tenant(self, tenant: str | None) -> Session:
        """The same session for a tenant that a command has asked for in its own way."""
        return self if tenant is None else Session(given=Given(tenant=tenant).over(self._given))

    @property
    def actor(self) -> str | None:
        """Who acts, where somebody has said so; whoever is asking as a principal is that."""
        principal = self.principal
        return (self._given.actor or self.settings.actor) if principal is None else principal.subject

    @property
    def timeout(self) -> float:
        return self.settings.timeout if self._given.timeout is None else self._given.timeout

    @property
    def keys(self) -> KeyProvider | None:
        """The keys that the settings name instead of those that the store remembers."""
        if self.settings.keys is None:
            return None
        from eventlog.privacy.providers import provider_of

        return provider_of(self.settings.keys)

    @contextmanager
    def store(self, *, without_keys: bool = False, keys_if_there: bool = False, looks_on: bool = False) -> Iterator[CheckpointStore]:
        """The store, open for the length of the block.

        Arguments:
            without_keys: payloads of an encrypted one stay sealed.
            keys_if_there: they stay sealed when the keys are gone, instead of an error.
            looks_on: leave the projection to others; see `open_store`.
        """
        from eventlog.privacy.providers import NoKeys

        keys = NoKeys() if without_keys else self.keys
        with ExitStack() as parts:
            if keys is not None:
                parts.callback(keys.close)
            try:
                store = parts.enter_context(self._open(keys, looks_on=looks_on))
            except KeysUnavailable:
                if not keys_if_there:
                    raise
                store = parts.enter_context(self._open(NoKeys(), looks_on=looks_on))
            yield store

    def _open(self, keys: KeyProvider | None, *, looks_on: bool) -> CheckpointStore:
        from eventlog.opening import open_store

        return open_store(
            self.address,
            tenant=self.tenant,
            actor=self.actor,
            timeout=self.timeout,
            keys=keys,
            principal=self.principal,
            reason=self.settings.reason,
            access=self.settings.access,
            looks_on=looks_on,
        )

    @contextmanager
    def progress(self, what: str, *, total: float | None = None, is_bytes: bool = False) -> Iterator[Callable[[float, str], None]]:
        """A progress bar on stderr where that is a terminal, nothing elsewhere. Call it with how far it is and a remark."""
        if not sys.stderr.isatty():
            yield lambda _reached, _remark: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        size: Any = DownloadColumn() if is_bytes else MofNCompleteColumn()
        columns = (TextColumn("{task.description}"), BarColumn(), size, TimeElapsedColumn(), TextColumn("{task.fields[remark]}"))
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(what, total=total, remark="")
            yield lambda reached, remark: progress.update(task, completed=reached, remark=remark)
