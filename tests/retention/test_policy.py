"""Policies: what is written wrong is refused by name, and a floor is not undercut."""

from __future__ import annotations

import pytest

from eventlog import CheckpointStore, ConfigurationError, InvalidRequest
from eventlog.retention import Policy, plan_retention

GOOD = """
grace = "2d"

[floor]
"eventlog.agent" = "183d"
"acme.*" = "1h"

[[rule]]
name = "finished"
tenant = "north"
kind = "acme.order"
phase = ["done", "cancelled"]
labels = { region = "eu" }
older_than = "30d"
keep_newest = 10
group = ["tenant", "label.customer"]
in_flight = "report"

[[rule]]
name = "rest"
older_than = "2w"
"""


def test_what_a_policy_says() -> None:
    policy = Policy.parse(GOOD.encode())
    day = 86_400_000
    assert (policy.grace, policy.floor) == (2 * day, {"eventlog.agent": 183 * day, "acme.*": 3_600_000})
    first, second = policy.rule
    assert (first.older_than, first.keep_newest, first.phase, first.group) == (
        30 * day,
        10,
        ("done", "cancelled"),
        ("tenant", "label.customer"),
    )
    assert (second.older_than, second.keep_newest) == (14 * day, None)
    assert Policy.parse(GOOD.encode()).digest == policy.digest != Policy.parse((GOOD + "\n").encode()).digest


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (('grace = "2d"', 'gracious = "2d"'), "gracious: unknown key"),
        (('tenant = "north"', 'tennant = "north"'), "rule.0.tennant: unknown key"),
        (('older_than = "2w"', ""), "rule.1: has neither older_than nor keep_newest"),
        (('older_than = "2w"', 'older_than = "0d"'), "rule.1.older_than"),
        (('older_than = "2w"', "older_than = 14"), "rule.1.older_than"),
        (('older_than = "2w"', 'older_than = "a fortnight"'), "rule.1.older_than"),
        (("keep_newest = 10", "keep_newest = 0"), "rule.0.keep_newest"),
        (("keep_newest = 10", 'keep_newest = "10"'), "rule.0.keep_newest"),
        (("keep_newest = 10", ""), "rule.0: has a group and no keep_newest"),
        (('"label.customer"', '"customer"'), "rule.0.group.1"),
        (('"label.customer"', '"label."'), "rule.0.group.1"),
        (('kind = "acme.order"', 'kind = "acme.*.order"'), "rule.0.kind"),
        (('kind = "acme.order"', 'kind = "*"'), "rule.0.kind"),
        (('tenant = "north"', 'tenant = "no such"'), "rule.0.tenant"),
        (('phase = ["done", "cancelled"]', "phase = []"), "rule.0.phase"),
        (('in_flight = "report"', 'in_flight = "delete"'), "rule.0.in_flight"),
        (('name = "rest"', 'name = "finished"'), "two rules are called 'finished'"),
        (('name = "rest"', ""), "rule.1.name"),
        (('"183d"', '"for ever"'), "floor.eventlog.agent"),
        (("[floor]", "[floor"), "is not TOML"),
        (('grace = "2d"', 'digest = "2d"'), "digest: unknown key"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_written_wrong_is_refused_by_name(change: tuple[str, str], named: str) -> None:
    assert change[0] in GOOD
    with pytest.raises(InvalidRequest) as caught:
        Policy.parse(GOOD.replace(*change).encode())
    assert named in str(caught.value)


def test_a_policy_without_rules_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="rule: "):
        Policy.parse(b"")


@pytest.mark.parametrize(
    ("kind", "limits", "undercuts"),
    [
        ("eventlog.agent", 'older_than = "182d"', True),
        ("eventlog.agent", "keep_newest = 5", True),
        ("eventlog.agent", 'older_than = "183d"\nkeep_newest = 5', False),
        ("eventlog.*", 'older_than = "1d"', False),  # about more than agents: those are kept by their floor
        ("acme.order", 'older_than = "1m"', True),
        ("acme.*", 'older_than = "1m"', True),
        ("acme.orders.*", 'older_than = "1m"', True),
        ("acme.order", 'older_than = "2h"', False),
        ("acmeorder", 'older_than = "1m"', False),
    ],
)
def test_a_rule_about_a_kind_with_a_floor_may_not_undercut_it(store: CheckpointStore, kind: str, limits: str, undercuts: bool) -> None:
    policy = Policy.parse(f'[floor]\n"eventlog.agent" = "183d"\n"acme.*" = "1h"\n[[rule]]\nname = "r"\nkind = "{kind}"\n{limits}'.encode())
    assert bool(policy.undercuts()) is undercuts
    if undercuts:
        with pytest.raises(ConfigurationError, match="'r'") as caught:
            plan_retention(store, policy)
        assert "--override-floor" in caught.value.hint
    plan = plan_retention(store, policy, override_floor="the regulator agreed")
    assert plan.floor_override is not None
    assert (plan.floor_override.actor, plan.floor_override.reason, plan.floor_override.at) == (
        "tester",
        "the regulator agreed",
        plan.made_at,
    )
