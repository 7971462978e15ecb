import time
from pricing_pipeline_tests.support.working import *
from pricing_pipeline.operations import figures


def test_large(core, clock):
    t = time.monotonic()
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol, currency) SELECT 'equity', 'Z'||n, 'USD' FROM generate_series(1,100000) n ON CONFLICT DO NOTHING"
    )
    core.rows(
        "INSERT INTO pricing.demand (data_type, symbol, due_at) SELECT 'equity_quote', 'Z'||n, pricing.clock() + interval '1 hour' FROM generate_series(1,100000) n"
    )
    core.rows(
        "INSERT INTO pricing.active_subscriptions (user_id, data_type, symbol) SELECT 'u'||(n%2000), 'equity_quote', 'Z'||(n%100000+1) FROM generate_series(1,300000) n ON CONFLICT DO NOTHING"
    )
    core.rows(
        "INSERT INTO pricing.api_call_queue (data_type, symbol, provider, priority) SELECT 'equity_quote', 'Z'||n, 'twelvedata', 1 FROM generate_series(1,50000) n"
    )
    core.rows(
        "INSERT INTO pricing.api_call_queue (data_type, symbol, provider, priority, status, finished_at, ring) SELECT 'equity_quote', 'Z'||n, 'twelvedata', 1, 'completed', pricing.clock() - (1000000-n)*interval '0.1 second', floor(extract(epoch FROM pricing.clock()) / 604800)::bigint % 8 FROM generate_series(1,1000000) n"
    )
    core.rows(
        "INSERT INTO pricing.collector_call_log (provider, data_type, symbols, window_start, window_end, units, reserved_bytes, worker, started_at, finished_at, outcome) SELECT 'twelvedata','equity_quote','{A}','-infinity','infinity',1,1000,'w', pricing.clock() - (500000-n)*interval '1 second', pricing.clock() - (500000-n)*interval '1 second', 'ok' FROM generate_series(1,500000) n"
    )
    print("filled", time.monotonic() - t)
    for analyzed in (False, True):
        if analyzed:
            core.rows("ANALYZE")
        for _ in range(2):
            t = time.monotonic()
            l = late(core)
            print("health", round(time.monotonic() - t, 3), l)
        for s in figures.SOURCES:
            with core.engine.connect() as c:
                t = time.monotonic()
                n = len(s.rows(c))
                print(s.name, n, round(time.monotonic() - t, 3))
    for _ in range(2):
        t = time.monotonic()
        print("count", core.call("SELECT pricing.count_task_times()"), round(time.monotonic() - t, 3))
    clock.advance(61)
    t = time.monotonic()
    print("count", core.call("SELECT pricing.count_task_times()"), round(time.monotonic() - t, 3))
    assert 0
