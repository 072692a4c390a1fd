"""The rights on Kafka that each role needs, and no more: data, of which the commands, the documentation and the tests are made.

A right that Kafka derives from another is not listed: Read, Write and Delete each bring Describe, on topics
and on transactional ids, and AlterConfigs brings DescribeConfigs.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple


class Resource(StrEnum):
    """What a right is for, as Kafka spells it."""

    TOPIC = "Topic"
    TRANSACTIONAL_ID = "TransactionalId"
    CLUSTER = "Cluster"
    GROUP = "Group"


class Operation(StrEnum):
    """What a right allows, as Kafka spells it."""

    READ = "Read"
    WRITE = "Write"
    CREATE = "Create"
    DESCRIBE = "Describe"
    DESCRIBE_CONFIGS = "DescribeConfigs"
    ALTER_CONFIGS = "AlterConfigs"
    DELETE = "Delete"


class Right(NamedTuple):
    """One ACL. `prefixed`: it is for every name that begins with `name`."""

    resource: Resource
    name: str
    operation: Operation
    prefixed: bool = False


class KafkaRole(StrEnum):
    """Who uses the topics of a store."""

    OPERATOR = "operator"  # makes the topics and checks them
    WRITER = "writer"
    READER = "reader"
    AUDITOR = "auditor"  # reads the access log and nothing else
    KEYS = "keys"  # rotates the keys, and destroys data keys
    PRUNER = "pruner"  # removes the oldest records of the access log
    RESTORER = "restorer"  # restores a backup into new topics; best for those alone, and for that time


class Needed(NamedTuple):
    """A right of a role, for a topic that is not named yet, and why it is needed."""

    resource: Resource
    suffix: str  # behind the topic's name
    operation: Operation
    why: str
    prefixed: bool = False


_TOPIC, _TRANSACTIONS = Resource.TOPIC, Resource.TRANSACTIONAL_ID
_CHECKED = Needed(_TOPIC, "", Operation.DESCRIBE_CONFIGS, "the settings are checked whenever the store opens")
_ASKED = Needed(_TOPIC, ".keys", Operation.DESCRIBE, "whether the store is encrypted is asked for, never guessed")
_FOLLOWED = Needed(_TOPIC, "", Operation.READ, "every process follows the log, a writer too")
_RECORDED_ASKED = Needed(_TOPIC, ".access", Operation.DESCRIBE, "whether accesses are recorded is asked for, never guessed")
_MADE_ANEW = (
    Needed(_TOPIC, "", Operation.CREATE, "the topic is a new one"),
    Needed(_TOPIC, "", Operation.DELETE, "what an interrupted restore has left goes first"),
)
_READS = (_FOLLOWED, _CHECKED, _ASKED, _RECORDED_ASKED)

# What each role needs at any store; what it needs besides when the store is encrypted, or records accesses.
NEEDED: Mapping[KafkaRole, tuple[Needed, ...]] = MappingProxyType(
    {
        KafkaRole.OPERATOR: (
            Needed(_TOPIC, "", Operation.CREATE, "`eventlog init`"),
            Needed(_TOPIC, "", Operation.DESCRIBE, "whether it exists, and `topic check`"),
            Needed(_TOPIC, "", Operation.DESCRIBE_CONFIGS, "`topic check`"),
            _ASKED,
            _RECORDED_ASKED,
        ),
        KafkaRole.WRITER: (
            *_READS,
            Needed(_TOPIC, "", Operation.WRITE, "appending"),
            Needed(_TRANSACTIONS, "-writer-", Operation.WRITE, "taking a partition over, which fences its writer before", prefixed=True),
        ),
        KafkaRole.READER: _READS,
        KafkaRole.AUDITOR: (),
        KafkaRole.KEYS: _READS,
        KafkaRole.PRUNER: _READS,
        KafkaRole.RESTORER: (
            *_READS,
            *_MADE_ANEW,
            Needed(_TOPIC, "", Operation.WRITE, "the events, then the record of the restore and what is erased again"),
            Needed(_TOPIC, "", Operation.ALTER_CONFIGS, "a topic that is being restored into is marked until the end"),
            Needed(_TRANSACTIONS, "-restore", Operation.WRITE, "one restore at a time"),
            Needed(_TRANSACTIONS, "-writer-", Operation.WRITE, "the record of the restore", prefixed=True),
        ),
    }
)
_KEYS_CHECKED = Needed(_TOPIC, ".keys", Operation.DESCRIBE_CONFIGS, "the settings are checked whenever the store opens")
_KEYS_READ = Needed(_TOPIC, ".keys", Operation.READ, "the wrapped data keys; without the key that wraps them they open nothing")
IF_ENCRYPTED: Mapping[KafkaRole, tuple[Needed, ...]] = MappingProxyType(
    {
        KafkaRole.OPERATOR: (
            Needed(_TOPIC, ".keys", Operation.CREATE, "`eventlog init --encrypt`"),
            Needed(_TOPIC, ".keys", Operation.WRITE, "where the keys are is written down"),
            Needed(_TOPIC, ".keys", Operation.DESCRIBE_CONFIGS, "`topic check`"),
        ),
        KafkaRole.WRITER: (_KEYS_READ, _KEYS_CHECKED, Needed(_TOPIC, ".keys", Operation.WRITE, "a data key for each new checkpoint")),
        KafkaRole.READER: (_KEYS_READ, _KEYS_CHECKED),
        KafkaRole.AUDITOR: (),
        KafkaRole.KEYS: (
            _KEYS_READ,
            _KEYS_CHECKED,
            Needed(_TOPIC, ".keys", Operation.WRITE, "data keys wrapped anew; null for one that is destroyed"),
            Needed(_TRANSACTIONS, ".keys-rotation", Operation.WRITE, "one rotation at a time"),
        ),
        KafkaRole.PRUNER: (_KEYS_READ, _KEYS_CHECKED),
        KafkaRole.RESTORER: (
            *(each._replace(suffix=".keys") for each in _MADE_ANEW),
            _KEYS_READ,
            _KEYS_CHECKED,
            Needed(_TOPIC, ".keys", Operation.WRITE, "the wrapped data keys, and one for the record of the restore"),
        ),
    }
)
_TRAIL_CHECKED = Needed(_TOPIC, ".access", Operation.DESCRIBE_CONFIGS, "the settings are checked whenever it is opened")
_TRAIL_READ = Needed(_TOPIC, ".access", Operation.READ, "the access log")
_RECORDED = (Needed(_TOPIC, ".access", Operation.WRITE, "every access is recorded by whoever makes it"), _TRAIL_CHECKED)
IF_RECORDED: Mapping[KafkaRole, tuple[Needed, ...]] = MappingProxyType(
    {
        KafkaRole.OPERATOR: (Needed(_TOPIC, ".access", Operation.CREATE, "`eventlog init --access`"),),
        KafkaRole.WRITER: _RECORDED,
        KafkaRole.READER: _RECORDED,
        KafkaRole.AUDITOR: (_TRAIL_READ, _TRAIL_CHECKED),
        KafkaRole.KEYS: _RECORDED,
        KafkaRole.RESTORER: (
            *(each._replace(suffix=".access") for each in _MADE_ANEW),
            *_RECORDED,
            _TRAIL_READ,
            Needed(_TOPIC, ".access", Operation.ALTER_CONFIGS, "records keep their times while it is filled"),
        ),
        KafkaRole.PRUNER: (*_RECORDED, Needed(_TOPIC, ".access", Operation.DELETE, "`eventlog access prune`")),
    }
)


BRINGS = {
    Operation.READ: Operation.DESCRIBE,
    Operation.WRITE: Operation.DESCRIBE,
    Operation.DELETE: Operation.DESCRIBE,
    Operation.ALTER_CONFIGS: Operation.DESCRIBE_CONFIGS,
}


def needed(role: KafkaRole, *, encrypted: bool = False, recorded: bool = False) -> tuple[Needed, ...]:
    """What a role needs at a store that is `encrypted`, and whose accesses are `recorded`; none that another one brings."""
    found = NEEDED[role] + (IF_ENCRYPTED[role] if encrypted else ()) + (IF_RECORDED[role] if recorded else ())
    brought = {(each.resource, each.suffix, BRINGS.get(each.operation)) for each in found}
    return tuple(each for each in found if (each.resource, each.suffix, each.operation) not in brought)


def rights_of(role: KafkaRole, topic: str, *, encrypted: bool = False, recorded: bool = False) -> list[Right]:
    """The same for the store in a topic."""
    return [
        Right(each.resource, topic + each.suffix, each.operation, each.prefixed)
        for each in needed(role, encrypted=encrypted, recorded=recorded)
    ]


def granting(right: Right, *, principal: str, servers: str) -> str:
    """The command line of Kafka's own tool that grants a right."""
    option = {
        Resource.TOPIC: f"--topic '{right.name}'",
        Resource.TRANSACTIONAL_ID: f"--transactional-id '{right.name}'",
        Resource.GROUP: f"--group '{right.name}'",
        Resource.CLUSTER: "--cluster",
    }[right.resource]
    pattern = " --resource-pattern-type prefixed" if right.prefixed else ""
    return (
        f"kafka-acls.sh --bootstrap-server {servers} --command-config admin.properties"
        f" --add --allow-principal '{principal}' --operation {right.operation} {option}{pattern}"
    )
