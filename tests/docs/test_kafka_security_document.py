"""docs/kafka-security.md has the rights that the code has. `EVENTLOG_UPDATE_SNAPSHOTS=1` writes them anew."""

from __future__ import annotations

import os

from eventlog.kafka.rights import IF_ENCRYPTED, IF_RECORDED, NEEDED, KafkaRole, Needed
from eventlog.kafka.security import SECURITY_SETTINGS
from tests.docs.test_documents import REPOSITORY

PAGE = REPOSITORY / "docs" / "kafka-security.md"
BEGIN, END = "from eventlog/kafka/rights.py -->\n", "<!-- end -->"


def table() -> str:
    lines = ["| role | when | on | right | why |", "|---|---|---|---|---|"]
    for role in KafkaRole:
        for when, needed in (("always", NEEDED), ("encrypted", IF_ENCRYPTED), ("accesses recorded", IF_RECORDED)):
            lines += [row(role, when, each) for each in needed[role]]
    return "\n".join(lines) + "\n"


def row(role: KafkaRole, when: str, need: Needed) -> str:
    name = f"orders{need.suffix}{'*' if need.prefixed else ''}"
    return f"| {role} | {when} | {need.resource} `{name}` | {need.operation} | {need.why} |"


def test_the_page_has_the_rights_of_the_code() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    there, after = rest.split(END)
    if os.environ.get("EVENTLOG_UPDATE_SNAPSHOTS") == "1":
        PAGE.write_text(f"{before}{BEGIN}{table()}{END}{after}", encoding="utf-8")
        return
    assert there == table()


def test_the_page_explains_every_setting_but_those_of_kerberos() -> None:
    text = PAGE.read_text(encoding="utf-8")
    explained = {name for name in SECURITY_SETTINGS if f"`{name}`" in text}
    assert SECURITY_SETTINGS - explained == {name for name in SECURITY_SETTINGS if "kerberos" in name}
