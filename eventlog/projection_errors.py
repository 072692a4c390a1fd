"""A projection's errors in the store's own words."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from eventlog.errors import Busy, ConfigurationError, Corrupted, HistoryRemoved, InvalidRequest, StorageError
from projections.errors import InvalidQuery, PastGone, ProjectionDamaged, ProjectionError, ProjectionForeign, ProjectionLocked

_KEEP_IT = (
    "Keep that file: on Kafka it may hold history that is nowhere else. Give this store a projection of its own: on Kafka by ?state=DIR,"
    " in a directory by `eventlog rebuild`."
)
_ANEW = "It is disposable: `eventlog rebuild` makes it anew from the log; on Kafka, start with another ?state=DIR."


@contextlib.contextmanager
def translated(path: Path | None = None) -> Iterator[None]:
    """The projection's errors in the store's own words."""
    try:
        yield
    except ProjectionLocked as error:
        hint = "Stop that process, or have a projection of your own: on Kafka by ?state=DIR in the address."
        raise Busy(str(error.path), f"the projection is in use by process {error.owner}", hint=hint) from error
    except ProjectionForeign as error:
        raise ConfigurationError(str(error), hint=_KEEP_IT) from error
    except ProjectionDamaged as error:
        raise Corrupted("projection", str(error), hint=_ANEW) from error
    except PastGone as error:
        more = f" (and {error.count - 1} more gaps)" if error.count > 1 else ""
        what = f"checkpoint {error.checkpoint_id}: what was in revisions {error.first_revision} to {error.last_revision}{more}"
        raise HistoryRemoved(what, reason=error.reason) from error
    except InvalidQuery as error:
        raise InvalidRequest("query", str(error)) from error
    except ProjectionError as error:
        raise StorageError(str(path or "projection"), str(error)) from error
    except OSError as error:
        raise StorageError(str(error.filename or path or "projection"), error.strerror or str(error)) from error
