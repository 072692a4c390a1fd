"""`topic` and `broker`: Kafka's side, the topic with its settings and a broker on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eventlog.cli.command import WITHOUT_STORE, StoreArgument, command
from eventlog.cli.failures import FINDINGS
from eventlog.cli.output import OutputFormat
from eventlog.cli.session import Session
from eventlog.errors import InvalidRequest
from eventlog.kafka.rights import KafkaRole

if TYPE_CHECKING:
    from eventlog.address import KafkaAddress
    from eventlog.kafka.local import BrokerStatus

_ON_KAFKA = ("store", "acting_as", "role", "format")
_EXAMPLE = "kafka://localhost:9092/orders"
_DIRECTORY = typer.Option("--dir", help="Where the broker keeps its settings, data and logs.")
_BROKER = Path(".broker")


def register(app: typer.Typer) -> None:
    """Adds this file's command groups."""
    topic = typer.Typer(no_args_is_help=True, help="Make or check a store's topic.", rich_markup_mode="rich")
    broker = typer.Typer(no_args_is_help=True, help="A Kafka broker on this machine, without Docker.", rich_markup_mode="rich")
    command(topic, "create", examples=(f"topic create {_EXAMPLE} --partitions 8",), common=_ON_KAFKA)(create)
    command(topic, "check", examples=(f"topic check {_EXAMPLE}",), common=_ON_KAFKA)(check)
    command(
        topic,
        "acls",
        examples=(f"topic acls {_EXAMPLE}", f"topic acls {_EXAMPLE} --of writer --principal User:orders --encrypted --commands"),
        common=("store", "format"),  # asks nobody
    )(acls)
    command(broker, "up", examples=("broker up", "broker up --dir /tmp/broker --port 29092"), common=WITHOUT_STORE)(up)
    command(broker, "down", examples=("broker down",), common=WITHOUT_STORE)(down)
    command(broker, "status", examples=("broker status --format json",), common=WITHOUT_STORE)(status)
    app.add_typer(topic, name="topic", rich_help_panel="Kafka")
    app.add_typer(broker, name="broker", rich_help_panel="Kafka")


def create(
    session: Session,
    address: StoreArgument = None,
    partitions: Annotated[int, typer.Option(help="Never changed afterwards.", min=1)] = 4,
    replication: Annotated[
        int | None, typer.Option(help="Copies; else 3 where there are three brokers, otherwise 1.", min=1, show_default=False)
    ] = None,
) -> None:
    """Make a topic with the settings that the store insists on."""
    from eventlog.kafka.keys_topic import create_topics

    session.require("create")
    where = _address(session.at(address))
    create_topics(where, partitions=partitions, replication=replication, encryption=None)
    if session.output.format is OutputFormat.TABLE:
        session.output.text(f"Made the topic {where} with {partitions} partitions.")
    else:
        session.output.record({"topic": where.topic, "servers": ",".join(where.servers), "partitions": partitions})


def check(session: Session, address: StoreArgument = None) -> None:
    """Hold a topic against the settings that the store insists on; every difference is listed, with exit code 1."""
    from eventlog.kafka.keys_topic import check_topics

    session.require("doctor")
    where = _address(session.at(address))
    differences = check_topics(where)
    if session.output.format is OutputFormat.TABLE:
        for difference in differences:
            session.output.text(difference)
        session.output.note(f"{where}: {f'{len(differences)} differences' if differences else 'as it must be'}")
    else:
        session.output.rows(("difference",), [(each,) for each in differences])
    if differences:
        raise typer.Exit(FINDINGS)


def acls(
    session: Session,
    address: StoreArgument = None,
    kafka_role: Annotated[
        list[KafkaRole] | None, typer.Option("--of", help="Of this role; may be given several times. Else of all.")
    ] = None,
    encrypted: Annotated[bool, typer.Option("--encrypted", help="For an encrypted store.")] = False,
    recorded: Annotated[bool, typer.Option("--recorded", help="For a store that records accesses.")] = False,
    principal: Annotated[str, typer.Option(help="Who gets them, in the commands.")] = "User:...",
    commands: Annotated[bool, typer.Option("--commands", help="As command lines of kafka-acls.sh.")] = False,
) -> None:
    """List the rights on Kafka that each role needs, and no more. Asks no broker."""
    from eventlog.kafka.rights import Right, granting, needed

    where = _address(session.at(address))
    servers = ",".join(where.servers)
    rows = [
        (each.value, Right(need.resource, where.topic + need.suffix, need.operation, need.prefixed), need.why)
        for each in kafka_role or list(KafkaRole)
        for need in needed(each, encrypted=encrypted, recorded=recorded)
    ]
    if commands and session.output.format is OutputFormat.TABLE:
        for line in dict.fromkeys(granting(right, principal=principal, servers=servers) for _, right, _ in rows):
            session.output.text(line)
        return
    session.output.rows(
        ("role", "resource", "name", "operation", "why"),
        [(who, right.resource, right.name + ("*" if right.prefixed else ""), right.operation, why) for who, right, why in rows],
    )


def up(
    session: Session,
    directory: Annotated[Path, _DIRECTORY] = _BROKER,
    port: Annotated[int, typer.Option(help="0 takes a free one, which the directory keeps.", min=0, max=65_535)] = 0,
) -> None:
    """Start a broker in a directory, unless it runs, and return when it answers. Needs Java 17, and Maven the first time."""
    from eventlog.kafka.local import LocalBroker

    _show(session, LocalBroker(directory=directory, port=port).up())


def down(session: Session, directory: Annotated[Path, _DIRECTORY] = _BROKER) -> None:
    """Stop the broker of a directory; its data stays."""
    from eventlog.kafka.local import LocalBroker

    broker = LocalBroker(directory=directory)
    broker.down()
    _show(session, broker.status())


def status(session: Session, directory: Annotated[Path, _DIRECTORY] = _BROKER) -> None:
    """Say whether the broker of a directory runs, and how to reach it."""
    from eventlog.kafka.local import LocalBroker

    _show(session, LocalBroker(directory=directory).status())


def _show(session: Session, state: BrokerStatus) -> None:
    session.output.record(
        {
            "running": state.running,
            "bootstrap": state.bootstrap,
            "pid": state.pid,
            "version": state.version,
            "data": str(state.data),
            "since": state.since,
        }
    )
    if state.running and session.output.format is OutputFormat.TABLE:
        session.output.text(f"Next: eventlog init --store kafka://{state.bootstrap}/orders")


def _address(session: Session) -> KafkaAddress:
    from eventlog.address import KafkaAddress, parse_address

    where = parse_address(session.address)
    if not isinstance(where, KafkaAddress):
        raise InvalidRequest("--store", f"{where} is not on Kafka", hint="An address looks like kafka://host:port/topic.")
    return where
