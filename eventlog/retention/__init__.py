"""How long what is kept: policies that people write, plans that they look at before they are applied, and legal holds over both.

    policy.py       rules and floors, in TOML
    evaluation.py   what a policy makes of the checkpoints that there are. Pure
    planning.py     asks the store for them; plan.py is the plan, and its file
    applying.py     does what a plan says; applied.py keeps the record of it
    report.py       due, overdue, held, deleted

Legal holds are `eventlog.holds`, which the store itself stands on: `Holds`, `HoldTarget` here are its face. docs/retention.md is the page.
"""

from eventlog.holds.placing import Hold, Holds, HoldState, Placement, Release
from eventlog.holds.refusals import Refusal, Wanted
from eventlog.holds.targets import HeldBy, HoldTarget
from eventlog.retention.applied import Application, Skipped, Start, applications
from eventlog.retention.applying import Applied, apply_plan
from eventlog.retention.evaluation import Item, Kept
from eventlog.retention.held import require_not_held
from eventlog.retention.plan import Override, Plan, Summary, summary
from eventlog.retention.planning import plan_retention
from eventlog.retention.policy import Policy, Rule
from eventlog.retention.report import Standing, retention_report

__all__ = [
    "Application",
    "Applied",
    "HeldBy",
    "Hold",
    "HoldState",
    "HoldTarget",
    "Holds",
    "Item",
    "Kept",
    "Override",
    "Placement",
    "Plan",
    "Policy",
    "Refusal",
    "Release",
    "Rule",
    "Skipped",
    "Standing",
    "Start",
    "Summary",
    "Wanted",
    "applications",
    "apply_plan",
    "plan_retention",
    "require_not_held",
    "retention_report",
    "summary",
]
