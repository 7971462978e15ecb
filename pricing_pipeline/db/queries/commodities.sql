-- name: merge
-- Store prices of terminals.
SELECT symbol, added, revised, is_stale_source FROM pricing.merge_commodity_prices(
    :provider, :call_id, CAST(:terminals AS text[]), CAST(:terminal_names AS text[]), CAST(:terminal_codes AS text[]), CAST(:whole AS boolean[]),
    CAST(:symbols AS text[]), CAST(:commodity_ids AS bigint[]), CAST(:names AS text[]), CAST(:codes AS text[]), CAST(:slugs AS text[]),
    CAST(:buys AS bigint[]), CAST(:sells AS bigint[]), CAST(:stocks AS bigint[]), CAST(:demands AS bigint[]), CAST(:versions AS text[]),
    CAST(:stamps AS timestamptz[]));

-- name: confirm
-- Note that a provider has answered for these terminals, whatever it said; their instruments are known to it.
SELECT pricing.confirm_pairs(:data_type, CAST(:symbols AS text[]), :provider, :call_id),
       pricing.verify_instruments(:data_type, CAST(:symbols AS text[]), NULL);

-- name: types
-- The active data types of prices of terminals, by name.
SELECT data_type FROM pricing.data_type_registry WHERE is_active AND fetcher = 'terminal_prices' ORDER BY data_type;

-- name: go_live
-- People now play this version of the game; whether that is new.
SELECT pricing.go_live(:version);

-- name: merge_terminals
-- Store the list of terminals.
SELECT added, revised, vanished FROM pricing.merge_terminals(
    :call_id, :is_whole, CAST(:symbols AS text[]), CAST(:names AS text[]), CAST(:codes AS text[]), CAST(:systems AS text[]),
    CAST(:planets AS text[]), CAST(:moons AS text[]), CAST(:places AS text[]), CAST(:available AS boolean[]), CAST(:stamps AS timestamptz[]));

-- name: merge_commodities
-- Store the list of commodities.
SELECT added, revised, vanished FROM pricing.merge_commodities(
    :call_id, :is_whole, CAST(:ids AS bigint[]), CAST(:names AS text[]), CAST(:codes AS text[]), CAST(:slugs AS text[]),
    CAST(:kinds AS text[]), CAST(:available AS boolean[]));

-- name: claim
-- Take one call for a list, or learn why none may be made now, and for how long.
SELECT refusal, wait_seconds, key_name, call_id, claimed_at
FROM pricing.claim_etl_call(:provider, :data_type, CAST(:keys AS text[]), :who);

-- name: warn
-- Note what went wrong in an ETL.
INSERT INTO pricing.etl_warnings (etl, run, step, kind, message, warned_at)
VALUES (:etl, :run, :step, :kind, left(:message, 1000), pricing.clock());

-- name: forget_warnings
-- Delete warnings that are older than 90 days.
DELETE FROM pricing.etl_warnings WHERE warned_at < pricing.clock() - interval '90 days';
