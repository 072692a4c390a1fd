"""Certificates for the tests: an authority, and what it signs."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = timedelta(days=1)


class Authority:
    """Signs certificates into a folder: `<name>.pem` holds the key and the chain, `<name>-ca.pem` the authority's certificate."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        now = datetime.now(UTC)
        self._certificate = (
            _signing(self._name, self._name, self._key, now - _DAY, now + 365 * _DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.file = folder / f"{name}-ca.pem"
        self.file.write_bytes(_pem(self._certificate))

    def issue(self, name: str, *, address: str | None = None, expired: bool = False) -> Path:
        """A key with its certificate; of a server, for its IP address alone. An expired one ended yesterday."""
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        start, end = (now - 30 * _DAY, now - _DAY) if expired else (now - _DAY, now + 365 * _DAY)
        signing = _signing(_named(name), self._name, key, start, end)
        if address is not None:
            known = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
            signing = signing.add_extension(known, critical=False)
        certificate = signing.sign(self._key, hashes.SHA256())
        private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        file = self.folder / f"{name}.pem"
        file.write_bytes(private + _pem(certificate) + _pem(self._certificate))
        return file


def _signing(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, start: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
