-- name: arrange
UPDATE pricing.provider_capabilities SET batch_size = 50, window_batch_size = 50 WHERE provider = 'twelvedata';
DELETE FROM pricing.provider_limits WHERE provider = 'twelvedata';

-- name: enqueue
SELECT pricing.enqueue('equity_quote', array_agg('S' || i), array_agg((mod(i, 7))::integer)) FROM generate_series(1, %(tasks)s) AS i;

-- name: watch
INSERT INTO pricing.demand (data_type, symbol, due_at, became_due_at)
SELECT 'equity_quote', 'S' || i, now(), now() FROM generate_series(1, %(tasks)s) AS i
ON CONFLICT (data_type, symbol) DO UPDATE SET (due_at, became_due_at) = (excluded.due_at, excluded.became_due_at);

-- name: bare_schema
CREATE TABLE live (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, data_type text NOT NULL, symbol text NOT NULL,
    priority integer NOT NULL, status text NOT NULL DEFAULT 'pending', claim_token uuid, lease_until timestamptz,
    UNIQUE (data_type, symbol)) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX ON live (priority DESC, id) WHERE status = 'pending';
CREATE TABLE done (
    id bigint PRIMARY KEY, data_type text NOT NULL, symbol text NOT NULL, priority integer NOT NULL,
    claim_token uuid NOT NULL, finished_at timestamptz NOT NULL);

-- name: bare_enqueue
INSERT INTO live (data_type, symbol, priority)
SELECT 'equity_quote', 'S' || i, mod(i, 7) FROM generate_series(1, %(tasks)s) AS i;

-- name: bare_claim
WITH next AS MATERIALIZED (
    SELECT id FROM live WHERE status = 'pending' ORDER BY priority DESC, id LIMIT %(batch)s FOR UPDATE SKIP LOCKED)
UPDATE live SET status = 'processing', claim_token = %(token)s, lease_until = clock_timestamp() + interval '60 s'
FROM next WHERE live.id = next.id
RETURNING live.id, live.data_type, live.symbol, live.priority;

-- name: bare_finish
WITH gone AS (
    DELETE FROM live WHERE id = ANY (%(ids)s) AND claim_token = %(token)s RETURNING *)
INSERT INTO done SELECT id, data_type, symbol, priority, claim_token, clock_timestamp() FROM gone;

-- name: look
SELECT count(*) FROM pricing.api_call_queue_live;
