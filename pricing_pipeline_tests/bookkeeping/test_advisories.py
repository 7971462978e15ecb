"""`make audit` lists known vulnerabilities of locked packages, from a file where there is no internet."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from pricing_pipeline_tests.tools.advisories import LOCKS, ROOT, audit, audit_from, locked, main

ADVISORY = {
    "id": "GHSA-2222-2222-2222",
    "summary": "It gives everything away",
    "modified": "2026-01-01T00:00:00Z",
    "affected": [
        {
            "package": {"name": "alembic", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "9.9"}]}],
        }
    ],
}


def test_an_order_that_uv_does_not_know_is_a_failure(capfd: pytest.CaptureFixture[str]) -> None:
    """Else a newer uv that is asked in the old way would be taken for a service that is away."""
    assert audit(locked(), ["--no-such-option"]) == 2
    assert "no-such-option" in capfd.readouterr().err


def affecting(name: str, *events: dict[str, str], **more: Any) -> dict[str, Any]:
    """An advisory about a package, by a range of versions."""
    package = {"name": name, "ecosystem": "PyPI"}
    ranges = [{"type": "ECOSYSTEM", "events": list(events)}] if events else []
    return ADVISORY | {"affected": [{"package": package, "ranges": ranges, **more}]}


EVERY = {"introduced": "0"}


@pytest.mark.parametrize("form", ["list", "answer", "folder", "zip"])
def test_without_the_internet_a_file_of_advisories_is_read(
    form: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    advisories = [affecting("no-such-package", EVERY), affecting("Alembic", EVERY, {"fixed": "9.9"})]
    source = tmp_path / "advisories"
    if form in ("list", "answer"):
        content = {"list": advisories, "answer": {"vulns": advisories}}[form]
        source.write_text(json.dumps(content))
    elif form == "folder":
        (source / "deep").mkdir(parents=True)
        for number, advisory in enumerate(advisories):
            (source / "deep" / f"{number}.json").write_text(json.dumps(advisory))
    else:
        with zipfile.ZipFile(source, "w") as archive:
            for number, advisory in enumerate(advisories):
                archive.writestr(f"{number}.json", json.dumps(advisory))
    assert main(["--from", str(source)]) == 1
    first, last = capfd.readouterr().out.splitlines()
    version = dict(locked())["alembic"]
    assert first == f"alembic {version}: GHSA-2222-2222-2222, fixed in 9.9. It gives everything away"
    assert last.startswith(f"1 known in {len(locked())} locked packages, by ")


def test_a_file_finds_what_any_lock_file_has(tmp_path: Path) -> None:
    source = tmp_path / "advisories.json"
    for name in LOCKS:
        package = next(line for line in (ROOT / name).read_text().splitlines() if "==" in line).partition("==")[0]
        source.write_text(json.dumps(affecting(package, EVERY)))
        assert audit_from(locked(), source) == 1, name


@pytest.mark.parametrize(
    ("advisory", "is_known"),
    [
        (affecting("a", versions=["1.4", "1.5.0"]), True),
        (affecting("a", versions=["1.4", "not a version"]), False),
        (affecting("a", {"introduced": "not a version"}), True),
        (affecting("a", EVERY) | {"withdrawn": "2026-01-01T00:00:00Z"}, False),
        (affecting("A_.b", EVERY), False),
    ],
)
def test_versions_are_listed_too(advisory: dict[str, Any], is_known: bool, tmp_path: Path) -> None:
    source = tmp_path / "advisories.json"
    source.write_text(json.dumps([advisory, affecting("other", EVERY)]))
    assert audit_from({("a", "1.5")}, source) == is_known


@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=6, unique=True).map(sorted),
    st.booleans(),
    st.integers(0, 21),
)
def test_ranges_agree_with_a_plain_count(tmp_path_factory: Any, ends: list[int], is_last: bool, at: int) -> None:
    """Ranges [begin, end) or, with `last_affected`, [begin, end]; the last may have no end."""
    events = [
        {("introduced" if number % 2 == 0 else "last_affected" if is_last else "fixed"): str(end)}
        for number, end in enumerate(ends)
    ]
    pairs = [(begin, end) for begin, end in zip(ends[::2], [*ends[1::2], 99], strict=False)]
    expected = any(begin <= at < end or (is_last and at == end) for begin, end in pairs)
    source = tmp_path_factory.mktemp("advisories") / "a.json"
    source.write_text(json.dumps(affecting("a", *reversed(events))))
    assert audit_from({("a", str(Version(str(at))))}, source) == expected


@pytest.mark.parametrize("content", ["", "[]", "{}", "7", '[{"affected": [7]}]', '{"affected": [{}]}'])
def test_a_file_that_could_not_find_anything_is_a_failure(
    content: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "advisories.json"
    source.write_text(content)
    assert audit_from(locked(), source) == 2
    assert str(source) in capfd.readouterr().err
    assert audit_from(locked(), tmp_path / "nothing") == 2
