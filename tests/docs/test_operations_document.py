"""What documents tell people to type exists, and the run book is complete: every check, every notice, every link."""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from eventlog.cli import app
from eventlog.diagnostics import FIELDS, Notice
from tests.docs.test_documents import REPOSITORY

PAGE = (REPOSITORY / "docs" / "operations.md").read_text(encoding="utf-8")
DOCUMENTS = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
ROOT: Any = typer.main.get_command(app)


def typed(text: str) -> Iterator[str]:
    """Command lines in code: those of blocks behind a prompt, and whole spans."""
    yield from re.findall(r"^\$ (?:\w+=\S+ )*(eventlog .*)$", text, re.MULTILINE)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    yield from re.findall(r"`(eventlog [^`\n]*)`", prose)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_that_a_document_names_exists_with_its_options(document: Path) -> None:
    for line in typed(document.read_text(encoding="utf-8")):
        words = _words(line)
        command, path = ROOT, ["eventlog"]
        context = command.make_context("eventlog", [], resilient_parsing=True)
        while hasattr(command, "list_commands") and words:
            if words[0].startswith("-"):
                option = words.pop(0)
                assert option in _options(command), f"{line}: {option}"
                if "=" not in option and not _is_flag(command, option) and words:
                    words.pop(0)
                continue
            name = words.pop(0)
            if re.fullmatch(r"(\w[\w-]*\|)+\w[\w-]*", name):  # `keys status|rotate`
                assert set(name.split("|")) <= set(command.list_commands(context)), line
                break
            command = command.get_command(context, name)
            assert command is not None, f"{line}: there is no {name} in {' '.join(path)}"
            path.append(name)
        for word in words:
            if word.startswith("--") and len(word) > 2:
                assert word.split("=")[0] in _options(command), f"{line}: {word}"


def _words(line: str) -> list[str]:
    text = re.split(r" (?:\||>|<|#|&&) ?", line.removesuffix("..."))[0]
    try:
        return shlex.split(text)[1:]
    except ValueError:  # a quote that goes on in the next line
        return text.split("'")[0].split()[1:]


def _options(command: Any) -> set[str]:
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help", "-h"}


def _is_flag(command: Any, option: str) -> bool:
    return any(option in parameter.opts and getattr(parameter, "is_flag", False) for parameter in command.params)


def test_a_command_that_does_not_exist_would_be_found() -> None:
    assert list(typed("text `eventlog doctor` and\n```console\n$ A=1 eventlog list --kind x\n```\n")) == [
        "eventlog list --kind x",
        "eventlog doctor",
    ]


@pytest.mark.parametrize("line", [line for line in typed(PAGE) if "recovery list" in line])
def test_the_pages_lists_can_be_typed_as_they_stand(line: str, tmp_path: Path) -> None:
    from tests.cli.command_line import inside, new_store

    assert inside(*_words(line), "--store", new_store(tmp_path)).code == 0


def test_its_questions_are_answered(tmp_path: Path) -> None:
    from tests.cli.command_line import inside, new_store

    store = new_store(tmp_path)
    questions = [_words(line) for line in typed(PAGE) if line.startswith("eventlog sql ")]
    assert len(questions) >= 3
    for words in questions:
        run = inside(*[word.replace("EVENT", "0197a0b0-0000-7000-8000-000000000001") for word in words], "--store", store)
        assert run.code == 0, run


def test_every_notice_is_on_the_page_with_its_level_and_fields() -> None:
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| ((?:info|warning|error)[\w, ]*) \|", PAGE, re.MULTILINE)
    told = {}
    for names, levels in rows:
        given = levels.split(", ")
        for index, name in enumerate(re.findall(r"\w+", names)):
            told[name] = given[min(index, len(given) - 1)]
    assert told == {each.value.event: logging.getLevelName(each.value.level).lower() for each in Notice}
    assert {name for name in ("event", *FIELDS) if f"`{name}`" not in PAGE} == set()


def test_every_check_of_doctor_is_on_the_page() -> None:
    code = "".join(
        path.read_text(encoding="utf-8")
        for path in (
            REPOSITORY / "eventlog" / "doctor.py",
            *(REPOSITORY / "eventlog" / "diagnosis").glob("*.py"),
            REPOSITORY / "eventlog" / "kafka" / "examination.py",
        )
    )
    names = set(re.findall(r'(?:Check|_made|_failed|_disk)\(\s*"([^"]+)"', code)) | set(
        re.findall(r'^\s+"([\w ]+)": (?:_|lambda|kept)', code, re.MULTILINE)
    )
    assert len(names) > 15
    table = PAGE[PAGE.index("| check |") : PAGE.index("## Metrics")]
    assert {name for name in names if f"`{name}`" not in table} == set()


def test_every_link_of_the_page_leads_somewhere() -> None:
    sections = {re.sub(r"[^\w-]", "", title.strip().lower().replace(" ", "-")) for title in re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE)}
    for page, section in re.findall(r"\]\(([\w./]*)#?([\w-]*)\)", PAGE):
        assert not page or (REPOSITORY / "docs" / page).is_file(), page
        assert page or section in sections, section
