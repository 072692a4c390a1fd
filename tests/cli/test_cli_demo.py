"""The demo shows what it says it shows, as often as one likes, and leaves other people's stores alone."""

from __future__ import annotations

import shlex
from pathlib import Path

from eventlog import open_store
from eventlog.verification import verify
from tests.cli.command_line import eventlog, new_store, put


def test_the_demo_shows_the_race_the_kill_and_what_is_left_twice_and_offers_commands_that_work(tmp_path: Path) -> None:
    for times in (1, 2):
        run = eventlog("demo", cwd=tmp_path, env={"EVENTLOG_FORMAT": "json", "EVENTLOG_TENANT": "other"})
        assert run.code == 0, run
        for words in (
            "won: committed revision 5",
            "was told: checkpoint",
            "is dead (signal 9)",
            "turn_in_flight",
            "clean: ",
            "$ eventlog report",
        ):
            assert words in run.out
        assert run.err == ""
        assert "\x1b" not in run.out
        with open_store(tmp_path / "demo-store") as store:
            assert [item.phase for item in store.list().items] == ["turn_in_flight"] * times
            assert verify(store).is_clean
    offered = [line.strip() for line in run.out.partition("Try on it:")[2].splitlines() if line.strip()]
    assert len(offered) == 4
    for line in offered:
        assert eventlog(*shlex.split(line)[1:], cwd=tmp_path).code == 0, line


def test_the_demo_refuses_a_store_that_is_not_its_own(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    put(store, {}, "--kind", "acme.order")
    run = eventlog("demo", store)
    assert run.code == 15
    assert "not the demo's" in run.err
