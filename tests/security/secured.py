"""A broker with doors: TLS, SCRAM and ACLs, as docs/kafka-security.md sets one up.

Listeners: OUTSIDE asks for a password (SCRAM-SHA-512) over TLS, MUTUAL for a client's certificate, EXPIRED is OUTSIDE with a certificate
that has ended. INSIDE is for the broker itself and the tests' administrator, who are super users there.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from eventlog.address import KafkaAddress, parse_address
from eventlog.errors import CheckpointError
from eventlog.kafka.client import admin
from eventlog.kafka.local import LocalBroker, free_port
from eventlog.kafka.local_jars import exclusive
from eventlog.kafka.rights import Right
from tests.security.certificates import Authority
from tests.waiting import eventually

HOST = "127.0.0.1"
_NAMES = ("INSIDE", "CONTROLLER", "OUTSIDE", "MUTUAL", "EXPIRED")


class SecuredBroker:
    """The run's one broker of this kind: whoever starts it first makes its certificates, and everybody else uses them."""

    def __init__(self, run_folder: Path) -> None:
        self.folder = run_folder / "secured-files"
        self._directory = run_folder / "secured"
        self._principals: set[str] = set()

    def up(self) -> None:
        self.folder.mkdir(exist_ok=True)
        with exclusive(self.folder / "lock"):
            if not (self.folder / "ports").exists():
                self._prepare()
            ports = (self.folder / "ports").read_text().split()
            self.ports = dict(zip(_NAMES, map(int, ports), strict=True))
            self._broker = LocalBroker(directory=self._directory, port=self.ports["INSIDE"], config=self._settings(), fast_start=True)
            self._broker.up()
        self.admin: KafkaAdminClient = admin(KafkaAddress((f"{HOST}:{self.ports['INSIDE']}",), topic=""))

    def close(self) -> None:
        self.admin.close()

    @property
    def authority(self) -> Path:
        return self.folder / "house-ca.pem"

    # -- who may do what ------------------------------------------------------------------------------------------

    def user(self, name: str) -> str:
        """A new user with no right at all; returns its password, which can be used at once."""
        password = f"&{secrets.token_hex(12)}+%"  # every character that an address would take for its own
        made = self.admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion(name, ScramMechanism.SCRAM_SHA_512, password=password, iterations=4096)]
        )
        assert made == {name: None}
        eventually(lambda: self._lets_in(name, password))
        return password

    def grant(self, user: str, rights: Iterable[Right]) -> None:
        """Returns when the broker knows them."""
        wanted = {_acl(user, right) for right in rights}
        created = self.admin.create_acls(list(wanted))
        assert not created["failed"], created
        eventually(lambda: wanted <= self._acls(user))

    def revoke(self, user: str, rights: Iterable[Right]) -> None:
        """Returns when the broker knows."""
        gone = {_acl(user, right) for right in rights}
        self.admin.delete_acls([_filter(acl) for acl in gone])
        eventually(lambda: not gone & self._acls(user))

    def address(self, user: str, password: str, topic: str, *, door: str = "OUTSIDE", host: str = HOST, **settings: str) -> str:
        """How a user reaches a topic."""
        own = {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": user,
            "sasl_plain_password": password,
            "ssl_cafile": str(self.authority),
        }
        return self.plain_address(topic, door=door, host=host, **{**own, **settings})

    def plain_address(self, topic: str, *, door: str, host: str = HOST, **settings: str) -> str:
        """How a topic is reached with just these settings. An empty one is left out."""
        given = "&".join(f"{name}={quote(value, safe='')}" for name, value in settings.items() if value)
        return f"kafka://{host}:{self.ports[door]}/{topic}" + (f"?{given}" if given else "")

    def _lets_in(self, name: str, password: str) -> bool:
        where = parse_address(self.address(name, password, "any"))
        assert isinstance(where, KafkaAddress)
        try:
            admin(where).close()
        except CheckpointError:
            return False
        return True

    def _acls(self, user: str) -> set[ACL]:
        everything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
        found, _ = self.admin.describe_acls(ACLFilter(f"User:{user}", None, ACLOperation.ANY, ACLPermissionType.ANY, everything))
        return set(found)

    # -- setting it up --------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        house, strangers = Authority(self.folder, "house"), Authority(self.folder, "strangers")
        house.issue("broker", address=HOST)
        house.issue("expired", address=HOST, expired=True)
        house.issue("client")
        strangers.issue("stranger")
        ports: list[int] = []
        while len(ports) < len(_NAMES):
            if (port := free_port()) not in ports:
                ports.append(port)
        (self.folder / "ports.new").write_text(" ".join(map(str, ports)))
        (self.folder / "ports.new").rename(self.folder / "ports")

    def _settings(self) -> dict[str, str]:
        protocols = {"INSIDE": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", "OUTSIDE": "SASL_SSL", "MUTUAL": "SSL", "EXPIRED": "SASL_SSL"}
        listeners = {name: f"{name}://{HOST}:{self.ports[name]}" for name in _NAMES}
        settings = {
            "listeners": ",".join(listeners.values()),
            "advertised.listeners": ",".join(each for name, each in listeners.items() if name != "CONTROLLER"),
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
            "inter.broker.listener.name": "INSIDE",
            "controller.quorum.voters": f"1@{HOST}:{self.ports['CONTROLLER']}",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "false",
            "super.users": "User:ANONYMOUS",  # INSIDE and CONTROLLER, which listen on the loopback address alone
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.mutual.ssl.client.auth": "required",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
        }
        for name in ("outside", "mutual", "expired"):
            own = self.folder / ("expired.pem" if name == "expired" else "broker.pem")
            settings[f"listener.name.{name}.ssl.keystore.type"] = "PEM"
            settings[f"listener.name.{name}.ssl.keystore.location"] = str(own)
            if name != "mutual":
                login = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
                settings[f"listener.name.{name}.scram-sha-512.sasl.jaas.config"] = login
        return settings


def _acl(user: str, right: Right) -> ACL:
    kind = ACLResourcePatternType.PREFIXED if right.prefixed else ACLResourcePatternType.LITERAL
    return ACL(
        f"User:{user}",
        "*",
        ACLOperation[_constant(right.operation)],
        ACLPermissionType.ALLOW,
        ResourcePattern(ResourceType[_constant(right.resource)], right.name, kind),
    )


def _filter(acl: ACL) -> ACLFilter:
    return ACLFilter(acl.principal, acl.host, acl.operation, acl.permission_type, acl.resource_pattern)


def _constant(name: str) -> str:
    """`DescribeConfigs` as the client's enumerations spell it."""
    return "".join(f"_{each}" if each.isupper() and index else each for index, each in enumerate(name)).upper()
