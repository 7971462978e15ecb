-- name: store
SELECT count(*) FROM pricing.merge_prices(
    'equity_quote', 'twelvedata', 1, true, %(symbols)s::text[], array_fill(clock_timestamp(), ARRAY[%(count)s]),
    array_fill(%(amount)s::bigint, ARRAY[%(count)s]), array_fill(NULL::bigint, ARRAY[%(count)s]),
    array_fill(NULL::bigint, ARRAY[%(count)s]), array_fill(NULL::bigint, ARRAY[%(count)s]),
    array_fill(2::smallint, ARRAY[%(count)s]), array_fill('USD'::text, ARRAY[%(count)s]),
    array_fill(NULL::numeric, ARRAY[%(count)s]), array_fill('x'::text, ARRAY[%(count)s]),
    array_fill('raw'::text, ARRAY[%(count)s]));

-- name: events
SELECT position FROM pricing.stream_head;
