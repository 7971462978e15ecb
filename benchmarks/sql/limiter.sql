-- name: limit
DELETE FROM pricing.provider_limits WHERE provider = 'twelvedata';
INSERT INTO pricing.provider_limits (provider, name, units, window_seconds) VALUES ('twelvedata', 'benchmark', %(units)s, %(seconds)s);

-- name: batch
UPDATE pricing.provider_capabilities SET batch_size = %(symbols)s WHERE provider = 'twelvedata' AND fetcher = 'quote';

-- name: enqueue
SELECT pricing.enqueue('equity_quote', array_agg('S' || i), array_agg(1)) FROM generate_series(1, %(tasks)s) AS i;

-- name: look_table
CREATE TABLE public.looked (at timestamptz NOT NULL);
CREATE INDEX ON public.looked (at);

-- name: look
SELECT extract(epoch FROM clock_timestamp() - max(at))::float8 FROM public.looked;

-- name: note
INSERT INTO public.looked VALUES (clock_timestamp());
