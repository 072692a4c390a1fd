"""How a command is declared: a function of a `Session` and its own options, with the common options and examples added here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from eventlog.cli.logs import LogFormat, LogLevel, begin_logging
from eventlog.cli.output import OutputFormat
from eventlog.cli.session import Given, Session

COMMON = "Store and output"

StoreOption = Annotated[
    str | None,
    typer.Option("--store", help="A directory, or kafka://host:port/topic (EVENTLOG_STORE).", rich_help_panel=COMMON, show_default=False),
]
TenantOption = Annotated[
    str | None, typer.Option("--tenant", help="Only this tenant (EVENTLOG_TENANT).", rich_help_panel=COMMON, show_default=False)
]
ActorOption = Annotated[
    str | None,
    typer.Option(
        "--actor", help="Who acts, for the audit; else the login name (EVENTLOG_ACTOR).", rich_help_panel=COMMON, show_default=False
    ),
]
AsOption = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="SUBJECT",
        help="Who is asking; else the local user, who may do everything (EVENTLOG_SUBJECT).",
        rich_help_panel=COMMON,
        show_default=False,
    ),
]
RoleOption = Annotated[
    str | None,
    typer.Option(
        "--role",
        help="As what: reader, writer, auditor, operator, admin; several with commas (EVENTLOG_ROLE).",
        rich_help_panel=COMMON,
        show_default=False,
    ),
]
TimeoutOption = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        help="Seconds to wait for the log (EVENTLOG_TIMEOUT).",
        min=0.001,
        max=86_400,
        rich_help_panel=COMMON,
        show_default=False,
    ),
]
StoreArgument = Annotated[
    str | None, typer.Argument(metavar="[STORE]", help="The store's address; else --store or EVENTLOG_STORE.", show_default=False)
]
FormatOption = Annotated[
    OutputFormat | None,
    typer.Option("--format", help="How to print data; else table (EVENTLOG_FORMAT).", rich_help_panel=COMMON, show_default=False),
]

LogFormatOption = Annotated[
    LogFormat | None,
    typer.Option(
        "--log-format",
        help="Log on stderr what an operator is to know; else nothing (EVENTLOG_LOG_FORMAT).",
        rich_help_panel=COMMON,
        show_default=False,
    ),
]
LogLevelOption = Annotated[
    LogLevel | None,
    typer.Option("--log-level", help="From which level on; else info (EVENTLOG_LOG_LEVEL).", rich_help_panel=COMMON, show_default=False),
]

_OPTIONS: dict[str, Any] = {
    "store": StoreOption,
    "tenant": TenantOption,
    "actor": ActorOption,
    "acting_as": AsOption,
    "role": RoleOption,
    "timeout": TimeoutOption,
    "format": FormatOption,
}
WITH_STORE = ("store", "tenant", "actor", "acting_as", "role", "timeout", "format")
WITHOUT_STORE = ("format",)


def command(
    app: typer.Typer,
    name: str,
    *,
    examples: tuple[str, ...],
    common: tuple[str, ...] = WITH_STORE,
    epilog: str = "",
    panel: str | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Registers a function as a command. Its first parameter gets the `Session`; its docstring is the help.

    Arguments:
        examples: command lines without the leading `eventlog`; every command has some.
        common: the common options that it takes.
        epilog: more below the examples.
        panel: the heading under which the top command lists it.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        app.command(name, epilog=examples_text(examples, epilog), rich_help_panel=panel)(with_session(function, common))
        return function

    return register


def examples_text(examples: tuple[str, ...], more: str = "") -> str:
    """The examples below a command's help."""
    lines = "\n".join(f"eventlog {example}" for example in examples)
    return f"Examples:\n\n{lines}" + (f"\n\n{more}" if more else "")


def with_session(function: Callable[..., None], common: tuple[str, ...]) -> Callable[..., None]:
    """The function as Typer calls it: with a context in the place of the session, and the common options behind its own."""
    _, *own = inspect.signature(function, eval_str=True).parameters.values()

    def run(ctx: typer.Context, **values: Any) -> None:
        given = Given(**{option: values.pop(option) for option in common})
        ctx.obj.given = given.over(ctx.obj.given)
        session = Session(given=ctx.obj.given)
        with begin_logging(session.log_format, session.log_level):
            function(session, **values)

    keyword = inspect.Parameter.KEYWORD_ONLY
    shared = [inspect.Parameter(option, keyword, default=None, annotation=_OPTIONS[option]) for option in common]
    parameters = [each.replace(kind=keyword) for each in own] + shared
    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    run.__signature__ = inspect.Signature([context, *parameters])  # type: ignore[attr-defined]
    run.__annotations__ = {"ctx": typer.Context, **{each.name: each.annotation for each in parameters}}
    run.__doc__, run.__name__ = _reflowed(function), function.__name__
    return run


def _reflowed(function: Callable[..., None]) -> str:
    """Its docstring with one line a paragraph, for a terminal to wrap where it ends."""
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
