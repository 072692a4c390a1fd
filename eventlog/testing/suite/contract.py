"""The parts of the contract, put together."""

from __future__ import annotations

from eventlog.testing.suite.concurrency import Concurrency
from eventlog.testing.suite.deletion import Deletion
from eventlog.testing.suite.many import Many
from eventlog.testing.suite.matrix import Matrix
from eventlog.testing.suite.opened import Opened
from eventlog.testing.suite.past import Past
from eventlog.testing.suite.retries import Retries
from eventlog.testing.suite.unclear import Unclear


class StoreContract(Matrix, Retries, Unclear, Deletion, Past, Many, Concurrency, Opened):
    """Every promise that can be checked from outside.

    A subclass gives the fixture `opening`: a callable that opens the store, each time the same one, so that what one has written the
    other has. The suite closes what it opens, where there is a `close`. It writes to fresh ids only, and may share a store with others.

    `lacks` says which features the store does not have, and why: `lacks = {Feature.DELETE: "rows are never removed"}`. Their tests are
    skipped, and a warning for each class (`NotChecked`) says so. A method that is there all the same fails, as does a missing one.
    """
