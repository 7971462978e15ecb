"""Which addresses are of the public internet, held against the registries of IANA and Python's own reading of them."""

from __future__ import annotations

import ipaddress
import random
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import pytest

from pricing_pipeline.errors import SettingsError
from pricing_pipeline.providers.transport import checked_base_url, is_public

_REGISTRIES = """
0.0.0.0/8 this network (RFC 791)
0.0.0.0/32 this host (RFC 1122)
10.0.0.0/8 private use (RFC 1918)
100.64.0.0/10 shared address space (RFC 6598)
127.0.0.0/8 loopback (RFC 1122)
169.254.0.0/16 link local (RFC 3927)
172.16.0.0/12 private use (RFC 1918)
192.0.0.0/24 protocol assignments (RFC 6890)
192.0.0.0/29 service continuity (RFC 7335)
192.0.0.8/32 dummy address (RFC 7600)
192.0.0.9/32 port control anycast (RFC 7723)
192.0.0.10/32 TURN anycast (RFC 8155)
192.0.0.170/32 NAT64 discovery (RFC 8880)
192.0.0.171/32 NAT64 discovery (RFC 8880)
192.0.2.0/24 documentation (RFC 5737)
192.31.196.0/24 AS112 (RFC 7535)
192.52.193.0/24 AMT (RFC 7450)
192.88.99.0/24 deprecated 6to4 relays (RFC 7526)
192.88.99.2/32 6a44 relays (RFC 6751)
192.168.0.0/16 private use (RFC 1918)
192.175.48.0/24 direct delegation AS112 (RFC 7534)
198.18.0.0/15 benchmarking (RFC 2544)
198.51.100.0/24 documentation (RFC 5737)
203.0.113.0/24 documentation (RFC 5737)
240.0.0.0/4 reserved (RFC 1112)
255.255.255.255/32 limited broadcast (RFC 8190)
::1/128 loopback (RFC 4291)
::/128 unspecified (RFC 4291)
::ffff:0:0/96 IPv4-mapped (RFC 4291)
64:ff9b:1::/48 local translation (RFC 8215)
100::/64 discard only (RFC 6666)
100:0:0:1::/64 dummy prefix (RFC 9780)
2001::/23 protocol assignments (RFC 2928)
2001::/32 Teredo (RFC 4380)
2001:1::1/128 port control anycast (RFC 7723)
2001:1::2/128 TURN anycast (RFC 8155)
2001:1::3/128 service registration anycast (RFC 9665)
2001:2::/48 benchmarking (RFC 5180)
2001:3::/32 AMT (RFC 7450)
2001:4:112::/48 AS112 (RFC 7535)
2001:10::/28 deprecated ORCHID (RFC 4843)
2001:20::/28 ORCHIDv2 (RFC 7343)
2001:30::/28 remote identification of drones (RFC 9374)
2001:db8::/32 documentation (RFC 3849)
2002::/16 6to4 (RFC 3056)
2620:4f:8000::/48 direct delegation AS112 (RFC 7534)
3fff::/20 documentation (RFC 9637)
5f00::/16 segment routing (RFC 9602)
fc00::/7 unique local (RFC 4193)
fe80::/10 link local (RFC 4291)
"""
"""The special-purpose registries of IANA for IPv4 and IPv6. 64:ff9b::/96 (RFC 6052) is left out: the address in it
decides. Multicast (224.0.0.0/4, ff00::/8) has registries of its own."""
_BLOCKS = [ipaddress.ip_network(line.split()[0]) for line in _REGISTRIES.strip().splitlines()]
_MULTICAST = [IPv4Network("224.0.0.0/4"), IPv6Network("ff00::/8")]
_UNICAST = IPv6Network("2000::/3")
_CLOUD = ipaddress.ip_address("168.63.129.16")


def _edges(block: IPv4Network | IPv6Network) -> list[IPv4Address | IPv6Address]:
    return [block.network_address, block[block.num_addresses // 2], block.broadcast_address]


def _is_special(ip: IPv4Address | IPv6Address) -> bool:
    return any(ip in block for block in (*_BLOCKS, *_MULTICAST))


@pytest.mark.parametrize("block", [*_BLOCKS, *_MULTICAST], ids=str)
def test_fault_11_no_address_of_a_special_block_is_public(block: IPv4Network | IPv6Network) -> None:
    assert [ip for ip in _edges(block) if is_public(str(ip))] == []


@pytest.mark.parametrize("block", [*_BLOCKS, *_MULTICAST], ids=str)
def test_the_neighbours_of_a_block_are_public_unless_another_block_has_them(
    block: IPv4Network | IPv6Network,
) -> None:
    kind = type(block.network_address)
    numbers = int(block.network_address) - 1, int(block.broadcast_address) + 1
    for number in numbers:
        if 0 <= number < 2**block.max_prefixlen:
            ip = kind(number)
            is_unicast = isinstance(ip, IPv4Address) or ip in _UNICAST
            assert is_public(str(ip)) == (is_unicast and not _is_special(ip)), ip


def test_fault_11_nothing_is_public_that_python_knows_as_private() -> None:
    numbers = random.Random(38)
    drawn: list[IPv4Address | IPv6Address] = []
    for _ in range(400):
        drawn.append(IPv4Address(numbers.getrandbits(32)))
        drawn.append(IPv6Address(0x2001 << 112 | numbers.getrandbits(112)))
        drawn.append(IPv6Address(numbers.getrandbits(128)))
    public = [ip for ip in drawn if is_public(str(ip))]
    assert len(public) > 400
    assert [ip for ip in public if not ip.is_global or ip == _CLOUD or _is_special(ip)] == []


def test_fault_11_a_translated_address_is_judged_by_the_one_in_it() -> None:
    for block in (block for block in _BLOCKS if isinstance(block, IPv4Network)):
        assert not is_public(f"64:ff9b::{block.network_address}")
    assert is_public("64:ff9b::93.184.215.14")


@pytest.mark.parametrize("host", ["192.88.99.1", "93.184.215.14", "224.0.0.1"])
def test_a4_a_key_goes_unencrypted_to_the_own_network_alone(host: str) -> None:
    with pytest.raises(SettingsError, match="unencrypted"):
        checked_base_url("twelvedata", f"http://{host}", sends_key=True)
    assert checked_base_url("twelvedata", "http://10.0.0.1", sends_key=True) == "http://10.0.0.1"
