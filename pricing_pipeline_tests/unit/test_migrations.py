"""Migrations that somebody may have run already stay as they are: what they did not do is for the next one."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

MIGRATIONS = Path(__file__).parents[2] / "migrations/versions"

RELEASED = {
    "0001_initial.sql": "7fd1b7056bb66e27",
    "0002_lifecycle.sql": "f02a67f8579befed",
    "0003_demand.sql": "9f9151fe484d7fc1",
    "0004_limits.sql": "a041e21541b72655",
    "0005_roles.sql": "81dd61ab70aa8886",
    "0006_documents.sql": "ede70b13909d6636",
    "0007_credentials.sql": "79e4d1e2bdee1138",
    "0008_quarantine.sql": "07304766f292349d",
    "0009_indexes.sql": "3e1f575e095e90d2",
    "0010_actions.sql": "e181fbe0d27f8450",
    "0011_calendars.sql": "43b08e7ca2cf270e",
    "0012_reviews.sql": "84e4f95533f2f9ce",
    "0013_action_lists.sql": "cc45d030b46e6cb6",
    "0014_room_for_claims.sql": "214fdd7bf3a3dd6c",
    "0015_one_check.sql": "ba2f1d9516b345c1",
    "0016_bars_as_they_are.sql": "517ed77ede05b0c0",
    "0017_second_opinions.sql": "495481ac95259971",
    "0018_often_written.sql": "04ffed9641c6db7f",
    "0019_nobody_waits.sql": "880ac270c8910698",
    "0020_going_on.sql": "3975d00eecc6e9a3",
    "0021_shared_checks.sql": "7d63e94b6d0019a1",
    "0022_fewer_checks.sql": "fcf6bcb64c913885",
    "0023_one_type.sql": "ea966fb8f0e1e83d",
    "0024_queued_in_place.sql": "904641650f4dbafe",
    "0025_claims_move.sql": "db4f4fe1691bf26b",
    "0026_clock_steps.sql": "c24d6176e2652d48",
    "0027_outages.sql": "6b2529afdc5cac76",
    "0028_nobodys_session.sql": "c6af13e61e3eb6fe",
    "0029_fair_claims.sql": "3254a013c5ce72b8",
    "0030_parts_of_bars.sql": "001a7b0ffa3622af",
    "0031_what_answers_mean.sql": "123f12636f48cc39",
    "0032_nothing_skipped.sql": "87d875c42a4af609",
    "0033_trouble_ends.sql": "a71901bf0693a628",
    "0034_coins.sql": "8c5947a1196a591a",
    "0035_lists.sql": "9b913d63e22c7c91",
    "0036_days_unread.sql": "51ead790091dc7e3",
    "0037_reads_without_locks.sql": "2a133a8412829d9b",
    "0038_owners.sql": "c64c5444d4fb728f",
    "0039_room.sql": "d62e9ba95f03a977",
    "0040_readers.sql": "0448bfabce1422bf",
    "0041_bases.sql": "268cb179100a2ba4",
    "0042_shared_spans.sql": "6816b10ab7fe1116",
    "0043_ledgers.sql": "d63cfb91184d8e8a",
    "0044_own_requests.sql": "31a11b7ac8051ec0",
    "0045_replaced_at.sql": "84d334cf9df6729e",
}
"""The beginning of each one's SHA-256. A new migration gets its line here; a line is never changed."""


def test_no_migration_is_edited_once_it_is_out() -> None:
    found = {path.name: sha256(path.read_bytes()).hexdigest()[:16] for path in MIGRATIONS.glob("*.sql")}
    assert found == RELEASED
