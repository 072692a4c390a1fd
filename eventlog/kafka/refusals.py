"""What Kafka refuses for good, told from what may pass: a right that is missing, a login, a certificate.

Whoever waits for a broker waits for what may pass; of these nothing is waited for.
"""

from __future__ import annotations

import re
import ssl

from kafka.errors import (
    AuthorizationError,
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    IllegalSaslStateError,
    KafkaError,
    SaslAuthenticationFailedError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError,
    UnsupportedSaslMechanismError,
)

from eventlog.address import KafkaAddress
from eventlog.errors import AuthenticationFailed, CheckpointError, MissingRight
from eventlog.kafka.rights import Operation, Resource, Right, granting

REFUSED = (MissingRight, AuthenticationFailed)
_LOGIN_REFUSED = (SaslAuthenticationFailedError, UnsupportedSaslMechanismError, IllegalSaslStateError)
_AUTHORIZATION: dict[int, type[KafkaError]] = {
    each.errno: each
    for each in (
        TopicAuthorizationFailedError,
        GroupAuthorizationFailedError,
        ClusterAuthorizationFailedError,
        TransactionalIdAuthorizationFailedError,
    )
}
# The client wraps some answers into a plain KafkaError, whose text is all that is left of them (facts: "the type is often lost").
_NUMBER_IN_TEXT = re.compile(r"\[Error (\d+)\]").search
_TLS_REFUSED = re.compile(
    "CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED|HANDSHAKE_FAILURE|PROTOCOL|WRONG_VERSION|CIPHER"
).search  # reasons of OpenSSL


def refusal(
    address: KafkaAddress, error: BaseException, *, operation: Operation = Operation.DESCRIBE, transactional_id: str = ""
) -> CheckpointError | None:
    """`MissingRight` or `AuthenticationFailed`, when that is what an error of the client says; None: something else, which may pass.

    Arguments:
        operation: what was about to be done with the topic.
        transactional_id: of the producer that did it.
    """
    if is_not_let_in(error):
        return AuthenticationFailed(str(address), _said(error), hint=_advice(error))
    kind = _authorization(error)
    if kind is None:
        return None
    if kind is TransactionalIdAuthorizationFailedError:
        return missing(address, Right(Resource.TRANSACTIONAL_ID, transactional_id, Operation.WRITE))
    # Of the cluster no right is needed but one, and that comes with Write on any topic: an idempotent producer's.
    return missing(address, Right(Resource.TOPIC, address.topic, operation))


def missing(address: KafkaAddress, right: Right) -> MissingRight:
    """The error for a right that is missing, with the command that grants it."""
    user = address.settings.get("sasl_plain_username")
    principal = None if user is None else f"User:{user}"
    command = granting(right, principal=principal or "User:...", servers=",".join(address.servers))
    return MissingRight(
        str(address),
        principal=principal,
        operation=right.operation.value,
        resource=right.resource.value,
        name=right.name,
        hint=f"Grant it: {command}. `eventlog topic acls` lists all that a role needs.",
    )


def is_not_let_in(error: BaseException) -> bool:
    """Whether the broker has refused the login, or one side the other's certificate: trying again would end the same."""
    return isinstance(error, _LOGIN_REFUSED) or _tls(error) is not None


def _authorization(error: BaseException) -> type[KafkaError] | None:
    if isinstance(error, AuthorizationError):
        return type(error)
    found = _NUMBER_IN_TEXT(str(error)) if type(error) is KafkaError else None
    return None if found is None else _AUTHORIZATION.get(int(found[1]))


def _tls(error: BaseException) -> ssl.SSLError | None:
    """What TLS has against the other side, wherever the client has put it. A connection that breaks is nothing of the kind."""
    for each in (error, error.__context__, *error.args):
        if isinstance(each, ssl.SSLError) and (isinstance(each, ssl.SSLCertVerificationError) or _TLS_REFUSED(each.reason or "")):
            return each
    return None


def _said(error: BaseException) -> str:
    tls = _tls(error)
    if isinstance(tls, ssl.SSLCertVerificationError):
        return f"the broker's certificate is not accepted: {tls.verify_message}"
    if tls is not None:
        return f"no TLS connection: {(tls.reason or str(tls)).replace('_', ' ').lower()}"
    if isinstance(error, SaslAuthenticationFailedError):
        return "the broker refuses this user and password"
    return (
        "the broker offers no such sasl_mechanism" if isinstance(error, UnsupportedSaslMechanismError) else "the broker wants no login here"
    )


def _advice(error: BaseException) -> str:
    tls = _tls(error)
    if isinstance(tls, ssl.SSLCertVerificationError):
        return "Check ssl_cafile (the authority that signed it), the server's name in the address, and how long the certificate is valid."
    if tls is not None:
        return "Check security_protocol and the port; where the broker asks for a certificate, ssl_certfile and who signed it."
    return "Check sasl_mechanism, sasl_plain_username and the password; `kafka-configs.sh --describe --entity-type users` lists users."
