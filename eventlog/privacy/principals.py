"""Who is asking, and what they may do. Pure: one table, which the documentation is made of and every cell of which is tested."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, StrEnum

from eventlog.checkpoint import MAX_TENANT, check_name, check_text
from eventlog.errors import AccessDenied, InvalidRequest

MAX_SUBJECT = 200  # as long as an actor, which the subject becomes


class Role(StrEnum):
    """What somebody is trusted with. One principal may have several."""

    READER = "reader"  # reads
    WRITER = "writer"  # reads and writes: whoever builds a revision has loaded the one before
    AUDITOR = "auditor"  # metadata, reports and the access trail; no payloads
    OPERATOR = "operator"  # the care of the store: no payloads, and no access trail
    ADMIN = "admin"  # everything


class Grant(Enum):
    """What a role gives of an operation; the larger one counts where roles differ."""

    NONE = 0
    METADATA = 1  # with the payload withheld
    FULL = 2


class Operation(StrEnum):
    """Everything that can be done with a store. The values stand in the access log for good."""

    LOAD = "load"
    LOAD_REVISION = "load_revision"
    HISTORY = "history"
    LIST = "list"
    SUBSCRIBE = "subscribe"
    POSITION = "position"
    COMPARE_AND_SWAP = "compare_and_swap"
    IMPORT = "import"
    MIGRATE = "migrate"
    MIGRATE_PLAN = "migrate_plan"
    DELETE = "delete"
    RESOLVE = "resolve"
    RUNS_LIST = "runs_list"
    RUNS_SHOW = "runs_show"
    RUNS_DECIDE = "runs_decide"
    EFFECTS_SETTLE = "effects_settle"
    REPORT = "report"
    REPORT_ACCESS = "report_access"
    SQL = "sql"
    VERIFY = "verify"
    DOCTOR = "doctor"
    REBUILD = "rebuild"
    ARCHIVE_RUN = "archive_run"
    ARCHIVE_LIST = "archive_list"
    ARCHIVE_VERIFY = "archive_verify"
    ANCHOR = "anchor"
    COMPACT = "compact"
    BACKUP = "backup"
    BACKUP_DRILL = "backup_drill"
    RESTORE = "restore"
    RETENTION_PLAN = "retention_plan"
    RETENTION_APPLY = "retention_apply"
    RETENTION_LOG = "retention_log"
    HOLD_PLACE = "hold_place"
    HOLD_RELEASE = "hold_release"
    HOLD_LIST = "hold_list"
    ERASE = "erase"
    ERASE_PLAN = "erase_plan"
    ERASE_FINISH = "erase_finish"
    ERASE_STATUS = "erase_status"
    INTERNALS = "internals"
    KEYS = "keys"
    KEYS_STATUS = "keys_status"
    KEYS_ROTATE = "keys_rotate"
    ACT_FOR = "act_for"
    ACCESS_PRUNE = "access_prune"
    CREATE = "create"


MEANINGS: dict[Operation, str] = {
    Operation.LOAD: "load a checkpoint",
    Operation.LOAD_REVISION: "load a revision with how it came into the log",
    Operation.HISTORY: "every revision of a checkpoint",
    Operation.LIST: "list checkpoints, without payloads",
    Operation.SUBSCRIBE: "revisions as they are committed",
    Operation.POSITION: "where the log ends, or stood at a time",
    Operation.COMPARE_AND_SWAP: "commit revisions",
    Operation.IMPORT: "start a checkpoint at another store's revision",
    Operation.MIGRATE: "commit a revision of another kind or version, or undo that",
    Operation.MIGRATE_PLAN: "what a migration, or its undo, would do",
    Operation.DELETE: "end a checkpoint",
    Operation.RESOLVE: "what became of an event",
    Operation.RUNS_LIST: "runs that are in flight or wait",
    Operation.RUNS_SHOW: "what is on record of a run",
    Operation.RUNS_DECIDE: "decide about a run that was left in flight",
    Operation.EFFECTS_SETTLE: "say how an effect has ended",
    Operation.REPORT: "reports, all but the access trail",
    Operation.REPORT_ACCESS: "the access trail",
    Operation.SQL: "SQL over everything",
    Operation.VERIFY: "check the log, the projection, the archive and the access log",
    Operation.DOCTOR: "look the store over",
    Operation.REBUILD: "make the projection anew",
    Operation.ARCHIVE_RUN: "archive what was committed",
    Operation.ARCHIVE_LIST: "the segments of an archive",
    Operation.ARCHIVE_VERIFY: "check an archive by itself",
    Operation.ANCHOR: "the heads of the log's Merkle trees",
    Operation.COMPACT: "move bodies out of the log that are archived",
    Operation.BACKUP: "copy the store into a backup",
    Operation.BACKUP_DRILL: "restore a backup aside and hold it against the store",
    Operation.RESTORE: "make a store of a backup",
    Operation.RETENTION_PLAN: "what a retention policy would delete",
    Operation.RETENTION_APPLY: "delete what a retention plan names",
    Operation.RETENTION_LOG: "what was deleted by retention, and how the store stands to a policy",
    Operation.HOLD_PLACE: "place a legal hold",
    Operation.HOLD_RELEASE: "release a legal hold",
    Operation.HOLD_LIST: "the legal holds",
    Operation.ERASE: "erase payloads for good, or again what a register names",
    Operation.ERASE_PLAN: "what an erasure would take",
    Operation.ERASE_FINISH: "look whether a topic has let go of what was erased",
    Operation.ERASE_STATUS: "what was erased, and what is left to do",
    Operation.INTERNALS: "the log and the projection themselves",
    Operation.KEYS: "the data keys themselves",
    Operation.KEYS_STATUS: "where the keys are, and which versions wrap how many",
    Operation.KEYS_ROTATE: "wrap all data keys by new versions of the tenants' keys",
    Operation.ACT_FOR: "use the store for another principal",
    Operation.ACCESS_PRUNE: "remove old records from the access log",
    Operation.CREATE: "make a store or a topic",
}

_R, _W, _A, _O = Role.READER, Role.WRITER, Role.AUDITOR, Role.OPERATOR
_METADATA = {_A: Grant.METADATA, _O: Grant.METADATA}


def _full(*roles: Role) -> dict[Role, Grant]:
    return dict.fromkeys(roles, Grant.FULL)


# An admin may do everything, so only the others stand here. Who is not named may not.
_GRANTS: dict[Operation, dict[Role, Grant]] = {
    Operation.LOAD: _full(_R, _W),
    Operation.LOAD_REVISION: {**_full(_R, _W), **_METADATA},
    Operation.HISTORY: {**_full(_R, _W), **_METADATA},
    Operation.LIST: _full(_R, _W, _A, _O),
    Operation.SUBSCRIBE: {**_full(_R, _W), **_METADATA},
    Operation.POSITION: _full(_R, _W, _A, _O),
    Operation.COMPARE_AND_SWAP: _full(_W),
    Operation.IMPORT: _full(_W),
    Operation.MIGRATE: _full(_W),
    Operation.MIGRATE_PLAN: _full(_R, _W),
    Operation.DELETE: _full(_W),
    Operation.RESOLVE: _full(_W),
    Operation.RUNS_LIST: {**_full(_R, _W), **_METADATA},
    Operation.RUNS_SHOW: _full(_R, _W),
    Operation.RUNS_DECIDE: _full(_W),
    Operation.EFFECTS_SETTLE: _full(_W),
    Operation.REPORT: _full(_R, _W, _A, _O),
    Operation.REPORT_ACCESS: _full(_A),
    Operation.SQL: {},  # it sees payloads and the access trail
    Operation.VERIFY: _full(_A, _O),
    Operation.DOCTOR: _full(_A, _O),
    Operation.REBUILD: _full(_O),
    Operation.ARCHIVE_RUN: _full(_O),
    Operation.ARCHIVE_LIST: _full(_O),
    Operation.ARCHIVE_VERIFY: _full(_A, _O),
    Operation.ANCHOR: _full(_O),
    Operation.COMPACT: _full(_O),
    Operation.BACKUP: _full(_O),
    Operation.BACKUP_DRILL: _full(_O),
    Operation.RESTORE: _full(_O),
    Operation.RETENTION_PLAN: _full(_A, _O),
    Operation.RETENTION_APPLY: _full(_O),
    Operation.RETENTION_LOG: _full(_A, _O),
    Operation.HOLD_PLACE: _full(_O),
    Operation.HOLD_RELEASE: _full(_O),
    Operation.HOLD_LIST: _full(_A, _O),
    Operation.ERASE: _full(_O),
    Operation.ERASE_PLAN: _full(_O),
    Operation.ERASE_FINISH: _full(_O),
    Operation.ERASE_STATUS: _full(_A, _O),
    Operation.INTERNALS: _full(_O),
    Operation.KEYS: {},  # they open every payload
    Operation.KEYS_STATUS: _full(_A, _O),
    Operation.KEYS_ROTATE: _full(_O),
    Operation.ACT_FOR: {},
    Operation.ACCESS_PRUNE: _full(_O),
    Operation.CREATE: {},
}

# They concern all tenants at once, so a principal of one tenant may do none of them.
WHOLE_STORE = frozenset(
    {
        Operation.SQL,
        Operation.VERIFY,
        Operation.DOCTOR,
        Operation.REBUILD,
        Operation.ARCHIVE_RUN,
        Operation.ARCHIVE_LIST,
        Operation.ARCHIVE_VERIFY,
        Operation.ANCHOR,
        Operation.COMPACT,
        Operation.BACKUP,
        Operation.BACKUP_DRILL,
        Operation.RESTORE,
        Operation.ERASE,
        Operation.ERASE_PLAN,
        Operation.ERASE_FINISH,
        Operation.ERASE_STATUS,
        Operation.INTERNALS,
        Operation.KEYS,
        Operation.KEYS_STATUS,
        Operation.KEYS_ROTATE,
        Operation.ACCESS_PRUNE,
        Operation.CREATE,
    }
)


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is asking.

    Arguments:
        subject: a name, 1 to 200 characters; the actor of what is written.
        tenant: the only one that exists for them; None: all.
        roles: at least one, as `Role` or by name.

    Raises `InvalidRequest`.
    """

    subject: str
    tenant: str | None
    roles: frozenset[Role]

    def __init__(self, subject: str, tenant: str | None = None, roles: Iterable[Role | str] = ()) -> None:
        check_text("subject", subject, MAX_SUBJECT)
        if tenant is not None:
            check_name("tenant", tenant, MAX_TENANT)
        object.__setattr__(self, "subject", subject)
        object.__setattr__(self, "tenant", tenant)
        object.__setattr__(self, "roles", frozenset(map(_role, [roles] if isinstance(roles, str) else roles)))
        if not self.roles:
            raise InvalidRequest("roles", "is empty", hint=f"Give one or more of {', '.join(Role)}.")

    def within(self, tenant: str | None) -> Principal:
        """The same, limited to a tenant if one is given. Raises `InvalidRequest` for whoever is of another one."""
        if tenant is None or tenant == self.tenant:
            return self
        if self.tenant is not None:
            raise InvalidRequest("tenant", f"is {self.tenant} where the store is opened for {tenant}")
        return Principal(self.subject, tenant, self.roles)


def _role(given: Role | str) -> Role:
    try:
        return Role(given)
    except ValueError as error:
        raise InvalidRequest("roles", f"{given!r:.60} is no role", hint=f"Give one or more of {', '.join(Role)}.") from error


def grant(operation: Operation, roles: Iterable[Role]) -> Grant:
    """What some roles give of an operation, together."""
    cells = _GRANTS[operation]
    return max((Grant.FULL if role is Role.ADMIN else cells.get(role, Grant.NONE) for role in roles), key=lambda each: each.value)


def granted(operation: Operation, principal: Principal) -> Grant:
    """What a principal may have of an operation. Raises `AccessDenied`."""
    found = grant(operation, principal.roles)
    if found is Grant.NONE:
        able = [role.value for role in Role if grant(operation, [role]) is not Grant.NONE]
        raise AccessDenied(principal.subject, operation=operation.value, missing=able)
    if operation in WHOLE_STORE and principal.tenant is not None:
        raise AccessDenied(principal.subject, operation=operation.value, missing=[], whole_store=True)
    return found
