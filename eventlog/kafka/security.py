"""The settings of an address that say how to be let in: TLS, and a login. Checked here, so that none is silently without effect."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eventlog.errors import ConfigurationError, InvalidRequest
from eventlog.privacy.providers.key_file_disk import read
from eventlog.privacy.providers.key_file_form import Unreadable

_PROTOCOLS = frozenset({"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"})
_SECRETS = ("sasl_plain_password", "ssl_password")
_TLS = frozenset({"ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_password", "ssl_crlfile", "ssl_check_hostname"})
_LOGIN = frozenset(
    {
        "sasl_mechanism",
        "sasl_plain_username",
        "sasl_plain_password",
        "sasl_kerberos_name",
        "sasl_kerberos_service_name",
        "sasl_kerberos_domain_name",
    }
)
SECURITY_SETTINGS = _TLS | _LOGIN | {"security_protocol"} | {f"{name}_{where}" for name in _SECRETS for where in ("file", "env")}


class Secret(str):
    """Text that no log line, error or `repr` shows."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


def security(settings: Mapping[str, str]) -> dict[str, Any]:
    """What the client is given. Reads the files that the settings name, anew each time, so that a password may change meanwhile.

    Raises `InvalidRequest` for a setting that is wrong or would have no effect, `ConfigurationError` for a file or variable that is.
    """
    given = {name: value for name, value in settings.items() if name in SECURITY_SETTINGS}
    for name in _SECRETS:
        secret = _secret(given, name)
        if secret is not None:
            given[name] = secret
    protocol = given.pop("security_protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise InvalidRequest("address", f"security_protocol is {protocol!r}, not one of {', '.join(sorted(_PROTOCOLS))}")
    _require_effect(given, _TLS, protocol, "SSL", "SASL_SSL")
    _require_effect(given, _LOGIN, protocol, "SASL_SSL", "SASL_PLAINTEXT")
    if protocol.startswith("SASL") and "sasl_mechanism" not in given:
        raise InvalidRequest("address", f"{protocol} needs a sasl_mechanism", hint="For a password: sasl_mechanism=SCRAM-SHA-512.")
    found: dict[str, Any] = {name: value for name, value in given.items() if name in _LOGIN}
    if protocol != "PLAINTEXT":
        found["security_protocol"] = protocol
    if protocol.endswith("SSL"):
        found["ssl_context"] = _context(given)
    return found


def _require_effect(given: Mapping[str, str], names: frozenset[str], protocol: str, *wanted: str) -> None:
    idle = sorted(names & given.keys())
    if idle and protocol not in wanted:
        raise InvalidRequest(
            "address",
            f"{', '.join(idle)} would have no effect: security_protocol is {protocol}",
            hint=f"Add security_protocol={wanted[0]} or {wanted[1]}, or leave them out.",
        )


def _secret(given: dict[str, str], name: str) -> Secret | None:
    """From the address itself, a file, or the environment: one of them."""
    places = [each for each in (name, f"{name}_file", f"{name}_env") if each in given]
    if len(places) > 1:
        raise InvalidRequest("address", f"{' and '.join(places)} are given", hint="Give one of them.")
    if not places:
        return None
    place, value = places[0], given.pop(places[0])
    if place == name:
        return Secret(value)
    if place.endswith("_env"):
        found = os.environ.get(value)
        if not found:
            raise ConfigurationError(f"{place}: there is no {value} in the environment", hint="Set it, or correct its name.")
        return Secret(found)
    try:
        text = read(Path(value).expanduser()).decode()
    except Unreadable as error:
        raise ConfigurationError(f"{place}: {value} {error}", hint=error.hint or "Name a file with the password alone.") from error
    except UnicodeDecodeError:
        raise ConfigurationError(f"{place}: {value} is not text", hint="Name a file with the password alone.") from None
    except OSError as error:
        raise _unreadable(place, value, error) from error
    return Secret(text.removesuffix("\n").removesuffix("\r"))


def _context(given: Mapping[str, str]) -> ssl.SSLContext:
    """As the client makes one, but here a file that cannot be used is said to be so at once."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = _truth("ssl_check_hostname", given.get("ssl_check_hostname", "true"))
    authority, revoked = given.get("ssl_cafile"), given.get("ssl_crlfile")
    certificate, key = given.get("ssl_certfile"), given.get("ssl_keyfile")
    if certificate is None and key is not None:
        raise InvalidRequest("address", "ssl_keyfile would have no effect without ssl_certfile")
    if authority is None:
        context.load_default_certs()
    else:
        _load("ssl_cafile", authority, lambda: context.load_verify_locations(authority))
    if revoked is not None:
        _load("ssl_crlfile", revoked, lambda: context.load_verify_locations(revoked))
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    if certificate is not None:
        # Without a password OpenSSL would ask for one at the terminal.
        password = given.get("ssl_password", "")
        _load("ssl_certfile or ssl_keyfile", key or certificate, lambda: context.load_cert_chain(certificate, key, password))
    return context


def _load(setting: str, path: str, load: Any) -> None:
    try:
        load()
    except ssl.SSLError as error:
        raise ConfigurationError(
            f"{setting}: {path} cannot be used: {error.reason or 'it holds nothing of the kind, or needs another ssl_password'}",
            hint="It must be PEM. For a key that is encrypted, give ssl_password_file.",
        ) from error
    except OSError as error:
        raise _unreadable(setting, path, error) from error


def _unreadable(setting: str, path: str, error: OSError) -> ConfigurationError:
    return ConfigurationError(f"{setting}: {path}: {error.strerror}", hint="Check the path and who may read it.")


def _truth(name: str, value: str) -> bool:
    if value.lower() in {"1", "true", "yes"}:
        return True
    if value.lower() in {"0", "false", "no"}:
        return False
    raise InvalidRequest("address", f"{name} is {value!r}, neither true nor false")
