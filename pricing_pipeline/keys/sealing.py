"""Envelope encryption of single secrets: a data key for each, wrapped by one of several master keys.

Both layers are AES-256-GCM with random 96-bit nonces. What belongs to a secret (provider, name, row version, master
key) is bound to both as additional data, so that a sealed secret opens in its own row only. Where master keys come
from is in `master_keys`, where sealed secrets are stored in `credentials`; nothing here knows a file or a database.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import SecretBytes, SecretStr

from pricing_pipeline.errors import SealBroken, UnknownMasterKey

KEY_BYTES = 32
NONCE_BYTES = 12
LONGEST_SECRET = 4096
"""In bytes of UTF-8."""

_BLOCK = 64
"""Secrets are padded to a multiple of this length, which would otherwise tell one provider's keys from another's."""
_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,47}")


@dataclass(frozen=True, slots=True)
class Sealed:
    """A stored secret: unreadable without the master key, and outside its row."""

    provider: str
    key_name: str
    row_version: int
    master_key_id: str
    key_nonce: bytes
    wrapped_key: bytes
    secret_nonce: bytes
    ciphertext: bytes


class Keyring:
    """Master keys by id, newest first. The newest seals; each opens what it has sealed."""

    def __init__(self, keys: Iterable[tuple[str, SecretBytes]]) -> None:
        self._keys = dict(keys)

    @classmethod
    def parse(cls, lines: Iterable[str]) -> Self:
        """Read `id:base64`, newest first. Raises ValueError, which quotes no line, for an invalid key."""
        keys: dict[str, SecretBytes] = {}
        for number, line in enumerate(lines, start=1):
            name, _, encoded = line.strip().partition(":")
            try:
                key = base64.b64decode(encoded.strip(), validate=True)
            except (binascii.Error, ValueError):
                key = b""
            if not _ID.fullmatch(name) or len(key) != KEY_BYTES:
                raise ValueError(
                    f"key {number} is not id:base64 with an id in a-z, 0-9, _ and -, and {KEY_BYTES} bytes in base64"
                )
            if name in keys:
                raise ValueError(f"key {number} has the id of another one")
            keys[name] = SecretBytes(key)
        if not keys:
            raise ValueError("it holds no key")
        return cls(keys.items())

    def __repr__(self) -> str:
        return f"Keyring({', '.join(self._keys)})"

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of all keys, newest first."""
        return tuple(self._keys)

    @property
    def newest(self) -> str:
        """The id of the key that seals."""
        return self.ids[0]

    def seal(self, provider: str, key_name: str, row_version: int, secret: SecretStr) -> Sealed:
        """Encrypt a secret for one row. Raises ValueError when it is longer than LONGEST_SECRET."""
        plain = secret.get_secret_value().encode()
        if len(plain) > LONGEST_SECRET:
            raise ValueError(f"a secret has at most {LONGEST_SECRET} bytes")
        framed = len(plain).to_bytes(2, "big") + plain
        framed += bytes(-len(framed) % _BLOCK)
        data_key = AESGCM.generate_key(8 * KEY_BYTES)
        key_nonce, secret_nonce = os.urandom(NONCE_BYTES), os.urandom(NONCE_BYTES)
        place = (provider, key_name, row_version, self.newest)
        return Sealed(
            *place,
            key_nonce=key_nonce,
            wrapped_key=AESGCM(self._key(self.newest)).encrypt(key_nonce, data_key, _bound("data key", *place)),
            secret_nonce=secret_nonce,
            ciphertext=AESGCM(data_key).encrypt(secret_nonce, framed, _bound("secret", *place)),
        )

    def open(self, sealed: Sealed) -> SecretStr:
        """Decrypt a secret.

        Raises UnknownMasterKey when the key that sealed it is not here, and SealBroken when anything of the row is
        not as it was sealed, or when the master key of that id is another one.
        """
        key = f"the stored key {sealed.key_name!r} of {sealed.provider}"
        if sealed.master_key_id not in self._keys:
            raise UnknownMasterKey(
                f"{key} is sealed with master key {sealed.master_key_id!r}, which is not among those set "
                f"({', '.join(self.ids)}). Add it to PRICING_MASTER_KEY or its file, or set the key again."
            )
        place = (sealed.provider, sealed.key_name, sealed.row_version, sealed.master_key_id)
        try:
            master = AESGCM(self._key(sealed.master_key_id))
            data_key = master.decrypt(sealed.key_nonce, sealed.wrapped_key, _bound("data key", *place))
            framed = AESGCM(data_key).decrypt(sealed.secret_nonce, sealed.ciphertext, _bound("secret", *place))
        except (InvalidTag, ValueError):  # ValueError: a nonce of a length that cannot be
            raise SealBroken(
                f"{key} does not open: its row in pricing.provider_credentials was changed or copied from another "
                f"one, or master key {sealed.master_key_id!r} is not the one that sealed it. Set the key again."
            ) from None
        return SecretStr(framed[2 : 2 + int.from_bytes(framed[:2], "big")].decode())

    def _key(self, name: str) -> bytes:
        return self._keys[name].get_secret_value()


def new_key(name: str) -> str:
    """A new master key, as the line that `Keyring.parse` reads."""
    return f"{name}:{base64.b64encode(os.urandom(KEY_BYTES)).decode()}"


def _bound(purpose: str, *place: object) -> bytes:
    """The data that a ciphertext is bound to. Its length precedes each part, so that no two places look the same."""
    parts = [str(part).encode() for part in ("pricing-pipeline credential 1", purpose, *place)]
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)
