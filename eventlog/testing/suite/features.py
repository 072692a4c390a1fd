"""What a store may lack, and how that is said."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, ClassVar

import pytest


class Feature(Enum):
    """What not every checkpoint store has."""

    RETRY = "the same event sent again gets its first receipt, where otherwise it is a conflict"
    RESOLVE = "resolve(event id or checkpoint): its receipt, or None"
    DELETE = "delete(id, expected, event_id=...): the id never starts again"
    MANY = "compare_and_swap_many(pairs): independent revisions, one outcome each"
    REVISIONS = "load(id, revision=...)"
    AS_OF = "position(), and load(id, at=...)"


_METHODS = {Feature.RESOLVE: "resolve", Feature.DELETE: "delete", Feature.MANY: "compare_and_swap_many", Feature.AS_OF: "position"}


class NotChecked(UserWarning):
    """A part of the contract that a store is said to lack, so that nobody takes a green run for a whole one."""


def needs(*features: Feature) -> Callable[[Any], Any]:
    """Marks a test of what a store may lack."""

    def marked(test: Any) -> Any:
        test.needed_features = features
        return test

    return marked


class Subject:
    """The store under test, and what it lacks."""

    lacks: ClassVar[Mapping[Feature, str]] = {}

    @pytest.fixture
    def store(self, opening: Callable[[], Any]) -> Iterator[Any]:
        """The store, open."""
        opened = opening()
        yield opened
        close(opened)

    @pytest.fixture
    def another(self, opening: Callable[[], Any]) -> Iterator[Any]:
        """The same store, opened once more."""
        opened = opening()
        yield opened
        close(opened)

    @pytest.fixture(autouse=True)
    def skipped_if_lacking(self, request: pytest.FixtureRequest) -> None:
        """Skips a test of what the store lacks, and says once for each class what that is."""
        if type(self) not in _said:
            _said.add(type(self))
            for feature, why in self.lacks.items():
                warnings.warn(f"{type(self).__name__} lacks {feature.name}, its tests are not run: {why}", NotChecked, stacklevel=1)
        for feature in getattr(request.function, "needed_features", ()):
            self.skip_without(feature)

    def skip_without(self, feature: Feature) -> None:
        """Ends the test, loudly, if the store lacks a feature."""
        if feature in self.lacks:
            pytest.skip(f"NOT CHECKED: {type(self).__name__} lacks {feature.name}: {self.lacks[feature]}")

    def has(self, feature: Feature) -> bool:
        """Whether the store is said to have it."""
        return feature not in self.lacks

    @pytest.mark.parametrize("feature", _METHODS, ids=lambda feature: feature.name)
    def test_what_a_store_has_is_checked(self, store: Any, feature: Feature) -> None:
        """And what it is said to have is there."""
        assert hasattr(store, _METHODS[feature]) == self.has(feature), f"lacks does not say of {feature.name} what the store is like"


_said: set[type] = set()


def close(store: Any) -> None:
    """Closes a store that can be closed."""
    if hasattr(store, "close"):
        store.close()
