"""How long what is kept, as a person writes it: rules and floors, in TOML. Pure but for reading the file.

    grace = "7d"                     # a report calls overdue what was due for longer

    [floor]                          # no rule deletes these any younger
    "eventlog.agent" = "183d"

    [[rule]]
    name = "finished orders"
    kind = "acme.order"              # or a prefix, "acme.*"
    phase = ["done", "cancelled"]
    older_than = "30d"               # since its latest revision, by the log's clock
    keep_newest = 10                 # of each group
    group = ["tenant", "label.customer"]

The first rule that a checkpoint fits, by tenant, kind, phase and labels, decides about it, alone. With both an age and a number it goes
when both say so. What goes is always the whole checkpoint with all its revisions.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from eventlog.checkpoint import MAX_KIND, MAX_PHASE, MAX_TENANT, check_labels, check_name, check_text
from eventlog.duration import seconds
from eventlog.errors import InvalidRequest

DEFAULT_GROUP = ("tenant", "kind")
_GROUPS = ("tenant", "kind", "phase", "run")
_LABEL = "label."


def _millis(value: object) -> int:
    found = seconds(value) if isinstance(value, str) else None
    if not found:
        raise ValueError(f"{value!r:.40} is not a duration such as 30d, 12h or 15m (s, m, h, d, w), of more than nothing")
    return found * 1000


def _in_words(check: Callable[..., None], *arguments: object) -> None:
    """The store's own checks, as pydantic wants to be told: it adds where."""
    try:
        check(*arguments)
    except InvalidRequest as error:
        raise ValueError(error.problem) from error


def _kind(pattern: str) -> str:
    _in_words(check_name, "kind", pattern.removesuffix(".*"), MAX_KIND)
    return pattern


def _tenant(value: str) -> str:
    _in_words(check_name, "tenant", value, MAX_TENANT)
    return value


def _labels(value: dict[str, str]) -> dict[str, str]:
    _in_words(check_labels, value)
    return value


def _tuple(value: object) -> object:
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


def _phase(value: str) -> str:
    _in_words(check_text, "phase", value, MAX_PHASE)
    return value


def _group(value: str) -> str:
    if value not in _GROUPS and not (value.startswith(_LABEL) and value != _LABEL):
        raise ValueError(f"{value!r:.40} is none of {', '.join(_GROUPS)} and label.NAME")
    return value


Millis = Annotated[int, BeforeValidator(_millis)]
Kind = Annotated[str, AfterValidator(_kind)]


class Rule(BaseModel):
    """One rule. `older_than` is in milliseconds here."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Annotated[str, Field(min_length=1, max_length=100)]
    tenant: Annotated[str, AfterValidator(_tenant)] | None = None
    kind: Kind | None = None
    phase: Annotated[tuple[Annotated[str, AfterValidator(_phase)], ...], BeforeValidator(_tuple), Field(min_length=1)] | None = None
    labels: Annotated[dict[str, str], AfterValidator(_labels)] = Field(default_factory=dict)
    older_than: Millis | None = None
    keep_newest: Annotated[int, Field(ge=1)] | None = None
    group: Annotated[tuple[Annotated[str, AfterValidator(_group)], ...], BeforeValidator(_tuple), Field(min_length=1)] = DEFAULT_GROUP
    in_flight: Literal["report"] = "report"

    @model_validator(mode="after")
    def _bounded(self) -> Rule:
        if self.older_than is None and self.keep_newest is None:
            raise ValueError("has neither older_than nor keep_newest: it would delete everything that it fits")
        if self.keep_newest is None and "group" in self.model_fields_set:
            raise ValueError("has a group and no keep_newest")
        return self

    def fits(self, *, tenant: str, kind: str, phase: str | None, labels: Mapping[str, str]) -> bool:
        """Whether it decides about such a checkpoint, unless one before it does."""
        return (
            (self.tenant is None or self.tenant == tenant)
            and (self.kind is None or is_of(kind, self.kind))
            and (self.phase is None or phase in self.phase)
            and all(labels.get(key) == value for key, value in self.labels.items())
        )


class Policy(BaseModel):
    """A policy. Times are in milliseconds. `digest` is that of the file's bytes."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    grace: Millis = 7 * 86_400_000
    floor: dict[Kind, Millis] = Field(default_factory=dict)
    rule: Annotated[tuple[Rule, ...], BeforeValidator(_tuple), Field(min_length=1)]
    digest: str = ""

    @classmethod
    def parse(cls, text: bytes, *, source: str = "policy") -> Policy:
        """From the bytes of a TOML file. Raises `InvalidRequest` naming what is wrong where; an unknown key is wrong too."""
        try:
            fields = tomllib.loads(text.decode())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidRequest(source, f"is not TOML: {error}") from error
        if "digest" in fields:
            raise InvalidRequest(source, "digest: unknown key")
        try:
            made = cls(**fields, digest=hashlib.sha256(text).hexdigest())
        except ValidationError as error:
            raise InvalidRequest(source, "; ".join(_told(each) for each in error.errors(include_url=False))) from error
        names = [each.name for each in made.rule]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InvalidRequest(source, f"two rules are called {twice!r}")
        return made

    @classmethod
    def read(cls, path: Path) -> Policy:
        """From a file. Raises `InvalidRequest`."""
        try:
            return cls.parse(path.read_bytes(), source=str(path))
        except OSError as error:
            raise InvalidRequest(str(path), f"cannot be read: {error.strerror}") from error

    def rule_for(self, *, tenant: str, kind: str, phase: str | None, labels: Mapping[str, str]) -> Rule | None:
        """The first that fits."""
        return next((each for each in self.rule if each.fits(tenant=tenant, kind=kind, phase=phase, labels=labels)), None)

    def floor_of(self, kind: str) -> int | None:
        """The age that checkpoints of a kind must have, whatever a rule says: the highest floor that is about it."""
        return max((age for pattern, age in self.floor.items() if is_of(kind, pattern)), default=None)

    def undercuts(self) -> list[str]:
        """The rules that are about a kind with a floor, by its name or below it, and do not keep it as long.

        A rule about more than that (`older_than = "30d"` of everything) undercuts nothing: what has a floor is kept by it.
        """
        return [
            f"rule {rule.name!r} deletes {rule.kind} {'at any age' if rule.older_than is None else 'too early'}: {pattern} has a floor"
            for rule in self.rule
            for pattern, age in self.floor.items()
            if rule.kind is not None and _is_within(rule.kind, pattern) and (rule.older_than is None or rule.older_than < age)
        ]


def is_of(kind: str, pattern: str) -> bool:
    """Whether a kind is the one that a pattern names, or below a prefix (`acme.*`)."""
    return kind.startswith(pattern[:-1]) if pattern.endswith(".*") else kind == pattern


def _is_within(narrow: str, wide: str) -> bool:
    return narrow == wide or (wide.endswith(".*") and narrow.startswith(wide[:-1]))


def _told(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"{where}: unknown key"
    return f"{where}: {error['msg'].removeprefix('Value error, ')}"
