-- name: type
INSERT INTO pricing.operation_types (operation_type, description, payload_fields)
VALUES ('no_op', 'Does nothing.', '{"number": "number"}');

-- name: fill
SELECT count(pricing.enqueue_operation('no_op', jsonb_build_object('number', n))) FROM generate_series(1, %(operations)s) AS n;

-- name: heartbeat
SELECT pricing.heartbeat('alice', ARRAY['equity_quote', 'equity_quote', 'equity_daily'], ARRAY['AAPL', 'MSFT', 'AAPL']);

-- name: enqueue
SELECT pricing.enqueue_operation('no_op', '{"number": 1}');
