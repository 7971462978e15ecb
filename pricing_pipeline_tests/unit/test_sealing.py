"""A4: a sealed secret opens in its own row, with its own master key, and nowhere else."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from pydantic import SecretStr

from pricing_pipeline.errors import SealBroken, UnknownMasterKey
from pricing_pipeline.keys.sealing import LONGEST_SECRET, Keyring, Sealed, new_key

CANARY = "canary-5ecret-0123456789"
OLD, NEW = new_key("old"), new_key("new")
KEYRING = Keyring.parse([NEW, OLD])


def sealed(secret: str = CANARY, provider: str = "twelvedata", name: str = "default", version: int = 7) -> Sealed:
    return KEYRING.seal(provider, name, version, SecretStr(secret))


@pytest.mark.parametrize("secret", ["a", CANARY, "x" * 62, "x" * 63, "é" * 40, "x" * LONGEST_SECRET])
def test_a4_what_was_sealed_opens(secret: str) -> None:
    assert KEYRING.open(sealed(secret)).get_secret_value() == secret


def test_a4_too_long_a_secret_is_refused_without_being_shown() -> None:
    with pytest.raises(ValueError, match="at most 4096 bytes") as refused:
        sealed("x" * (LONGEST_SECRET + 1))
    assert "xx" not in str(refused.value)


def test_a4_a_length_tells_nothing_of_a_secret() -> None:
    assert {len(sealed("x" * count).ciphertext) for count in range(1, 63)} == {64 + 16}


def test_a4_nothing_of_the_secret_or_of_a_master_key_is_in_a_sealed_row() -> None:
    shown = repr(sealed()).encode() + b"".join(bytes(str(value), "utf-8") for value in parts(sealed()).values())
    assert b"canary" not in shown
    assert NEW.partition(":")[2] not in f"{KEYRING!r} {KEYRING.__dict__!r}"
    assert repr(KEYRING) == "Keyring(new, old)"


def parts(row: Sealed) -> dict[str, object]:
    return {field.name: getattr(row, field.name) for field in fields(row)}


@pytest.mark.parametrize("part", ["key_nonce", "wrapped_key", "secret_nonce", "ciphertext"])
def test_a4_each_flipped_bit_is_noticed(part: str) -> None:
    """In the nonces, in what is encrypted, in the tags at the ends."""
    row = sealed()
    honest: bytes = getattr(row, part)
    for place in range(len(honest)):
        for bit in range(8) if place in (0, len(honest) - 17, len(honest) - 1) else (place % 8,):
            broken = bytearray(honest)
            broken[place] ^= 1 << bit
            with pytest.raises(SealBroken, match=r"'default' of twelvedata does not open.*Set the key again"):
                KEYRING.open(replace(row, **{part: bytes(broken)}))


@pytest.mark.parametrize("part", ["key_nonce", "wrapped_key", "secret_nonce", "ciphertext"])
@pytest.mark.parametrize("size", [0, 1, 15, 200])
def test_a4_parts_of_a_wrong_length_are_refused_as_well(part: str, size: int) -> None:
    with pytest.raises(SealBroken):
        KEYRING.open(replace(sealed(), **{part: bytes(size)}))


@pytest.mark.parametrize(
    "place",
    [
        {"provider": "fmp"},
        {"key_name": "second"},
        {"row_version": 8},
        {"master_key_id": "old"},
        # The same letters, cut elsewhere.
        {"provider": "twelvedatad", "key_name": "efault"},
    ],
)
def test_a4_a_secret_opens_in_its_own_row_only(place: dict[str, object]) -> None:
    row = sealed()
    with pytest.raises(SealBroken) as refused:
        KEYRING.open(replace(row, **place))
    assert refused.value.__cause__ is None
    assert CANARY not in str(refused.value)


def test_a4_two_rows_do_not_lend_each_other_anything() -> None:
    one, other = sealed("first"), sealed("second", name="second", version=8)
    for stolen in (
        {"ciphertext": other.ciphertext, "secret_nonce": other.secret_nonce},
        {"wrapped_key": other.wrapped_key, "key_nonce": other.key_nonce},
        {name: getattr(other, name) for name in ("ciphertext", "secret_nonce", "wrapped_key", "key_nonce")},
    ):
        with pytest.raises(SealBroken):
            KEYRING.open(replace(one, **stolen))


def test_a4_an_earlier_ciphertext_of_the_same_row_does_not_open_in_its_place() -> None:
    before, now = sealed("before", version=7), sealed("now", version=8)
    old_parts = {name: getattr(before, name) for name in ("ciphertext", "secret_nonce", "wrapped_key", "key_nonce")}
    with pytest.raises(SealBroken):
        KEYRING.open(replace(now, **old_parts))


def test_f9_every_key_opens_what_it_sealed_and_the_newest_seals() -> None:
    by_old = Keyring.parse([OLD]).seal("fmp", "default", 1, SecretStr(CANARY))
    assert (KEYRING.newest, by_old.master_key_id, sealed().master_key_id) == ("new", "old", "new")
    assert KEYRING.open(by_old).get_secret_value() == CANARY


def test_f9_an_unknown_master_key_is_told_by_its_id() -> None:
    with pytest.raises(UnknownMasterKey, match=r"'default' of twelvedata.*master key 'new'.*\(old\)"):
        Keyring.parse([OLD]).open(sealed())


def test_f9_a_master_key_of_the_right_name_and_other_bytes_opens_nothing() -> None:
    with pytest.raises(SealBroken, match="'new' is not the one that sealed it"):
        Keyring.parse([new_key("new")]).open(sealed())


def test_a4_no_nonce_or_data_key_is_used_twice() -> None:
    """96 random bits; 800 of them."""
    rows = [sealed() for _ in range(400)]
    nonces = {nonce for row in rows for nonce in (row.key_nonce, row.secret_nonce)}
    assert len(nonces) == 800
    assert {len(nonce) * 8 for nonce in nonces} == {96}
    assert len({row.ciphertext for row in rows}) == len({row.wrapped_key for row in rows}) == 400
    # Random in each bit: of 800 about half are set.
    for bit in range(96):
        count = sum(nonce[bit // 8] >> bit % 8 & 1 for nonce in nonces)
        assert 300 < count < 500


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([], "holds no key"),
        (["canary"], "key 1 is not id:base64"),
        (["a:canary"], "key 1 is not id:base64"),
        (["A b:" + "A" * 43 + "="], "key 1 is not id:base64"),
        (["a:" + "A" * 42 + "=="], "32 bytes"),
        ([NEW, OLD + "canary"], "key 2 is not id:base64"),
        ([NEW, "new:" + OLD.partition(":")[2]], "key 2 has the id of another one"),
    ],
)
def test_f9_a_wrong_master_key_is_told_without_repeating_it(lines: list[str], told: str) -> None:
    with pytest.raises(ValueError, match=told) as refused:
        Keyring.parse(lines)
    assert "canary" not in str(refused.value)
    assert OLD.partition(":")[2] not in str(refused.value)
