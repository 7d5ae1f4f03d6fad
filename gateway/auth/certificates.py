"""Certificates to try TLS with: an authority of one's own, and what it signs.

Made with the package `cryptography`, which is needed for this only (the extra `certificate`); serving TLS is the standard
library's. Keys are elliptic (P-256), unencrypted, and readable by their owner only.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gateway.errors import ConfigError

AUTHORITY_DAYS = 3650
LEAF_DAYS = 397  # the most that Apple's and other libraries take from a server
_AUTHORITY_NAME = "Delta SQL Gateway, an authority to try out"


def make_folder(folder: Path) -> None:
    """The folder for certificates, closed to others. Raises ConfigError."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError("folder", f"{folder} cannot be made: {error.strerror}") from error


def authority(folder: Path) -> tuple[Any, Any]:
    """Certificate and key of the authority in a folder, made if there is none. Raises ConfigError."""
    x509, serialization = _library()
    certificate, key = folder / "ca.pem", folder / "ca-key.pem"
    if certificate.exists() != key.exists():
        raise ConfigError("folder", f"of {certificate} and {key} only one is there")
    if certificate.exists():
        try:
            return (
                x509.load_pem_x509_certificate(certificate.read_bytes()),
                serialization.load_pem_private_key(key.read_bytes(), None),
            )
        except (OSError, ValueError, TypeError) as error:
            raise ConfigError("folder", f"{certificate} or {key} cannot be read: {error}") from error
    made, made_key = _sign(_AUTHORITY_NAME, [], None, AUTHORITY_DAYS, None)
    _write(certificate, made.public_bytes(serialization.Encoding.PEM), 0o644)
    _write(key, _key_bytes(made_key), 0o600)
    return made, made_key


def make_server(folder: Path, names: Sequence[str], days: int = LEAF_DAYS) -> tuple[Path, Path]:
    """A certificate for a server that is called by any of `names`, hosts or addresses: the files of its chain and key."""
    return _make(folder, "server", names[0], names, "server", days)


def make_client(folder: Path, name: str, days: int = LEAF_DAYS) -> tuple[Path, Path]:
    """A certificate for a client, for servers with `tls-client-ca`: the files of certificate and key."""
    return _make(folder, f"client-{name}", name, [], "client", days)


def _make(folder: Path, stem: str, subject: str, names: Sequence[str], use: str, days: int) -> tuple[Path, Path]:
    _, serialization = _library()
    signer = authority(folder)
    made, key = _sign(subject, names, signer, days, use)
    chain, key_file = folder / f"{stem}.pem", folder / f"{stem}-key.pem"
    encoding = serialization.Encoding.PEM
    _write(key_file, _key_bytes(key), 0o600)
    _write(chain, made.public_bytes(encoding) + signer[0].public_bytes(encoding), 0o644)
    return chain, key_file


def _sign(
    subject: str, names: Sequence[str], signer: tuple[Any, Any] | None, days: int, use: str | None
) -> tuple[Any, Any]:
    """A new key and its certificate; signed by itself as an authority if `signer` is None."""
    x509, _ = _library()
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, subject[:64])])
    issuer, issuer_key = (name, key) if signer is None else (signer[0].subject, signer[1])
    now = datetime.datetime.now(datetime.UTC)
    uses = {
        "digital_signature": signer is not None,
        "key_cert_sign": signer is None,
        "crl_sign": signer is None,
        **dict.fromkeys(("content_commitment", "key_encipherment", "data_encipherment", "key_agreement"), False),
        **dict.fromkeys(("encipher_only", "decipher_only"), False),
    }
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))  # clocks differ
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(
            x509.BasicConstraints(ca=signer is None, path_length=0 if signer is None else None), critical=True
        )
        .add_extension(x509.KeyUsage(**uses), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    if use is not None:
        purpose = {"server": x509.ExtendedKeyUsageOID.SERVER_AUTH, "client": x509.ExtendedKeyUsageOID.CLIENT_AUTH}[use]
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName([_name(n) for n in names]), critical=False)
    return builder.sign(issuer_key, hashes.SHA256()), key


def _name(text: str) -> Any:
    x509, _ = _library()
    try:
        return x509.IPAddress(ipaddress.ip_address(text.strip("[]")))
    except ValueError:
        pass
    try:
        return x509.DNSName(text.encode("idna").decode("ascii"))
    except (UnicodeError, ValueError) as error:
        raise ConfigError("name", f"{text!r} is no name of a host: {error}") from error


def _key_bytes(key: Any) -> bytes:
    _, serialization = _library()
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return bytes(key.private_bytes(encoding, form, serialization.NoEncryption()))


def _write(path: Path, data: bytes, mode: int) -> None:
    """The file, whole or not at all; its key is never readable by others, not even for a moment."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(data)
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise ConfigError("folder", f"{path} cannot be written: {error.strerror}") from error


def _library() -> tuple[Any, Any]:
    """The modules x509 and serialization of `cryptography`. Raises ConfigError where it is not installed."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
    except ImportError as error:
        raise ConfigError(
            "certificate", "the package cryptography is needed to make certificates: pip install '.[certificate]'"
        ) from error
    return x509, serialization
