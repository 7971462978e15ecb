def test_it(core, clock):
    core.heartbeat("ann", ("equity_quote", "AAPL"))
    core.refresh()
    clock.advance(700)
    print(core.rows("SELECT id, ring, status, finished_at, enqueued_at, ctid, tableoid::regclass FROM pricing.api_call_queue"))
    print(core.rows("SELECT pg_relation_size('pricing.api_call_queue_completed_3'), pricing.clock(), floor(extract(epoch FROM pricing.clock()) / 604800)::bigint % 8"))
    print(core.rows("SELECT pricing.count_task_times()"))
    print(core.rows("SELECT * FROM pricing.task_times"))
    assert 0
