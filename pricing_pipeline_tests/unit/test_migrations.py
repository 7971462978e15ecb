"""Migrations that somebody may have run already stay as they are: what they did not do is for the next one."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

MIGRATIONS = Path(__file__).parents[2] / "migrations/versions"

RELEASED = {
    "0043_baseline.sql": "1b3efe781873b854",
    "0044_own_requests.sql": "31a11b7ac8051ec0",
    "0045_replaced_at.sql": "84d334cf9df6729e",
    "0046_due_pairs.sql": "521fc0d6310bd44a",
    "0047_words.sql": "c0455cc85a7da2e2",
    "0048_quarantined.sql": "7e2c5941b73bb4fd",
    "0049_provider_plans.sql": "11f3ca2593d6fe2b",
    "0050_provider_symbols.sql": "6544f09cd6e35c9f",
    "0051_shown_limits.sql": "53cb60472451cdc8",
    "0052_spellings.sql": "ae33286950748d5d",
    "0053_operations.sql": "55fef41f9d44f485",
    "0054_alerts.sql": "1b2b773edd1ba9ff",
    "0055_price_alerts.sql": "382af5b6c66a0d60",
    "0056_own_operations.sql": "3faf0250b9cee232",
    "0057_watched_notifier.sql": "cd83eba93de0bdbf",
    "0058_dagster_failures.sql": "49e33fd19fd57d3c",
    "0059_api_tokens.sql": "35b62a669ec71b3f",
    "0060_told_first.sql": "7c4123f5fd594fc4",
    "0061_ttl_stretches.sql": "884bbd89f3018fdc",
    "0062_token_expiry.sql": "1249911d37d3d7f5",
    "0063_stream.sql": "91f5e67b2322a6be",
    "0064_health.sql": "d4f99e79a42305ee",
    "0065_stops.sql": "fd82a7c7407816d8",
    "0066_alerts_of_users.sql": "37212c1ea12949dd",
    "0067_stream_log.sql": "1cbb42f4defa7bab",
    "0068_contents.sql": "a3e7fc6411e7d041",
    "0069_pages.sql": "014f3f34158e622a",
    "0070_inventory.sql": "5b8af5f2d2ccb9e5",
    "0071_partners.sql": "ab9a075ce521fc37",
    "0072_commodities.sql": "a3896ddde9dc2378",
    "0073_provider_declarations.sql": "c1166be2279fcdd2",
    "0074_uex.sql": "58da79a93cae9f4d",
    "0075_exports.sql": "2071b114ff4b1537",
    "0076_several_drains.sql": "2a2102277fd3cf7a",
    "0077_clock_row.sql": "af8eda27e58c9f53",
    "0078_prices_from.sql": "1ec749ec45e28f42",
    "0079_coming_files.sql": "5a950b47913578b7",
    "0080_listed_products.sql": "634300ff813c151c",
    "0081_known_zones.sql": "21118e19be5c5939",
    "0082_lock_products.sql": "402683c650aa71a4",
    "0083_game_versions.sql": "21c290ad17ab8e77",
    "0084_reload_for_providers.sql": "4834f9463d0b0c0b",
    "0085_source_old.sql": "8a3b6690001e2ea5",
}
"""The beginning of each one's SHA-256. A new migration gets its line here; a line is never changed."""


def test_no_migration_is_edited_once_it_is_out() -> None:
    found = {path.name: sha256(path.read_bytes()).hexdigest()[:16] for path in MIGRATIONS.glob("*.sql")}
    assert found == RELEASED
