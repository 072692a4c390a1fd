"""Settings: an option goes before the environment, the environment before the file; what is unknown is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog import ConfigurationError
from eventlog.settings import Settings, load_settings
from tests.cli.command_line import eventlog, new_store, put


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("CONFIG", *Settings.model_fields):
        monkeypatch.delenv(f"EVENTLOG_{name.upper()}", raising=False)
    return tmp_path


def test_without_anything_there_are_defaults(folder: Path) -> None:
    assert load_settings() == Settings(store=None, tenant=None, actor=None, timeout=30.0, format="table")
    assert not list(folder.iterdir())


def test_the_environment_goes_before_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "eventlog.toml").write_text('store = "./orders"\nactor = "file"\ntimeout = 5\n')
    monkeypatch.setenv("EVENTLOG_ACTOR", "environment")
    monkeypatch.setenv("EVENTLOG_TENANT", "")
    settings = load_settings()
    assert (settings.store, settings.actor, settings.timeout, settings.tenant) == ("./orders", "environment", 5.0, None)


def test_an_option_goes_before_the_environment(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    put(store, {}, "--kind", "acme.order")
    wrong = {"EVENTLOG_STORE": "/no/such/store", "EVENTLOG_FORMAT": "csv"}
    assert eventlog("list", "--store", store, "--format", "json", env=wrong).json()["checkpoints"]
    assert eventlog("--store", str(store), "--format", "json", "list", env=wrong).json()["checkpoints"]


def test_eventlog_config_names_another_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "other.toml").write_text('tenant = "north"\n')
    monkeypatch.setenv("EVENTLOG_CONFIG", "other.toml")
    assert load_settings().tenant == "north"
    monkeypatch.setenv("EVENTLOG_CONFIG", "missing.toml")
    with pytest.raises(ConfigurationError, match=r"missing\.toml"):
        load_settings()


@pytest.mark.parametrize(
    ("text", "named"),
    [('colour = "blue"', "colour"), ("timeout = -1", "timeout"), ('format = "xml"', "format"), ("store = ", r"eventlog\.toml")],
)
def test_what_is_unknown_or_wrong_in_the_file_is_named(folder: Path, text: str, named: str) -> None:
    (folder / "eventlog.toml").write_text(text)
    with pytest.raises(ConfigurationError, match=named):
        load_settings()


def test_a_wrong_variable_is_named_and_ends_with_15(tmp_path: Path) -> None:
    run = eventlog("list", "--store", tmp_path, env={"EVENTLOG_TIMEOUT": "soon"})
    assert run.code == 15
    assert "EVENTLOG_TIMEOUT" in run.err
    assert "Traceback" not in run.err
