"""Encryption of everything that Temporal stores: payloads, failures, memos and details.

AES-256-GCM (NIST SP 800-38D) with a random nonce of 96 bits for each payload. The key file has one key per line, as
`id key`. The first key encrypts and all keys decrypt, so a new key is put before the old ones.
"""

import base64
import binascii
import os
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadCodec

from sluice.errors import BadEnvironment
from sluice.secrets import read_secret

_ENCODING = b"binary/encrypted"
_NONCE = 12


class AesCodec(PayloadCodec):
    """Encrypts with the first key, and decrypts with each. The argument has the keys by their ids."""

    def __init__(self, keys: dict[str, bytes]) -> None:
        self._ciphers = {name: AESGCM(key) for name, key in keys.items()}
        self._first = next(iter(keys))

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Encrypt each payload as a whole, including its metadata."""
        return [self._encrypted(payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Decrypt encrypted payloads. Return others unchanged: Temporal stored them before there was a key."""
        return [self._decrypted(payload) for payload in payloads]

    def _encrypted(self, payload: Payload) -> Payload:
        nonce = os.urandom(_NONCE)
        encrypted = self._ciphers[self._first].encrypt(nonce, payload.SerializeToString(), self._first.encode())
        return Payload(
            metadata={"encoding": _ENCODING, "encryption-key-id": self._first.encode()}, data=nonce + encrypted
        )

    def _decrypted(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") != _ENCODING:
            return payload
        name = payload.metadata.get("encryption-key-id", b"").decode()
        if name not in self._ciphers:
            raise ValueError(f"this was encrypted by the key {name!r}, which SLUICE_CODEC_KEY_FILE does not contain")
        try:
            decrypted = self._ciphers[name].decrypt(payload.data[:_NONCE], payload.data[_NONCE:], name.encode())
        except InvalidTag as error:
            raise ValueError(f"this was not encrypted by the key {name!r}, or was changed since") from error
        return Payload.FromString(decrypted)


def new_codec_key() -> str:
    """Return a new key as a line of a key file: a random id and 256 bits."""
    return f"{os.urandom(4).hex()} {base64.b64encode(AESGCM.generate_key(256)).decode()}"


class RefuseEncrypted(PayloadCodec):
    """The codec used without a key: it refuses encrypted payloads with a message, and returns others unchanged."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Return payloads unchanged."""
        return list(payloads)

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Return payloads unchanged.

        Raises:
            BadEnvironment: a payload is encrypted.
        """
        if any(payload.metadata.get("encoding") == _ENCODING for payload in payloads):
            raise BadEnvironment("this run is encrypted: set SLUICE_CODEC_KEY_FILE to the key that its worker has")
        return list(payloads)


def read_codec(file: str) -> AesCodec | None:
    """Return the codec of a key file, or None if no file is named.

    Raises:
        BadEnvironment: the file is unreadable or empty, or a line is not a key.
    """
    keys: dict[str, bytes] = {}
    for number, line in enumerate(read_secret(file, "SLUICE_CODEC_KEY_FILE").splitlines(), 1):
        name, _, key = line.strip().partition(" ")
        try:
            keys[name] = base64.b64decode(key, validate=True)
        except binascii.Error:
            keys[name] = b""
        if len(keys[name]) != 32:
            raise BadEnvironment(f"{file}:{number}: this is not a key of 256 bits: `codec-key` makes one")
    return AesCodec(keys) if keys else None
