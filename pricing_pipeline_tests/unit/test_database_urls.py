"""URLs of the database, also of several hosts, as libpq writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import URL, make_url

from pricing_pipeline.db.engine import checked_url, libpq_url, masked
from pricing_pipeline.errors import SettingsError


@pytest.mark.parametrize(
    ("url", "hosts", "ports"),
    [
        ("postgresql://ann:secret@db1:5432,db2:5433/pricing", "db1,db2", "5432,5433"),
        ("postgresql://ann:secret@db1,[::1]:5433/pricing", "db1,::1", ",5433"),
        ("postgresql://ann:secret@/pricing?host=/a,/b&port=1,2", "/a,/b", "1,2"),
    ],
)
def test_b11_of_several_hosts_the_one_that_takes_writes_is_meant(url: str, hosts: str, ports: str) -> None:
    parsed = checked_url(url)
    assert dict(parsed.query) == {"host": hosts, "port": ports, "target_session_attrs": "read-write"}
    assert (parsed.username, parsed.password, parsed.database) == ("ann", "secret", "pricing")
    assert "secret" not in masked(url)


def test_what_a_url_says_itself_stays() -> None:
    url = "postgresql://db1:1,db2:2/pricing?target_session_attrs=any&sslmode=require"
    assert checked_url(url).query["target_session_attrs"] == "any"
    assert checked_url(url).query["sslmode"] == "require"
    assert "target_session_attrs" not in checked_url("postgresql://db1:1/pricing").query


def test_a_port_that_is_no_number_is_refused_without_the_password() -> None:
    with pytest.raises(SettingsError, match="PRICING_LISTEN_URL is not a database URL") as refused:
        checked_url("postgresql://ann:secret@db1:x,db2:2/pricing", "PRICING_LISTEN_URL")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("password", ["sek,ret", "12,34", ",secret", "1,2,3"])
def test_a4_a_comma_in_a_password_makes_no_hosts_of_it(password: str) -> None:
    """Its parts would be looked up as hosts, and shown."""
    parsed = checked_url(f"postgresql://ann:{password}@db1:5432/pricing")
    assert (parsed.username, parsed.password, parsed.host, parsed.query) == ("ann", password, "db1", {})


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:pa55@ret@db1:5432/pricing",
        "postgresql://ann:pa55@1,2@db1:5432/pricing",
        "postgresql://ann:pa55,1,2/ret@db1/pricing",
        "postgresql://ann:pa55,1,2?ret@db1/pricing",
        "postgresql://db1:5432/pricing?user=ann&password=pa55@ret",
        "postgresql://db1:1,db2:2/pricing?password=pa55@ret",
    ],
)
def test_a4_a_url_of_which_a_part_of_the_password_would_be_a_host_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="%40") as refused:
        checked_url(url)
    assert "ret" not in str(refused.value)
    assert "1,2" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:pa55/ret?x#y@db1:5432/pricing",
        "postgresql://ann:pa55%40ret%2C@db1,db2/pricing?application_name=a%40b",
        "postgresql:///pricing?host=/tmp/a%40b&user=ann&password=x",
    ],
)
def test_a_url_with_one_meaning_is_taken(url: str) -> None:
    assert checked_url(url).database == "pricing"


WORDS = st.text("ab c+%&=?@/:,#é", min_size=1)


@given(WORDS, WORDS, WORDS, WORDS)
def test_libpq_and_sqlalchemy_read_the_same_in_a_url_that_is_shown(
    user: str, password: str, database: str, folder: str
) -> None:
    query = {"host": f"/tmp/{folder}", "password": f"+ {password}"}
    url = URL.create("postgresql", user, password, database=f"a{database}", query=query)
    assert make_url(libpq_url(url)) == url
    read = conninfo_to_dict(libpq_url(url.difference_update_query(["password"])))
    assert read == {"user": user, "password": password, "dbname": url.database, "host": query["host"]}
    assert conninfo_to_dict(libpq_url(url.set(password="x")))["password"] == query["password"]


def test_a_space_in_the_folder_is_shown_as_libpq_reads_it() -> None:
    url = "postgresql://ann:secret@/pricing?host=%2Ftmp%2Fnew%20comer"
    assert masked(url) == "postgresql://ann:***@/pricing?host=%2Ftmp%2Fnew%20comer"
