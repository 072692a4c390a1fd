"""`report` and `sql`: questions to the projection. One command a report, made from the report's own file."""

from __future__ import annotations

import inspect
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from eventlog.cli import parsing, retention
from eventlog.cli.command import command, examples_text, with_session
from eventlog.cli.session import Session
from eventlog.errors import InvalidRequest

if TYPE_CHECKING:
    from projections.reports import Report

PANEL = "Reports"
VIEWS = "Views: checkpoint_heads, checkpoint_history, checkpoint_gaps, quarantined_records, access_trail, log_positions."
_TYPES: dict[str, type] = {"uuid": str, "text": str, "integer": int, "time": str}
_TIME = ", milliseconds since 1970 UTC"  # what the file says of a time; here it is typed as people write times
_COMMON = ("store", "acting_as", "role", "timeout", "format")  # not tenant and actor: reports have parameters of these names


class ReportGroup(TyperGroup):
    """The commands of `report`, found in `projections/reports/` when they are asked for."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        from projections.reports import REPORTS

        return list(REPORTS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        from projections.reports import REPORTS

        report = REPORTS.get(cmd_name)
        return None if report is None else _command(report)


def register(app: typer.Typer) -> None:
    """Adds this file's commands."""
    group = typer.Typer(
        cls=ReportGroup, no_args_is_help=True, help="Answer a standing question: audit, retention, ...", rich_markup_mode="rich"
    )
    app.add_typer(group, name="report", rich_help_panel=PANEL)
    command(
        app,
        "sql",
        examples=(
            "sql 'SELECT kind, count(*) FROM checkpoint_heads GROUP BY kind'",
            "sql 'DESCRIBE checkpoint_history'",
            "sql - < question.sql",
        ),
        panel=PANEL,
        epilog=VIEWS,
    )(sql)


def sql(
    session: Session,
    statement: Annotated[str, typer.Argument(help="One SELECT in DuckDB's SQL, or - for standard input.", show_default=False)],
) -> None:
    """Answer a SELECT over the documented views.

    It sees all tenants: for people who may read everything.
    """
    if session.tenant is not None and session.principal is None:
        raise InvalidRequest(
            "--tenant", f"is {session.tenant}, but SQL sees all tenants", hint="Add a WHERE clause, and unset EVENTLOG_TENANT."
        )
    text = sys.stdin.read() if statement == "-" else statement
    with session.store() as store:
        try:
            table = store.catalog.sql(text)
        except InvalidRequest as error:
            error.hint = f"One SELECT in DuckDB's SQL. {VIEWS}"
            raise
    session.output.rows(table.columns, table.rows)


def _command(report: Report) -> Any:
    """A report as a command: its parameters are the options."""

    def run(session: Session, **values: Any) -> None:
        policy = values.pop(retention.POLICY, None)
        if policy is not None:
            retention.report(session, policy, values)
        else:
            _run(session, report, values)

    session = inspect.Parameter("session", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Session)
    options = [session, *retention.REPORT_OPTIONS] if report.name == retention.REPORT else [session]
    for name, parameter in report.parameters.items():
        purpose = parameter.purpose.replace(_TIME, "")
        if parameter.type == "time":
            purpose += "; a time, or an age (30d, 12h)"
        flag = typer.Option(f"--{name.replace('_', '-')}", help=f"{purpose[:1].upper()}{purpose[1:]}.", show_default=False)
        options.append(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[_TYPES[parameter.type] | None, flag])
        )
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__doc__, run.__name__ = report.answers, report.name
    single = typer.Typer(rich_markup_mode="rich", add_completion=False)
    single.command(report.name, epilog=examples_text(_examples(report)))(with_session(run, _COMMON))
    return typer.main.get_command(single)


def _examples(report: Report) -> tuple[str, ...]:
    examples = [f"report {report.name}"]
    if "kind" in report.parameters:
        examples.append(f"report {report.name} --kind acme.order")
    if report.name == retention.REPORT:
        examples.append("report retention --policy retention.toml")
    since = next((name for name, parameter in report.parameters.items() if parameter.type == "time"), None)
    if since is not None:
        examples.append(f"report {report.name} --{since.replace('_', '-')} 30d --format csv")
    return tuple(examples)


def _run(session: Session, report: Report, values: dict[str, Any]) -> None:
    for name, parameter in report.parameters.items():
        if parameter.type == "time" and values[name] is not None:
            values[name] = _millis(parsing.moment(f"--{name.replace('_', '-')}", values[name]))
        if parameter.type == "uuid" and values[name] is not None:
            from eventlog.ids import CheckpointId

            values[name] = str(CheckpointId(values[name]))
    limited_to = session.tenant
    if limited_to is not None:
        if "tenant" not in report.parameters:
            raise InvalidRequest("tenant", f"report {report.name} sees all tenants", hint="Unset EVENTLOG_TENANT to run it.")
        values["tenant"] = values["tenant"] or limited_to
    elif session.principal is not None:
        session = session.of_tenant(values.get("tenant"))  # whoever asks for one tenant is asking as one of that tenant
    with session.store() as store:
        table = store.catalog.report(report.name, values)
    if table.rows:
        session.output.rows(table.columns, table.rows, shown={"event_hash": lambda value: str(value)[:12]})
    else:
        session.output.rows(table.columns, [])
        session.output.note("no rows")


def _millis(moment: datetime) -> int:
    from eventlog.checkpoint import to_millis

    return to_millis(moment)
