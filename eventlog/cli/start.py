"""`demo` and `init`: where one starts."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eventlog.cli.command import StoreArgument, command, examples_text
from eventlog.cli.output import OutputFormat
from eventlog.cli.session import Session
from eventlog.errors import InvalidRequest

if TYPE_CHECKING:
    from eventlog.privacy.providers import KeyProvider

PANEL = "Start"
DEMO_STORE = Path("demo-store")


def register(app: typer.Typer) -> None:
    """Adds this file's commands."""
    app.command("demo", epilog=examples_text(("demo", "demo /tmp/try-it")), rich_help_panel=PANEL)(demo)
    command(
        app,
        "init",
        examples=(
            "init ./orders",
            "init ./orders --encrypt --key-file ~/keys/orders.json",
            "init kafka://localhost:9092/orders --partitions 8",
        ),
        panel=PANEL,
    )(init)


def demo(
    directory: Annotated[Path, typer.Argument(metavar="[DIR]", help="Where the demo's store is made, or used again.")] = DEMO_STORE,
) -> None:
    """Show what the store does, in a minute.

    An agent commits its turns, two writers race for one revision, a process is killed in the middle of a turn, and new processes
    find what was committed, what is in flight, the history and its proof.
    """
    from eventlog.demo.narration import run_demo

    run_demo(directory)


def init(
    session: Session,
    address: StoreArgument = None,
    partitions: Annotated[int, typer.Option(help="Of a topic; never changed afterwards.", min=1)] = 4,
    replication: Annotated[
        int | None, typer.Option(help="Copies of a topic; else 3 where there are three brokers, otherwise 1.", min=1, show_default=False)
    ] = None,
    encrypt: Annotated[bool, typer.Option("--encrypt", help="Seal every payload, for ever; with one of the four below.")] = False,
    key_file: Annotated[
        Path | None, typer.Option("--key-file", metavar="FILE", help="The keys' file, made when missing.", show_default=False)
    ] = None,
    passphrase_env: Annotated[
        str | None,
        typer.Option("--passphrase-env", metavar="NAME", help="The variable with the key file's passphrase.", show_default=False),
    ] = None,
    key_env: Annotated[
        str | None, typer.Option("--key-env", metavar="NAME", help="The variable that holds the key.", show_default=False)
    ] = None,
    pkcs11: Annotated[
        str | None, typer.Option("--pkcs11", metavar="URI", help="A token: pkcs11:token=LABEL?module-path=FILE.", show_default=False)
    ] = None,
) -> None:
    """Make a new, empty store.

    That is a directory, or a topic with the settings that the store insists on. With --encrypt it remembers where its keys are, never what
    they are; whoever loses them loses every payload.
    """
    from eventlog.address import DirectoryAddress, parse_address
    from eventlog.opening import create_store

    where = parse_address(session.at(address).address)
    keys = _encryption(encrypt, key_file, passphrase_env, key_env, pkcs11)
    try:
        create_store(where, partitions=partitions, replication=replication, encryption=keys)
    finally:
        if keys is not None:
            keys.close()
    embedded = isinstance(where, DirectoryAddress)
    output = session.output
    if output.format is not OutputFormat.TABLE:
        fields = {"store": str(where), "log": "embedded" if embedded else "kafka", "partitions": 1 if embedded else partitions}
        output.record({**fields, "keys": None if keys is None else keys.source})
        return
    output.text(f"Made an empty store in {where}." if embedded else f"Made the topic {where} with {partitions} partitions.")
    if keys is not None:
        output.text(f"Its payloads are sealed with keys from {keys.source}: keep a copy of those, apart from the store.")
    output.text(f"""Next: echo '{{"phase": "ready"}}' | eventlog put - --kind acme.order --store {shlex.quote(str(where))}""")


def _encryption(
    encrypt: bool, key_file: Path | None, passphrase_env: str | None, key_env: str | None, pkcs11: str | None
) -> KeyProvider | None:
    """The provider that the options name. Raises `InvalidRequest` unless they name exactly one, or nothing at all."""
    from eventlog.privacy.providers.environment import EnvironmentKey
    from eventlog.privacy.providers.key_file import KeyFile
    from eventlog.privacy.providers.provider import provider_of

    named = [name for name, value in (("--key-file", key_file), ("--key-env", key_env), ("--pkcs11", pkcs11)) if value is not None]
    if passphrase_env is not None and key_file is None:
        raise InvalidRequest("--passphrase-env", "is for a --key-file")
    if not encrypt:
        if named:
            raise InvalidRequest(named[0], "is given without --encrypt", hint="Add --encrypt: it is for ever.")
        return None
    if len(named) != 1:
        problem = f"is given with {' and '.join(named) or 'no place for the keys'}"
        raise InvalidRequest("--encrypt", problem, hint="Give one of --key-file FILE, --key-env NAME or --pkcs11 URI.")
    if key_file is not None:
        return KeyFile(path=key_file, passphrase_env=passphrase_env)
    return EnvironmentKey(name=key_env) if key_env is not None else provider_of(pkcs11 or "")
