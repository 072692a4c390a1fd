"""A checkpoint store for agents and workflows: compare-and-swap on an append-only log, with its history in DuckDB."""

import projections

if getattr(projections, "FLOOR", None) != "eventlog-checkpoints":
    raise ImportError(f"another package named 'projections' hides the one that eventlog is installed with: {projections.__file__}")

from eventlog.aio import AsyncCheckpointStore
from eventlog.catalog import CheckpointSummary, Page
from eventlog.checkpoint import Checkpoint, Receipt
from eventlog.errors import (
    AccessDenied,
    AuditUnavailable,
    AuthenticationFailed,
    Busy,
    CheckpointError,
    ConfigurationError,
    Conflict,
    Corrupted,
    Deleted,
    EncryptionMismatch,
    ErasureIncomplete,
    ErrorKind,
    EventIdReused,
    HeldByLegalHold,
    HistoryRemoved,
    InvalidPayload,
    InvalidRequest,
    KeyDestroyed,
    KeysUnavailable,
    MissingRight,
    NotAStore,
    NotFound,
    OutcomeUnknown,
    Overloaded,
    Quarantined,
    Retry,
    SchemaMismatch,
    StorageError,
    StoreClosed,
    TooLarge,
    Unavailable,
)
from eventlog.event import EventType
from eventlog.ids import CheckpointId, EventId, RunId
from eventlog.no_payload import PAYLOAD_ERASED, PAYLOAD_WITHHELD, Withheld
from eventlog.opening import create_store, open_async_store, open_store
from eventlog.position import Position
from eventlog.privacy.access_log import AccessMode
from eventlog.privacy.principals import Principal, Role
from eventlog.privacy.providers import EnvironmentKey, KeyFile, KeyProvider, NoKeys, Pkcs11Keys
from eventlog.revision import Gap, Revision
from eventlog.store import CheckpointStore

__version__ = "0.1.0"

__all__ = [
    "PAYLOAD_ERASED",
    "PAYLOAD_WITHHELD",
    "AccessDenied",
    "AccessMode",
    "AsyncCheckpointStore",
    "AuditUnavailable",
    "AuthenticationFailed",
    "Busy",
    "Checkpoint",
    "CheckpointError",
    "CheckpointId",
    "CheckpointStore",
    "CheckpointSummary",
    "ConfigurationError",
    "Conflict",
    "Corrupted",
    "Deleted",
    "EncryptionMismatch",
    "EnvironmentKey",
    "ErasureIncomplete",
    "ErrorKind",
    "EventId",
    "EventIdReused",
    "EventType",
    "Gap",
    "HeldByLegalHold",
    "HistoryRemoved",
    "InvalidPayload",
    "InvalidRequest",
    "KeyDestroyed",
    "KeyFile",
    "KeyProvider",
    "KeysUnavailable",
    "MissingRight",
    "NoKeys",
    "NotAStore",
    "NotFound",
    "OutcomeUnknown",
    "Overloaded",
    "Page",
    "Pkcs11Keys",
    "Position",
    "Principal",
    "Quarantined",
    "Receipt",
    "Retry",
    "Revision",
    "Role",
    "RunId",
    "SchemaMismatch",
    "StorageError",
    "StoreClosed",
    "TooLarge",
    "Unavailable",
    "Withheld",
    "create_store",
    "open_async_store",
    "open_store",
]
