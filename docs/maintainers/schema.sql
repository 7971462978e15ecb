-- The database in one place: what `db upgrade` makes of an empty one. To be read, not run: columns and constraints
-- stand one to a line without commas, functions without bodies (pricing_pipeline/db/functions/ has them).
-- Written by `make pages`; a test compares it with a migrated database. What each data type adds is not here: its
-- table partition pricing.price_history_<data_type> and its view pricing.latest_price_<data_type>.

-- Everything of the price-refresh pipeline. Times are timestamptz; money is an integer with its scale.
CREATE SCHEMA pricing;
GRANT USAGE ON SCHEMA pricing TO pricing_client;
GRANT USAGE ON SCHEMA pricing TO pricing_reader;
GRANT USAGE ON SCHEMA pricing TO pricing_worker;
ALTER DEFAULT PRIVILEGES IN SCHEMA pricing GRANT EXECUTE ON FUNCTIONS TO pricing_worker;
ALTER DEFAULT PRIVILEGES IN SCHEMA pricing GRANT SELECT ON TABLES TO pricing_reader;
ALTER DEFAULT PRIVILEGES IN SCHEMA pricing GRANT SELECT ON TABLES TO pricing_worker;
ALTER DEFAULT PRIVILEGES IN SCHEMA pricing GRANT SELECT, USAGE ON SEQUENCES TO pricing_worker;
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;

-- What a breaker lets through: closed = all calls, open = none, half_open = one probe.
CREATE DOMAIN pricing.breaker_position AS text CONSTRAINT breaker_is_known CHECK ((VALUE = ANY (ARRAY['closed'::text,
    'open'::text, 'half_open'::text])));

-- What became of a call: open = nothing yet, ok = answered, failed = not answered or refused, unknown = its worker was
-- lost.
CREATE DOMAIN pricing.call_outcome AS text CONSTRAINT outcome_is_known CHECK ((VALUE = ANY (ARRAY['open'::text,
    'ok'::text, 'failed'::text, 'unknown'::text])));

-- Who watches or holds something: 1 to 200 characters.
CREATE DOMAIN pricing.user_name AS text CONSTRAINT user_is_sane CHECK (((length(VALUE) >= 1) AND (length(VALUE) <=
    200)));


CREATE SEQUENCE pricing.alert_silences_silence_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.alert_silences_silence_id_seq TO pricing_worker;


CREATE SEQUENCE pricing.alerts_alert_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.alerts_alert_id_seq TO pricing_worker;


CREATE SEQUENCE pricing.api_tokens_token_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.api_tokens_token_id_seq TO pricing_worker;

-- Numbers calls.
CREATE SEQUENCE pricing.call_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.call_id_seq TO pricing_worker;

-- Versions of rows of provider_credentials, each used once, so that no two ciphertexts are bound to the same version.
CREATE SEQUENCE pricing.credential_version_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.credential_version_seq TO pricing_worker;


CREATE SEQUENCE pricing.etl_warnings_warning_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.etl_warnings_warning_id_seq TO pricing_worker;

-- Numbers side effects.
CREATE SEQUENCE pricing.operation_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.operation_id_seq TO pricing_worker;


CREATE SEQUENCE pricing.outages_outage_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.outages_outage_id_seq TO pricing_worker;


CREATE SEQUENCE pricing.pair_requests_request_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.pair_requests_request_id_seq TO pricing_worker;


CREATE SEQUENCE pricing.pax_categories_category_key_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.pax_categories_category_key_seq TO pricing_worker;


CREATE SEQUENCE pricing.price_alerts_price_alert_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.price_alerts_price_alert_id_seq TO pricing_worker;


CREATE SEQUENCE pricing.price_events_event_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.price_events_event_id_seq TO pricing_worker;


CREATE SEQUENCE pricing.quarantined_values_value_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.quarantined_values_value_id_seq TO pricing_worker;

-- Rises before tasks come or change their place in the order of claims.
CREATE SEQUENCE pricing.queue_change_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.queue_change_seq TO pricing_worker;


CREATE SEQUENCE pricing.restatements_restatement_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.restatements_restatement_id_seq TO pricing_worker;


CREATE SEQUENCE pricing.slots_slot_key_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.slots_slot_key_seq TO pricing_worker;

-- Numbers tasks.
CREATE SEQUENCE pricing.task_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.task_id_seq TO pricing_worker;


CREATE SEQUENCE pricing.warnings_warning_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.warnings_warning_id_seq TO pricing_worker;

-- Trading days, recent or between stored ones, whose value an answer should have had and lacked, until it comes.
CREATE TABLE pricing.absent_days (
    data_type text NOT NULL  -- The data type.
    symbol text NOT NULL  -- The symbol.
    day date NOT NULL  -- The trading day.
    asked integer NOT NULL DEFAULT 0  -- How often it was asked for again.
    ask_at timestamp with time zone NOT NULL  -- When it is requested next, unless an answer brings it before.
    CONSTRAINT absent_days_pkey PRIMARY KEY (data_type, symbol, day)
);
CREATE INDEX absent_days_due ON pricing.absent_days USING btree (ask_at);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.absent_days TO pricing_worker;
GRANT SELECT ON TABLE pricing.absent_days TO pricing_reader;

-- Who watches what, kept alive by heartbeats and removed on leaving or after 5 silent minutes.
CREATE TABLE pricing.active_subscriptions (
    user_id pricing.user_name NOT NULL  -- The viewer: the session's login, or the user that a worker names.
    data_type text NOT NULL  -- The data type.
    symbol text NOT NULL  -- The symbol.
    -- Since when, without a pause of five minutes.
    subscribed_at timestamp with time zone NOT NULL DEFAULT pricing.clock()
    -- The last heartbeat, by the database's clock; otherwise only a clock that was set back changes it.
    last_seen_at timestamp with time zone NOT NULL DEFAULT pricing.clock()
    CONSTRAINT active_subscriptions_pkey PRIMARY KEY (user_id, data_type, symbol)
) WITH (fillfactor=70);
CREATE INDEX active_subscriptions_pair ON pricing.active_subscriptions USING btree (data_type, symbol);
ALTER TABLE pricing.active_subscriptions ENABLE ROW LEVEL SECURITY;
-- A reader sees no rows of another login.
CREATE POLICY reader_sees_own ON pricing.active_subscriptions FOR SELECT TO pricing_reader USING (((user_id)::text =
    (SESSION_USER)::text));
-- A worker acts for every user.
CREATE POLICY worker_serves_all ON pricing.active_subscriptions FOR ALL TO pricing_worker USING (true) WITH CHECK
    (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.active_subscriptions TO pricing_worker;
GRANT SELECT ON TABLE pricing.active_subscriptions TO pricing_reader;

-- Which migrations the database has had.
CREATE TABLE pricing.alembic_version (
    version_num character varying(32) NOT NULL  -- The last migration that was run.
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
GRANT SELECT ON TABLE pricing.alembic_version TO pricing_worker;

-- Alerts that are not told for a while.
CREATE TABLE pricing.alert_silences (
    silence_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- In the order in which they were made.
    rule text NOT NULL  -- Alerts of this rule.
    subject text  -- Only those about this subject; NULL = all.
    until timestamp with time zone NOT NULL  -- When the silence ends.
    silenced_by text NOT NULL  -- Who made it.
    because text  -- Why.
    created_at timestamp with time zone NOT NULL  -- When it was made.
    CONSTRAINT alert_silences_pkey PRIMARY KEY (silence_id)
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.alert_silences TO pricing_worker;
GRANT SELECT ON TABLE pricing.alert_silences TO pricing_reader;

-- Trouble that was found: its subject, its beginning and end, and who was told.
CREATE TABLE pricing.alerts (
    alert_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- Numbers alerts in order.
    rule text NOT NULL  -- The rule that found it; docs/runbook.md has a section for each.
    subject text NOT NULL  -- What it is about, such as a provider or data type.
    severity text NOT NULL  -- P0 = repeated each hour, P1 = each day, P2 = in a daily digest.
    says text NOT NULL  -- What was found, in words, as it was last seen.
    is_repeated boolean NOT NULL DEFAULT true  -- Whether recipients are told again while it lasts.
    since timestamp with time zone NOT NULL  -- When it was first seen.
    last_seen_at timestamp with time zone NOT NULL  -- When it was last seen.
    raised_at timestamp with time zone  -- When it had lasted as long as its rule asks; NULL = not yet.
    told_at timestamp with time zone  -- When recipients were last told.
    resolved_at timestamp with time zone  -- When it was over; NULL = it is not.
    end_told_at timestamp with time zone  -- When recipients were told that it was over.
    acknowledged_at timestamp with time zone  -- When somebody acknowledged it: it is no longer repeated.
    acknowledged_by text  -- Who acknowledged it.
    newest_at timestamp with time zone  -- When the newest event of it happened; NULL = its rule counts no events.
    told_newest_at timestamp with time zone  -- newest_at when recipients were last told; newer events are told, too.
    -- The last fifty operations that told recipients of it or of its end.
    message_ids bigint[] NOT NULL DEFAULT '{}'::bigint[]
    CONSTRAINT alerts_pkey PRIMARY KEY (alert_id)
    CONSTRAINT alert_severity_is_known CHECK ((severity = ANY (ARRAY['P0'::text, 'P1'::text, 'P2'::text])))
    CONSTRAINT rule_is_plain_name CHECK ((rule ~ '^[a-z][a-z0-9_]{0,47}$'::text))
) WITH (fillfactor=70);
CREATE INDEX alerts_resolved_at ON pricing.alerts USING btree (resolved_at) WHERE (resolved_at IS NOT NULL);
CREATE UNIQUE INDEX alerts_open ON pricing.alerts USING btree (rule, subject) WHERE (resolved_at IS NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.alerts TO pricing_worker;
GRANT SELECT ON TABLE pricing.alerts TO pricing_reader;

-- The fetch queue: a row is a task to fetch one symbol of one data type, now or for a span of days.
CREATE TABLE pricing.api_call_queue (
    id bigint NOT NULL DEFAULT nextval('pricing.task_id_seq'::regclass)  -- Rises with each task, over all states.
    data_type text NOT NULL  -- The data type.
    symbol text NOT NULL  -- The symbol.
    -- -infinity..infinity = the latest price; otherwise days to backfill, both included.
    window_start date NOT NULL DEFAULT '-infinity'::date
    window_end date NOT NULL DEFAULT 'infinity'::date  -- Last day, included; see window_start.
    provider text  -- The provider, by the route when it was queued; NULL only without a route.
    -- pending, processing, scheduled (waits until run_after), completed, failed or cancelled (see
    -- docs/maintainers/state-machine.md).
    status text NOT NULL DEFAULT 'pending'::text
    -- Distinct viewers (at least 1); 0 held; -1 scheduled; -2 backfill; the highest goes first.
    priority integer NOT NULL DEFAULT 1
    cadence_minutes integer NOT NULL DEFAULT 0  -- TTL of the type in minutes: at one priority the shorter goes first.
    est_bytes bigint NOT NULL DEFAULT 50000  -- Expected wire bytes of the answer, reserved at the claim.
    enqueued_at timestamp with time zone NOT NULL DEFAULT pricing.clock()  -- When it was queued.
    run_after timestamp with time zone  -- For scheduled tasks, the earliest claim.
    attempt smallint NOT NULL DEFAULT 0  -- Counted at the claim, so that a task that kills its worker still dies.
    max_attempts smallint NOT NULL DEFAULT 4  -- Claims after which a failure is final.
    claim_token uuid  -- New with every claim; completing, failing and storing prices require it.
    claimed_at timestamp with time zone  -- When it was last claimed.
    lease_until timestamp with time zone  -- Until when the claim holds without a sign of life from its worker.
    worker text  -- The worker that claimed it last: host and process.
    call_id bigint  -- The call of its last claim, in collector_call_log.
    backfill_id uuid  -- The backfill that queued it; NULL for live work.
    errors jsonb NOT NULL DEFAULT '[]'::jsonb  -- Array of {at, attempt, kind, message}, oldest first.
    finished_at timestamp with time zone  -- When it was completed, failed or cancelled.
    failure_kind text  -- Why it is dead, in one word of docs/maintainers/state-machine.md.
    ring smallint NOT NULL DEFAULT 0  -- Week of finishing modulo 8: the leaf of a completed task.
    -- Since when nobody needs a dead task: it was cancelled, or its work has succeeded; it is deleted 90 days later.
    resolved_at timestamp with time zone
) PARTITION BY LIST (status);
CREATE TRIGGER note_queue_change BEFORE INSERT OR UPDATE ON pricing.api_call_queue FOR EACH STATEMENT EXECUTE FUNCTION
    pricing.note_queue_change();
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.api_call_queue TO pricing_worker;
GRANT SELECT ON TABLE pricing.api_call_queue TO pricing_reader;

-- Finished tasks: a ring of eight weekly leaves, whose old ones pruning empties.
CREATE TABLE pricing.api_call_queue_completed PARTITION OF pricing.api_call_queue FOR VALUES IN ('completed') PARTITION
    BY LIST (ring);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.api_call_queue_completed TO pricing_worker;
GRANT SELECT ON TABLE pricing.api_call_queue_completed TO pricing_reader;

-- Tasks finished in weeks whose number since 1970 is 0 modulo 8.
CREATE TABLE pricing.api_call_queue_completed_0 PARTITION OF pricing.api_call_queue_completed FOR VALUES IN ('0') (
    CONSTRAINT api_call_queue_completed_0_pkey PRIMARY KEY (id)
);
CREATE INDEX completed_0_backfill ON pricing.api_call_queue_completed_0 USING btree (backfill_id) WHERE (backfill_id IS
    NOT NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.api_call_queue_completed_0 TO pricing_worker;
GRANT SELECT ON TABLE pricing.api_call_queue_completed_0 TO pricing_reader;

-- Tasks finished in weeks whose number since 1970 is 1 modulo 8.
CREATE TABLE pricing.api_call_queue_completed_1 PARTITION OF pricing.api_call_queue_completed FOR VALUES IN ('1') (
    CONSTRAINT api_call_queue_completed_1_pkey PRIMARY KEY (id)
);
CREATE INDEX completed_1_backfill ON pricing.api_call_queue_completed_1 USING btree (backfill_id) WHERE (backfill_id IS
    NOT NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.api_call_queue_completed_1 TO pricing_worker;
GRANT SELECT ON TABLE pricing.api_call_queue_completed_1 TO pricing_reader;

-- Tasks finished in weeks whose number since 1970 is 2 modulo 8.
CREATE TABLE pricing.api_call_queue_completed_2 PARTITION OF pricing.api_call_queue_completed FOR VALUES IN ('2') (
    CONSTRAINT api_call_queue_completed_2_pkey PRIMARY KEY (id)
);
CREATE INDEX completed_2_backfill ON pricing.api_call_queue_completed_2 USING btree (backfill_id) WHERE (backfill_id IS
    NOT NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.api_call_queue_completed_2 TO pricing_worker;
GRANT SELECT ON TABLE pricing.api_call_queue_completed_2 TO pricing_reader;

-- Tasks finished in weeks whose number since 1970 is 3 modulo 8.
CREATE TABLE pricing.api_call_queue_completed_3 PARTITION OF pricing.api_call_queue_completed FOR VALUES IN ('3') (
    CONSTRAINT api_call_queue_completed_3_pkey PRIMARY KEY (id)
);
CREATE INDEX completed_3_backfill ON pricing.api_call_queue_completed_3 USING btree (backfill_id) WHERE (backfill_id IS
    NOT NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.api_call_queue_completed_3 TO pricing_worker;
GRANT SELECT ON TABLE pricing.api_call_queue_completed_3 TO pricing_reader;

-- Tasks finished in weeks whose number since 1970 is 4 modulo 8.
CREATE TABLE pricing.api_call_queue_completed_4 PARTITION OF pricing.api_call_queue_completed FOR VALUES IN ('4') (
    CONSTRAINT api_call_queue_completed_4_pkey PRIMARY KEY (id)
);
CREATE INDEX completed_4_backfill ON pricing.api_call_queue_completed_4 USING btree (backfill_id) WHERE (backfill_id IS
    NOT NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.api_call_queue_completed_4 TO pricing_worker;
GRANT SELECT ON TABLE pricing.api_call_queue_completed_4 TO pricing_reader;

-- Tasks finished in weeks whose number since 1970 is 5 modulo 8.
CREATE TABLE pricing.api_call_queue_completed_5 PARTITION OF pricing.api_call_queue_completed FOR VALUES IN ('5') (
    CONSTRAINT api_call_queue_completed_5_pkey PRIMARY KEY (id)
);
CREATE INDEX completed_5_backfill ON pricing.api_call_queue_completed_5 USING btree (backfill_id) WHERE (backfill_id IS
    NOT NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.api_call_queue_completed_5 TO pricing_worker;
GRANT SELECT ON TABLE pricing.api_call_queue_completed_5 TO pricing_reader;

-- Tasks finished in weeks whose number since 1970 is 6 modulo 8.
CREATE TABLE pricing.api_call_queue_completed_6 PARTITION OF pricing.api_call_queue_completed FOR VALUES IN ('6') (
    CONSTRAINT api_call_queue_completed_6_pkey PRIMARY KEY (id)
);
CREATE INDEX completed_6_backfill ON pricing.api_call_queue_completed_6 USING btree (backfill_id) WHERE (backfill_id IS
    NOT NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.api_call_queue_completed_6 TO pricing_worker;
GRANT SELECT ON TABLE pricing.api_call_queue_completed_6 TO pricing_reader;

-- Tasks finished in weeks whose number since 1970 is 7 modulo 8.
CREATE TABLE pricing.api_call_queue_completed_7 PARTITION OF pricing.api_call_queue_completed FOR VALUES IN ('7') (
    CONSTRAINT api_call_queue_completed_7_pkey PRIMARY KEY (id)
);
CREATE INDEX completed_7_backfill ON pricing.api_call_queue_completed_7 USING btree (backfill_id) WHERE (backfill_id IS
    NOT NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.api_call_queue_completed_7 TO pricing_worker;
GRANT SELECT ON TABLE pricing.api_call_queue_completed_7 TO pricing_reader;

-- Finished tasks of a week whose leaf somebody has dropped.
CREATE TABLE pricing.api_call_queue_completed_rest PARTITION OF pricing.api_call_queue_completed DEFAULT (
    CONSTRAINT api_call_queue_completed_rest_pkey PRIMARY KEY (id)
);
CREATE INDEX completed_rest_backfill ON pricing.api_call_queue_completed_rest USING btree (backfill_id) WHERE
    (backfill_id IS NOT NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.api_call_queue_completed_rest TO pricing_worker;
GRANT SELECT ON TABLE pricing.api_call_queue_completed_rest TO pricing_reader;

-- Tasks that failed or were cancelled, with all their errors.
CREATE TABLE pricing.api_call_queue_dead PARTITION OF pricing.api_call_queue FOR VALUES IN ('failed', 'cancelled') (
    CONSTRAINT api_call_queue_dead_pkey PRIMARY KEY (id)
    CONSTRAINT dead_task_is_finished CHECK ((finished_at IS NOT NULL))
);
CREATE INDEX dead_backfill ON pricing.api_call_queue_dead USING btree (backfill_id) WHERE (backfill_id IS NOT NULL);
CREATE INDEX dead_pair ON pricing.api_call_queue_dead USING btree (data_type, symbol);
CREATE INDEX dead_unresolved ON pricing.api_call_queue_dead USING btree (id) WHERE (resolved_at IS NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.api_call_queue_dead TO pricing_worker;
GRANT SELECT ON TABLE pricing.api_call_queue_dead TO pricing_reader;

-- Tasks that are pending, scheduled or processing.
CREATE TABLE pricing.api_call_queue_live PARTITION OF pricing.api_call_queue FOR VALUES IN ('pending', 'processing',
    'scheduled') (
    CONSTRAINT api_call_queue_live_pkey PRIMARY KEY (id)
    CONSTRAINT live_task_is_unique UNIQUE (data_type, symbol, window_start, window_end)
    CONSTRAINT estimate_is_positive CHECK ((est_bytes > 0))
    CONSTRAINT status_has_its_columns CHECK ((((status = 'processing'::text) = (claim_token IS NOT NULL)) AND
        ((claim_token IS NULL) = (lease_until IS NULL)) AND ((status = 'scheduled'::text) = (run_after IS NOT NULL))))
) WITH (autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=500, fillfactor=40);
CREATE INDEX live_backfill ON pricing.api_call_queue_live USING btree (backfill_id) WHERE (backfill_id IS NOT NULL);
CREATE INDEX live_claim ON pricing.api_call_queue_live USING btree (provider, ((- priority)), cadence_minutes, id) WHERE
    (run_after IS NULL);
CREATE INDEX live_scheduled ON pricing.api_call_queue_live USING btree (run_after) WHERE (run_after IS NOT NULL);
CREATE TRIGGER note_queue_change BEFORE INSERT OR UPDATE OF provider, priority, cadence_minutes, run_after ON
    pricing.api_call_queue_live FOR EACH STATEMENT EXECUTE FUNCTION pricing.note_queue_change();
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.api_call_queue_live TO pricing_worker;
GRANT SELECT ON TABLE pricing.api_call_queue_live TO pricing_reader;

-- Wire bytes per provider and UTC hour; the quota sums the last 720 and the current one; an hour has a row for each
-- call settled at the same moment.
CREATE TABLE pricing.api_data_usage (
    provider text NOT NULL  -- The provider that was asked.
    hour timestamp with time zone NOT NULL  -- Beginning of the hour, UTC.
    calls bigint NOT NULL DEFAULT 0  -- Calls settled in the hour.
    units bigint NOT NULL DEFAULT 0  -- Their cost, in the provider's units.
    bytes bigint NOT NULL DEFAULT 0  -- Bytes on the wire; of calls whose worker was lost, their estimate.
    -- Distinguishes the rows of an hour: a call is booked in any unlocked row, and only their sum matters.
    slot integer NOT NULL DEFAULT 0
    CONSTRAINT api_data_usage_pkey PRIMARY KEY (provider, hour, slot)
) WITH (fillfactor=50);
GRANT SELECT ON TABLE pricing.api_data_usage TO pricing_reader;
GRANT SELECT ON TABLE pricing.api_data_usage TO pricing_worker;

-- Tokens of the HTTP API, each shown once when it is made and stored nowhere.
CREATE TABLE pricing.api_tokens (
    token_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- Number of the token.
    name text NOT NULL  -- Its name for people.
    secret_hash bytea NOT NULL  -- SHA-256 of the token, which has 256 random bits.
    -- What it allows: read (prices and history), watch (heartbeats and holdings), operate (queue, quarantine,
    -- backfills, alerts), admin (all of these).
    scopes text[] NOT NULL
    user_id text  -- The user that it acts for; NULL = an application that names the user in each request.
    created_at timestamp with time zone NOT NULL DEFAULT pricing.clock()  -- When it was made.
    last_used_at timestamp with time zone  -- When a request last came with it, to the minute.
    expires_at timestamp with time zone  -- When it expires; NULL = never.
    -- Whether it only reads prices and histories of its feed_pairs, and may be in a URL; it has no scope then.
    is_feed boolean NOT NULL DEFAULT false
    list text  -- The list of its user that the feed reads, in place of feed_pairs.
    CONSTRAINT api_tokens_pkey PRIMARY KEY (token_id)
    CONSTRAINT api_tokens_name_key UNIQUE (name)
    CONSTRAINT api_tokens_secret_hash_key UNIQUE (secret_hash)
    CONSTRAINT feed_has_no_scope CHECK ((is_feed = (cardinality(scopes) = 0)))
    CONSTRAINT only_a_users_feed_has_a_list CHECK (((list IS NULL) OR (is_feed AND (user_id IS NOT NULL))))
    CONSTRAINT token_is_hashed CHECK ((octet_length(secret_hash) = 32))
    CONSTRAINT token_name_is_sane CHECK ((name ~ '^[a-z0-9][a-z0-9_-]{0,47}$'::text))
    CONSTRAINT token_scopes_are_known CHECK ((scopes <@ ARRAY['read'::text, 'watch'::text, 'operate'::text,
        'admin'::text]))
    CONSTRAINT user_is_sane CHECK (((length(user_id) >= 1) AND (length(user_id) <= 200)))
);
ALTER TABLE pricing.api_tokens ENABLE ROW LEVEL SECURITY;
-- A reader sees no rows of another login.
CREATE POLICY reader_sees_own ON pricing.api_tokens FOR SELECT TO pricing_reader USING ((user_id =
    (SESSION_USER)::text));
-- A worker acts for every user.
CREATE POLICY worker_serves_all ON pricing.api_tokens FOR ALL TO pricing_worker USING (true) WITH CHECK (true);
GRANT SELECT ON TABLE pricing.api_tokens TO pricing_worker;

-- Side effects, each to happen once outside the database; a repeat has the same idempotency key.
CREATE TABLE pricing.async_operations (
    -- Rises with each operation, over all states.
    id bigint NOT NULL DEFAULT nextval('pricing.operation_id_seq'::regclass)
    operation_type text NOT NULL  -- Its type.
    payload jsonb NOT NULL  -- Its data.
    idempotency_key uuid NOT NULL DEFAULT gen_random_uuid()  -- Reaches the receiver, the same in every attempt.
    status text NOT NULL DEFAULT 'pending'::text  -- pending, processing, completed, failed or cancelled.
    due_at timestamp with time zone NOT NULL  -- The earliest time of a claim.
    attempt smallint NOT NULL DEFAULT 0  -- Attempts begun; a retry by hand begins anew.
    max_attempts smallint NOT NULL  -- Attempts before it is dead, by its type when it was queued.
    claim_token uuid  -- The current claim, which alone may finish it.
    claimed_at timestamp with time zone  -- When the last attempt began.
    lease_until timestamp with time zone  -- When the attempt counts as lost.
    worker text  -- Host and process of the last attempt.
    enqueued_at timestamp with time zone NOT NULL  -- When it was queued.
    finished_at timestamp with time zone  -- When it was completed, failed for good or cancelled.
    errors jsonb NOT NULL DEFAULT '[]'::jsonb  -- All failed attempts: at, attempt, message.
    result jsonb  -- The result of the handler, if any.
    -- The recipient that the payload names, whose messages wait in their own line; empty = none.
    recipient text NOT NULL GENERATED ALWAYS AS ("left"(COALESCE((payload ->> 'recipient'::text), ''::text), 100))
        STORED
    -- Lower numbers are claimed first: 0 = P0, even in quiet hours and while the recipient fails; 1 = other alerts; 2 =
    -- the rest.
    priority smallint NOT NULL DEFAULT 2
    CONSTRAINT priority_is_known CHECK (((priority >= 0) AND (priority <= 2)))
) PARTITION BY LIST (status);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.async_operations TO pricing_worker;

-- Operations that have happened; pruning deletes them after 14 days.
CREATE TABLE pricing.async_operations_completed PARTITION OF pricing.async_operations FOR VALUES IN ('completed') (
    CONSTRAINT async_operations_completed_pkey PRIMARY KEY (id)
    CONSTRAINT completed_operation_is_finished CHECK ((finished_at IS NOT NULL))
);
CREATE INDEX operations_completed_at ON pricing.async_operations_completed USING btree (finished_at);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.async_operations_completed TO pricing_worker;

-- Operations that failed or were cancelled, with all their errors.
CREATE TABLE pricing.async_operations_dead PARTITION OF pricing.async_operations FOR VALUES IN ('failed', 'cancelled') (
    CONSTRAINT async_operations_dead_pkey PRIMARY KEY (id)
    CONSTRAINT dead_operation_is_finished CHECK ((finished_at IS NOT NULL))
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.async_operations_dead TO pricing_worker;

-- Operations that wait or are under way.
CREATE TABLE pricing.async_operations_live PARTITION OF pricing.async_operations FOR VALUES IN ('pending', 'processing')
    (
    CONSTRAINT async_operations_live_pkey PRIMARY KEY (id)
    CONSTRAINT operation_has_its_columns CHECK ((((status = 'processing'::text) = (claim_token IS NOT NULL)) AND
        ((claim_token IS NULL) = (lease_until IS NULL))))
) WITH (autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=500, fillfactor=40);
CREATE INDEX operations_claimed ON pricing.async_operations_live USING btree (lease_until) WHERE (status =
    'processing'::text);
CREATE INDEX operations_due ON pricing.async_operations_live USING btree (operation_type, recipient, priority, due_at,
    id) WHERE (status = 'pending'::text);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.async_operations_live TO pricing_worker;

-- One row for each requested backfill.
CREATE TABLE pricing.backfills (
    backfill_id uuid NOT NULL DEFAULT gen_random_uuid()  -- Carried by its tasks.
    data_type text NOT NULL  -- The data type.
    window_start date NOT NULL  -- First day, included.
    window_end date NOT NULL  -- Last day, included.
    symbols text[]  -- Which instruments; NULL = all that a provider has confirmed.
    run_id text  -- Dagster's id of the run that asked.
    requested_at timestamp with time zone NOT NULL DEFAULT pricing.clock()  -- When it was planned.
    finished_at timestamp with time zone  -- When none of its tasks was open any more.
    -- How many tasks it waits for, those of earlier backfills of the same days included.
    tasks integer NOT NULL DEFAULT 0
    cancelled_at timestamp with time zone  -- When a person cancelled it; NULL = never.
    -- How many instruments were left out, by reason: those of pricing.universe, or no_instrument for an unknown name.
    left_out jsonb NOT NULL DEFAULT '{}'::jsonb
    CONSTRAINT backfills_pkey PRIMARY KEY (backfill_id)
    CONSTRAINT backfill_window_is_upright CHECK ((window_start <= window_end))
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.backfills TO pricing_worker;
GRANT SELECT ON TABLE pricing.backfills TO pricing_reader;

-- Days on which a library calendar is wrong (special sessions, closed days, other hours); a person's row precedes one
-- from evidence, and that a shipped one.
CREATE TABLE pricing.calendar_corrections (
    calendar text NOT NULL  -- The calendar that is corrected.
    day date NOT NULL  -- The day, in the calendar's time zone.
    -- shipped = comes with the pipeline; operator = a person entered it; evidence = several instruments or providers
    -- have bars of this day.
    origin text NOT NULL
    is_open boolean NOT NULL  -- Whether the exchange trades on that day.
    opens_at time without time zone  -- When trading begins, in the calendar's time zone; NULL = the usual hours.
    closes_at time without time zone  -- When trading ends, in the calendar's time zone; NULL = the usual hours.
    reason text NOT NULL  -- Why the day differs from the library.
    source text  -- Where this is published; NULL = no source was given.
    by_whom text  -- The person who entered it; NULL = no person did.
    recorded_at timestamp with time zone NOT NULL DEFAULT pricing.clock()  -- When it was stored here.
    CONSTRAINT calendar_corrections_pkey PRIMARY KEY (calendar, day, origin)
    CONSTRAINT calendar_corrections_calendar_fkey FOREIGN KEY (calendar) REFERENCES pricing.calendars(calendar) ON
        DELETE CASCADE
    CONSTRAINT hours_are_of_an_open_day CHECK ((is_open OR (opens_at IS NULL)))
    CONSTRAINT hours_are_upright CHECK ((opens_at < closes_at))
    CONSTRAINT hours_are_whole CHECK (((opens_at IS NULL) = (closes_at IS NULL)))
    CONSTRAINT only_people_are_named CHECK (((origin = 'operator'::text) = (by_whom IS NOT NULL)))
    CONSTRAINT origin_is_known CHECK ((origin = ANY (ARRAY['shipped'::text, 'operator'::text, 'evidence'::text])))
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.calendar_corrections TO pricing_worker;
GRANT SELECT ON TABLE pricing.calendar_corrections TO pricing_reader;

-- Days on which the two sources of trading days disagree and no correction decides; the first source counts until bars
-- prove it wrong.
CREATE TABLE pricing.calendar_disagreements (
    calendar text NOT NULL  -- The calendar.
    day date NOT NULL  -- The day, in the calendar's time zone.
    is_open boolean NOT NULL  -- Whether the second source has a session; the first says the opposite.
    reason text NOT NULL  -- The name of the holiday in the second source, or that it knows no holiday.
    found_at timestamp with time zone NOT NULL DEFAULT pricing.clock()  -- When it was first seen.
    CONSTRAINT calendar_disagreements_pkey PRIMARY KEY (calendar, day)
    CONSTRAINT calendar_disagreements_calendar_fkey FOREIGN KEY (calendar) REFERENCES pricing.calendars(calendar) ON
        DELETE CASCADE
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.calendar_disagreements TO pricing_worker;
GRANT SELECT ON TABLE pricing.calendar_disagreements TO pricing_reader;

-- Which calendar an instrument without a known exchange gets: by the longest matching ending, then by its currency;
-- without a rule, none.
CREATE TABLE pricing.calendar_rules (
    asset_class text NOT NULL  -- Instruments of this class.
    -- How their symbol ends, as providers mark an exchange; empty = an ending that marks none.
    ending text NOT NULL DEFAULT ''::text
    currency text NOT NULL DEFAULT ''::text  -- Their currency; empty = any.
    calendar text NOT NULL  -- The calendar that they get.
    CONSTRAINT calendar_rules_pkey PRIMARY KEY (asset_class, ending, currency)
    CONSTRAINT calendar_rules_calendar_fkey FOREIGN KEY (calendar) REFERENCES pricing.calendars(calendar)
);
GRANT SELECT ON TABLE pricing.calendar_rules TO pricing_reader;
GRANT SELECT ON TABLE pricing.calendar_rules TO pricing_worker;

-- Each day on which a market trades: no holidays, and half days with their early close.
CREATE TABLE pricing.calendar_sessions (
    calendar text NOT NULL  -- The calendar.
    session date NOT NULL  -- Its day in the exchange's zone, which daily values carry.
    opens_at timestamp with time zone NOT NULL  -- When trading begins.
    closes_at timestamp with time zone NOT NULL  -- When trading ends.
    CONSTRAINT calendar_sessions_pkey PRIMARY KEY (calendar, session)
    CONSTRAINT calendar_sessions_calendar_fkey FOREIGN KEY (calendar) REFERENCES pricing.calendars(calendar) ON DELETE
        CASCADE
    CONSTRAINT session_is_upright CHECK ((opens_at < closes_at))
);
CREATE INDEX calendar_sessions_closing ON pricing.calendar_sessions USING btree (calendar, closes_at) INCLUDE (session,
    opens_at);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.calendar_sessions TO pricing_worker;
GRANT SELECT ON TABLE pricing.calendar_sessions TO pricing_reader;

-- Trading calendars, named by the ISO 10383 code of their exchange; FX (the week of foreign exchange) and 24/7 are
-- ours.
CREATE TABLE pricing.calendars (
    calendar text NOT NULL  -- Its name in exchange-calendars.
    description text NOT NULL DEFAULT ''::text  -- For people.
    sessions_from date  -- First day whose sessions are known; NULL = none are yet.
    sessions_to date  -- Last day whose sessions are known; beyond it only TTLs count.
    filled_at timestamp with time zone  -- When its sessions were last written.
    time_zone text  -- The time zone of its days and hours; NULL = unknown, so hours cannot be corrected.
    known_to date  -- The last day whose holidays are announced, from domain/exchanges.toml; NULL = the library knows.
    failure text  -- Why computing its sessions last failed; NULL = it succeeded.
    CONSTRAINT calendars_pkey PRIMARY KEY (calendar)
    CONSTRAINT calendar_is_plain_name CHECK ((calendar ~ '^[A-Z0-9][A-Z0-9/]{1,11}$'::text))
    CONSTRAINT known_span_is_upright CHECK ((((sessions_from IS NULL) = (sessions_to IS NULL)) AND (sessions_from <=
        sessions_to)))
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.calendars TO pricing_worker;
GRANT SELECT ON TABLE pricing.calendars TO pricing_reader;
GRANT SELECT ON TABLE pricing.calls TO pricing_reader;
GRANT SELECT ON TABLE pricing.calls TO pricing_worker;

-- Where a data type's staleness check begins, so that it does not walk past a backlog each time; no row = at the
-- beginning.
CREATE TABLE pricing.check_marks (
    data_type text NOT NULL  -- The data type.
    queued_until timestamp with time zone NOT NULL  -- Everything due before this time was queued.
    CONSTRAINT check_marks_pkey PRIMARY KEY (data_type)
    CONSTRAINT check_marks_data_type_fkey FOREIGN KEY (data_type) REFERENCES pricing.data_type_registry(data_type) ON
        DELETE CASCADE
) WITH (fillfactor=50);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.check_marks TO pricing_worker;
GRANT SELECT ON TABLE pricing.check_marks TO pricing_reader;
GRANT SELECT ON TABLE pricing.chosen_routes TO pricing_reader;
GRANT SELECT ON TABLE pricing.chosen_routes TO pricing_worker;

-- Every call to a provider, committed before it is made and completed after; also the memory of rate limits and, while
-- open, a reservation in the quota.
CREATE TABLE pricing.collector_call_log (
    call_id bigint NOT NULL DEFAULT nextval('pricing.call_id_seq'::regclass)  -- Rises with each call; prices carry it.
    provider text NOT NULL  -- The provider that was asked.
    data_type text NOT NULL  -- The data type.
    symbols text[] NOT NULL  -- What was asked for, in the order of the request.
    window_start date NOT NULL  -- First day asked for; -infinity = the latest price.
    window_end date NOT NULL  -- Last day asked for, included; infinity = the latest price.
    units integer NOT NULL  -- Its cost, in the provider's units.
    reserved_bytes bigint NOT NULL  -- Bytes reserved in the quota until it is settled.
    run_id text  -- Dagster's id of the run that made it.
    worker text NOT NULL  -- The worker that made it: host and process.
    started_at timestamp with time zone NOT NULL  -- When it was claimed, before it was made.
    finished_at timestamp with time zone  -- When it was settled; NULL = open.
    -- How it ended; unknown = the worker was lost, and the estimate was booked.
    outcome pricing.call_outcome NOT NULL DEFAULT 'open'::text
    http_status integer  -- Status of the answer; NULL = no answer, or none known.
    wire_bytes bigint  -- Headers and body as sent, compressed.
    error text  -- Why it brought nothing, without secrets.
    key_name text NOT NULL DEFAULT 'default'::text  -- The key that it was made with.
    -- Why the call brought nothing, at least for most of its symbols (see pricing.is_provider_fault); empty if a lost
    -- worker reported late.
    failure_kind text
    -- started_at on the present clock, if that was set back since; -infinity = the call no longer counts; NULL = it was
    -- not.
    moved_to timestamp with time zone
    -- Whether its answer came without a Content-Length, so that bytes were counted as they arrived.
    is_unannounced boolean NOT NULL DEFAULT false
    page_of bigint  -- The call whose further request (page) this is, which has the outcome of all; NULL = not a page.
    CONSTRAINT collector_call_log_pkey PRIMARY KEY (call_id)
    CONSTRAINT open_calls_are_unfinished CHECK ((((outcome)::text = 'open'::text) = (finished_at IS NULL)))
) WITH (fillfactor=80);
CREATE INDEX collector_call_log_failed ON pricing.collector_call_log USING btree (provider, started_at) WHERE
    (failure_kind IS NOT NULL);
CREATE INDEX collector_call_log_moved ON pricing.collector_call_log USING btree (provider, moved_to) INCLUDE (units,
    key_name) WHERE (moved_to IS NOT NULL);
CREATE INDEX collector_call_log_open ON pricing.collector_call_log USING btree (provider) INCLUDE (reserved_bytes) WHERE
    (finished_at IS NULL);
CREATE INDEX collector_call_log_pages ON pricing.collector_call_log USING btree (page_of) WHERE (page_of IS NOT NULL);
CREATE INDEX collector_call_log_rate ON pricing.collector_call_log USING btree (provider, started_at) INCLUDE (units,
    key_name) WHERE (moved_to IS NULL);
CREATE INDEX collector_call_log_unannounced ON pricing.collector_call_log USING btree (provider, started_at) WHERE
    is_unannounced;
GRANT SELECT ON TABLE pricing.collector_call_log TO pricing_reader;
GRANT SELECT ON TABLE pricing.collector_call_log TO pricing_worker;

-- Goods of the game.
CREATE TABLE pricing.commodities (
    commodity_id bigint NOT NULL  -- The provider's number for it.
    name text NOT NULL  -- Its name, such as Quantanium.
    code text  -- Its short name, such as QUAN.
    slug text  -- Its name in URLs, such as medical-supplies.
    kind text  -- What kind of good it is, in the provider's word.
    is_available boolean NOT NULL DEFAULT true  -- Whether it is in the game now.
    recorded_at timestamp with time zone NOT NULL  -- When this row last changed here.
    -- Since when its provider no longer lists it; NULL = listed, or known only from prices.
    vanished_at timestamp with time zone
    call_id bigint NOT NULL  -- The call that brought the last change.
    CONSTRAINT commodities_pkey PRIMARY KEY (commodity_id)
);
CREATE INDEX commodities_by_slug ON pricing.commodities USING btree (slug);
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.commodities TO pricing_worker;
GRANT SELECT ON TABLE pricing.commodities TO pricing_reader;

-- What each terminal trades, as believed now, in the game's money and in SCU; both prices NULL = no longer traded
-- there.
CREATE TABLE pricing.commodity_prices (
    symbol text NOT NULL  -- The terminal.
    commodity_id bigint NOT NULL  -- The commodity.
    buy numeric  -- What a player pays for one SCU; NULL = the terminal sells none.
    sell numeric  -- What a player gets for one SCU; NULL = the terminal takes none.
    stock bigint  -- How much a player can buy; NULL = not reported.
    demand bigint  -- How much a player can sell; NULL = not reported.
    game_version text  -- The version of the game of the price; NULL = unknown.
    modified_at timestamp with time zone  -- The source's time of the price; NULL = never changed.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believe it.
    provider text NOT NULL  -- The provider that sent it.
    call_id bigint NOT NULL  -- The call that brought it.
    quality text NOT NULL DEFAULT ''::text  -- Its quality, in the provider's word; empty = none.
    CONSTRAINT commodity_prices_pkey PRIMARY KEY (symbol, commodity_id, quality)
    CONSTRAINT commodity_prices_commodity_id_fkey FOREIGN KEY (commodity_id) REFERENCES
        pricing.commodities(commodity_id)
    CONSTRAINT commodity_prices_game_version_fkey FOREIGN KEY (game_version) REFERENCES pricing.game_versions(version)
    CONSTRAINT commodity_prices_symbol_fkey FOREIGN KEY (symbol) REFERENCES pricing.terminals(symbol)
    CONSTRAINT buy_is_positive CHECK ((buy > (0)::numeric))
    CONSTRAINT demand_is_counted CHECK ((demand >= 0))
    CONSTRAINT demand_is_for_what_is_bought CHECK (((demand IS NULL) OR (sell IS NOT NULL)))
    CONSTRAINT sell_is_positive CHECK ((sell > (0)::numeric))
    CONSTRAINT stock_is_counted CHECK ((stock >= 0))
    CONSTRAINT stock_is_of_what_is_sold CHECK (((stock IS NULL) OR (buy IS NOT NULL)))
);
CREATE INDEX commodity_prices_by_commodity ON pricing.commodity_prices USING btree (commodity_id);
CREATE INDEX commodity_prices_by_version ON pricing.commodity_prices USING btree (game_version);
CREATE TRIGGER keep_revision AFTER UPDATE ON pricing.commodity_prices REFERENCING OLD TABLE AS old_rows NEW TABLE AS
    new_rows FOR EACH STATEMENT EXECUTE FUNCTION pricing.keep_revision('symbol, commodity_id, quality', 'o.symbol,
    o.commodity_id::text');
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.commodity_prices TO pricing_worker;
GRANT SELECT ON TABLE pricing.commodity_prices TO pricing_reader;

-- When each pair of a data type without prices was last confirmed, which decides its staleness.
CREATE TABLE pricing.confirmed_pairs (
    data_type text NOT NULL  -- The data type.
    symbol text NOT NULL  -- The symbol.
    fetched_at timestamp with time zone NOT NULL  -- When a provider last answered; advances with every valid answer.
    provider text NOT NULL  -- The provider that answered.
    call_id bigint NOT NULL  -- The call; collector_call_log has its run, time and bytes.
    cache_ttl_minutes integer  -- Overrides the registry's TTL for this pair; refreshes never touch it.
    CONSTRAINT confirmed_pairs_pkey PRIMARY KEY (data_type, symbol)
    CONSTRAINT confirmed_ttl_is_positive CHECK ((cache_ttl_minutes > 0))
) WITH (fillfactor=70);
CREATE TRIGGER own_ttl_changed AFTER UPDATE OF cache_ttl_minutes ON pricing.confirmed_pairs FOR EACH ROW WHEN
    ((old.cache_ttl_minutes IS DISTINCT FROM new.cache_ttl_minutes)) EXECUTE FUNCTION pricing.own_ttl_changed();
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.confirmed_pairs TO pricing_worker;
GRANT SELECT ON TABLE pricing.confirmed_pairs TO pricing_reader;

-- The days for which providers have reported all splits and dividends of an instrument; nothing is known of others.
CREATE TABLE pricing.corporate_action_pairs (
    asset_class text NOT NULL  -- With symbol: the instrument.
    symbol text NOT NULL  -- With asset_class: the instrument.
    covered datemultirange NOT NULL  -- The reported days.
    fetched_at timestamp with time zone NOT NULL  -- When they were last reported.
    provider text NOT NULL  -- The provider that reported them last.
    call_id bigint NOT NULL  -- The call that reported them last.
    -- The days for which all capital gains are known, which not every provider reports.
    gains_covered datemultirange NOT NULL DEFAULT '{}'::datemultirange
    CONSTRAINT corporate_action_pairs_pkey PRIMARY KEY (asset_class, symbol)
);
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.corporate_action_pairs TO pricing_worker;
GRANT SELECT ON TABLE pricing.corporate_action_pairs TO pricing_reader;

-- Splits, spin-offs, dividends and capital gains as believed now; they change no stored price, and reads apply them.
CREATE TABLE pricing.corporate_actions (
    asset_class text NOT NULL  -- With symbol: the instrument.
    symbol text NOT NULL  -- With asset_class: the instrument.
    ex_on date NOT NULL  -- The first trading day without it: it adjusts prices before this day.
    -- split; spin_off, which divides prices like a split and changes no volume; dividend; capital_gain, a fund's
    -- payment of gains.
    kind text NOT NULL
    new_shares numeric  -- For a split or spin-off, the number of new shares ...
    old_shares numeric  -- ... for this many old ones.
    amount bigint  -- For a payment, cash per share of that day, before taxes, in units of 10^-scale of its currency.
    scale smallint  -- Decimals of amount.
    -- For a payment, ISO 4217 or a coin (USDT), which may differ from that of the prices; NULL = that of the prices.
    currency text
    provider text NOT NULL  -- The provider that reported it; "by hand" is a person, named by entered_by.
    call_id bigint NOT NULL  -- The call that brought it; 0 = entered by hand.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believe it.
    entered_by text  -- Who entered it by hand; NULL = a provider reported it.
    reason text  -- The reason, in that person's words.
    -- When the instrument's quarantined values were judged again with it; NULL = not yet.
    judged_at timestamp with time zone
    part smallint NOT NULL DEFAULT 1  -- Distinguishes payments of one kind on one day, and means nothing else.
    CONSTRAINT corporate_actions_pkey PRIMARY KEY (asset_class, symbol, ex_on, kind, part)
    CONSTRAINT amount_is_positive CHECK ((amount > 0))
    CONSTRAINT kind_is_known CHECK ((kind = ANY (ARRAY['split'::text, 'spin_off'::text, 'dividend'::text,
        'capital_gain'::text])))
    CONSTRAINT payment_has_amount CHECK (((kind = ANY (ARRAY['dividend'::text, 'capital_gain'::text])) = ((amount IS NOT
        NULL) AND (scale IS NOT NULL))))
    CONSTRAINT reason_is_short CHECK ((length(reason) <= 500))
    CONSTRAINT shares_are_positive CHECK (((new_shares > (0)::numeric) AND (old_shares > (0)::numeric) AND (new_shares <
        'Infinity'::numeric) AND (old_shares < 'Infinity'::numeric)))
    CONSTRAINT split_has_shares CHECK (((kind = ANY (ARRAY['split'::text, 'spin_off'::text])) = ((new_shares IS NOT
        NULL) AND (old_shares IS NOT NULL))))
);
CREATE INDEX corporate_actions_unjudged ON pricing.corporate_actions USING btree (recorded_at) WHERE (judged_at IS
    NULL);
CREATE UNIQUE INDEX corporate_actions_one_ratio ON pricing.corporate_actions USING btree (asset_class, symbol, ex_on)
    WHERE (new_shares IS NOT NULL);
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.corporate_actions TO pricing_worker;
GRANT SELECT ON TABLE pricing.corporate_actions TO pricing_reader;
GRANT SELECT ON TABLE pricing.counted_calls TO pricing_reader;
GRANT SELECT ON TABLE pricing.counted_calls TO pricing_worker;

-- What fails in Dagster now: the sensor note_failures writes jobs, sensors and schedules, the daemon of `up` code
-- locations that do not load and sensors that never worked.
CREATE TABLE pricing.dagster_failures (
    -- run = a job, or the assets of a run without one; tick = a sensor or schedule; location = a code location; sensor
    -- = a sensor that has not worked since its location was loaded.
    kind text NOT NULL
    name text NOT NULL  -- The job, sensor, schedule or code location, or the assets of a run.
    run_id text  -- The run that failed; NULL for all others.
    reason text NOT NULL  -- The first line of the error, or what the sensor waits for.
    failed_at timestamp with time zone NOT NULL  -- When the run failed, or when something else was first seen to fail.
    CONSTRAINT dagster_failures_pkey PRIMARY KEY (kind, name)
    CONSTRAINT dagster_failure_kind_is_known CHECK ((kind = ANY (ARRAY['run'::text, 'tick'::text, 'location'::text,
        'sensor'::text])))
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.dagster_failures TO pricing_worker;
GRANT SELECT ON TABLE pricing.dagster_failures TO pricing_reader;

-- Changes of stored data without a number yet, a row for each call and month, which pricing.number_changes moves to
-- data_versions.
CREATE TABLE pricing.data_changes (
    data_type text NOT NULL  -- Whose data changed.
    month date NOT NULL  -- First day of the UTC month whose history changed; -infinity = the latest values changed.
    changes bigint NOT NULL  -- How many values were added, changed or taken out.
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.data_changes TO pricing_worker;
GRANT SELECT ON TABLE pricing.data_changes TO pricing_reader;

-- Providers, their address and their allowances.
CREATE TABLE pricing.data_collectors (
    provider text NOT NULL  -- Its name, as routes and calls have it.
    description text NOT NULL DEFAULT ''::text  -- For people.
    base_url text NOT NULL  -- Where it answers; the sandbox's address takes its place while the sandbox is on.
    -- False = it is not called, and what only it serves fails as misconfigured.
    is_active boolean NOT NULL DEFAULT true
    max_in_flight integer NOT NULL DEFAULT 10  -- Most calls of all workers together in flight.
    -- First pause after a refusal for speed without a time; it doubles with each further refusal.
    throttle_pause_seconds integer NOT NULL DEFAULT 5
    -- Bytes allowed in any 720 hours (30 days of exactly 24 hours).
    quota_bytes bigint NOT NULL DEFAULT '21474836480'::bigint
    -- Least time between two calls of all workers together; doubled while the provider reports 5 units or fewer left.
    request_delay_ms integer NOT NULL DEFAULT 0
    CONSTRAINT data_collectors_pkey PRIMARY KEY (provider)
    CONSTRAINT delay_is_sane CHECK (((request_delay_ms >= 0) AND (request_delay_ms <= 3600000)))
    CONSTRAINT in_flight_is_sane CHECK (((max_in_flight >= 1) AND (max_in_flight <= 10)))
    CONSTRAINT pause_is_positive CHECK ((throttle_pause_seconds > 0))
    CONSTRAINT provider_is_plain_name CHECK ((provider ~ '^[a-z][a-z0-9_]{0,47}$'::text))
    CONSTRAINT quota_is_positive CHECK ((quota_bytes > 0))
);
CREATE TRIGGER add_provider_state AFTER INSERT ON pricing.data_collectors FOR EACH ROW EXECUTE FUNCTION
    pricing.add_provider_state();
CREATE TRIGGER provider_shown_anew AFTER UPDATE OF is_active, base_url ON pricing.data_collectors FOR EACH ROW WHEN
    (((old.is_active IS DISTINCT FROM new.is_active) OR (old.base_url IS DISTINCT FROM new.base_url))) EXECUTE FUNCTION
    pricing.registry_changed();
CREATE TRIGGER provider_switched AFTER UPDATE OF is_active, base_url, quota_bytes ON pricing.data_collectors FOR EACH
    ROW WHEN (((old.is_active IS DISTINCT FROM new.is_active) OR (old.base_url IS DISTINCT FROM new.base_url) OR
    (old.quota_bytes IS DISTINCT FROM new.quota_bytes))) EXECUTE FUNCTION pricing.provider_switched();
CREATE TRIGGER registry_changed AFTER INSERT OR DELETE ON pricing.data_collectors FOR EACH ROW EXECUTE FUNCTION
    pricing.registry_changed();
GRANT SELECT ON TABLE pricing.data_collectors TO pricing_reader;
GRANT SELECT ON TABLE pricing.data_collectors TO pricing_worker;

-- The single source of truth on data types: one INSERT creates a type's storage, Dagster assets, freshness policy and
-- refresh.
CREATE TABLE pricing.data_type_registry (
    data_type text NOT NULL  -- Its name; it cannot be changed.
    description text NOT NULL DEFAULT ''::text  -- For people.
    asset_class text NOT NULL DEFAULT 'equity'::text  -- The asset class of its instruments.
    fetcher text NOT NULL  -- What is asked of a provider; provider_routing says which provider.
    default_ttl_minutes integer NOT NULL  -- The age at which a watched price is due again.
    -- The view or table that the staleness function judges; empty = the view latest_price_<data_type> or
    -- document_<data_type>, which a trigger makes.
    table_name text NOT NULL DEFAULT ''::text
    symbol_column text NOT NULL DEFAULT 'symbol'::text  -- Column of table_name with the symbol, text.
    -- Column of table_name that decides staleness, timestamptz.
    timestamp_column text NOT NULL DEFAULT 'fetched_at'::text
    -- Function (timestamptz, integer) returning boolean in this schema, called with the timestamp and the TTL in
    -- minutes.
    staleness_function text NOT NULL DEFAULT ''::text
    -- on-demand = while somebody watches; scheduled = by refresh_schedule too.
    refresh_strategy text NOT NULL DEFAULT 'on-demand'::text
    -- Cron expression of a scheduled type, in schedule_timezone: five fields of numbers, names, *, ranges, steps and
    -- lists.
    refresh_schedule text
    schedule_timezone text NOT NULL DEFAULT 'UTC'::text  -- Time zone of refresh_schedule.
    history_from date  -- First day a backfill may ask for; NULL = the type keeps no history to backfill.
    -- Bytes on the wire per symbol, reserved against the quota before a call.
    estimated_data_size_bytes bigint NOT NULL DEFAULT 50000
    is_active boolean NOT NULL DEFAULT true  -- False = retired: it is no longer queued, and its prices stay.
    created_at timestamp with time zone NOT NULL DEFAULT pricing.clock()  -- When it was added.
    -- The age at which the price of a held, unwatched pair is due again.
    background_ttl_minutes integer NOT NULL DEFAULT 1440
    -- Quotes older than this many days are thinned to one for every thin_to_minutes; NULL = never.
    thin_after_days integer
    -- Thinning keeps the last quote of each span of so many minutes, which must divide a UTC day; by default a day.
    thin_to_minutes integer NOT NULL DEFAULT 1440
    -- Who is responsible: an email address, or team:<name>; NULL = nobody in particular; Dagster shows it with the
    -- assets.
    owner text
    contents text NOT NULL DEFAULT ''::text  -- What it consists of, by its fetcher; a trigger writes it.
    -- Whether table_name is a user's table or view, which is filled with what is fetched; a trigger writes it.
    has_own_table boolean NOT NULL DEFAULT false
    -- For how many days of the product's calendar slots are requested, 1 = today; only for the fetcher slots.
    days_ahead integer
    -- Months of history besides the current one that stay in the database once their files are verified; NULL = all.
    keep_months integer
    CONSTRAINT data_type_registry_pkey PRIMARY KEY (data_type)
    CONSTRAINT fetcher_is_known FOREIGN KEY (fetcher) REFERENCES pricing.fetchers(fetcher)
    CONSTRAINT asset_class_is_plain_name CHECK ((asset_class ~ '^[a-z][a-z0-9_]{0,47}$'::text))
    CONSTRAINT background_ttl_is_positive CHECK ((background_ttl_minutes > 0))
    CONSTRAINT contents_are_known CHECK ((contents = ANY (ARRAY['prices'::text, 'documents'::text, 'inventory'::text,
        'commodities'::text])))
    CONSTRAINT data_type_is_plain_name CHECK ((data_type ~ '^[a-z][a-z0-9_]{0,47}$'::text))
    CONSTRAINT days_ahead_are_at_most_two_years CHECK (((days_ahead >= 1) AND (days_ahead <= 731)))
    CONSTRAINT estimate_is_positive CHECK ((estimated_data_size_bytes > 0))
    CONSTRAINT history_begins_within_reason CHECK (((history_from >= '1800-01-01'::date) AND (history_from <=
        '2999-12-31'::date)))
    CONSTRAINT keep_months_is_sane CHECK (((keep_months >= 3) AND (keep_months <= 1200)))
    CONSTRAINT months_are_thinned_before_they_leave CHECK ((thin_after_days < (keep_months * 28)))
    CONSTRAINT names_are_not_cut CHECK ((63 >= ALL (ARRAY[octet_length(table_name), octet_length(symbol_column),
        octet_length(timestamp_column), octet_length(staleness_function)])))
    CONSTRAINT only_prices_have_backfill CHECK ((((contents = 'prices'::text) AND (fetcher <> 'quote'::text)) OR
        (history_from IS NULL)))
    CONSTRAINT only_quotes_are_thinned CHECK (((thin_after_days IS NULL) OR (fetcher = 'quote'::text)))
    CONSTRAINT owner_is_email_or_team CHECK ((owner ~ '^(team:[A-Za-z0-9_-]{1, 100}|[A-Za-z0-9._%+-]{1,
        64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2, 24})$'::text))
    CONSTRAINT scheduled_types_have_a_schedule CHECK (((refresh_strategy = 'scheduled'::text) = (refresh_schedule IS NOT
        NULL)))
    CONSTRAINT slots_have_days_ahead CHECK (((fetcher = 'slots'::text) = (days_ahead IS NOT NULL)))
    CONSTRAINT strategy_is_known CHECK ((refresh_strategy = ANY (ARRAY['on-demand'::text, 'scheduled'::text])))
    CONSTRAINT thin_after_is_positive CHECK ((thin_after_days > 0))
    CONSTRAINT thinning_divides_a_day CHECK (((thin_to_minutes > 0) AND (thin_to_minutes <= 1440) AND ((1440 %
        thin_to_minutes) = 0)))
    CONSTRAINT ttl_is_positive CHECK ((default_ttl_minutes > 0))
);
CREATE TRIGGER apply_fetcher BEFORE INSERT OR UPDATE ON pricing.data_type_registry FOR EACH ROW EXECUTE FUNCTION
    pricing.apply_fetcher();
CREATE TRIGGER check_data_type BEFORE INSERT OR UPDATE ON pricing.data_type_registry FOR EACH ROW EXECUTE FUNCTION
    pricing.check_data_type();
CREATE TRIGGER drop_storage BEFORE DELETE ON pricing.data_type_registry FOR EACH ROW EXECUTE FUNCTION
    pricing.drop_storage();
CREATE TRIGGER fetcher_changed AFTER UPDATE OF fetcher ON pricing.data_type_registry FOR EACH ROW WHEN ((old.fetcher <>
    new.fetcher)) EXECUTE FUNCTION pricing.fetcher_changed();
CREATE TRIGGER make_storage AFTER INSERT ON pricing.data_type_registry FOR EACH ROW EXECUTE FUNCTION
    pricing.make_storage();
CREATE TRIGGER registry_changed AFTER INSERT OR DELETE OR UPDATE ON pricing.data_type_registry FOR EACH STATEMENT
    EXECUTE FUNCTION pricing.registry_changed();
CREATE TRIGGER schedule_added AFTER INSERT ON pricing.data_type_registry FOR EACH ROW EXECUTE FUNCTION
    pricing.schedule_changed();
CREATE TRIGGER schedule_changed AFTER UPDATE OF refresh_strategy, refresh_schedule, schedule_timezone, is_active ON
    pricing.data_type_registry FOR EACH ROW WHEN (((old.refresh_strategy IS DISTINCT FROM new.refresh_strategy) OR
    (old.refresh_schedule IS DISTINCT FROM new.refresh_schedule) OR (old.schedule_timezone IS DISTINCT FROM
    new.schedule_timezone) OR (old.is_active IS DISTINCT FROM new.is_active))) EXECUTE FUNCTION
    pricing.schedule_changed();
CREATE TRIGGER ttl_changed AFTER UPDATE OF default_ttl_minutes, background_ttl_minutes, staleness_function, table_name,
    symbol_column, timestamp_column, is_active ON pricing.data_type_registry FOR EACH ROW WHEN
    (((old.default_ttl_minutes IS DISTINCT FROM new.default_ttl_minutes) OR (old.background_ttl_minutes IS DISTINCT FROM
    new.background_ttl_minutes) OR (old.staleness_function IS DISTINCT FROM new.staleness_function) OR (old.table_name
    IS DISTINCT FROM new.table_name) OR (old.symbol_column IS DISTINCT FROM new.symbol_column) OR (old.timestamp_column
    IS DISTINCT FROM new.timestamp_column) OR (old.is_active IS DISTINCT FROM new.is_active))) EXECUTE FUNCTION
    pricing.ttl_changed();
CREATE TRIGGER type_deleted AFTER DELETE ON pricing.data_type_registry FOR EACH ROW EXECUTE FUNCTION
    pricing.type_retired();
CREATE TRIGGER type_retired AFTER UPDATE OF is_active ON pricing.data_type_registry FOR EACH ROW WHEN ((old.is_active
    AND (NOT new.is_active))) EXECUTE FUNCTION pricing.type_retired();
GRANT SELECT ON TABLE pricing.data_type_registry TO pricing_reader;
GRANT SELECT ON TABLE pricing.data_type_registry TO pricing_worker;

-- The version of the stored data of each type and month, rising in the order of commits over all rows.
CREATE TABLE pricing.data_versions (
    data_type text NOT NULL  -- Whose data it is.
    month date NOT NULL  -- As in data_changes.
    -- Number of the last change: milliseconds since 1970, or one more than the one before; Dagster's data version.
    version bigint NOT NULL
    changes bigint NOT NULL  -- How many values were ever added, changed or taken out.
    CONSTRAINT data_versions_pkey PRIMARY KEY (data_type, month)
    CONSTRAINT data_versions_data_type_fkey FOREIGN KEY (data_type) REFERENCES pricing.data_type_registry(data_type) ON
        UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX data_versions_in_order ON pricing.data_versions USING btree (version);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.data_versions TO pricing_worker;
GRANT SELECT ON TABLE pricing.data_versions TO pricing_reader;

-- One row for each wanted (data_type, symbol), so that the staleness check costs what due pairs cost, not watched ones.
CREATE TABLE pricing.demand (
    data_type text NOT NULL  -- The data type.
    symbol text NOT NULL  -- The symbol.
    due_at timestamp with time zone NOT NULL  -- When to judge the pair next, unless a task for it is live.
    became_due_at timestamp with time zone  -- Since when the pair's live task is owed; NULL = it has none.
    failures integer NOT NULL DEFAULT 0  -- Dead tasks in a row.
    -- Until when the pair backs off because its task died: up to 10 min after trouble, 1 h after a cancel by hand, 1 h
    -- doubling to 24 h after a fault of its symbol.
    backoff_until timestamp with time zone
    last_failure text  -- Why the last task died.
    created_at timestamp with time zone NOT NULL DEFAULT pricing.clock()  -- Since when somebody wants it.
    -- When an unserved read last asked for the pair, which counts as a viewer; NULL = none waits.
    read_at timestamp with time zone
    -- Since when trouble, not a fault of its symbol, keeps the pair's price away; NULL = no trouble.
    owed_since timestamp with time zone
    -- Whether the pair was last judged without viewers, so that due_at may follow the background TTL.
    is_background boolean NOT NULL DEFAULT false
    -- Since when the pair is due by its TTL and owed, while stretching delays it to due_at; NULL = not stretched.
    stretched_from timestamp with time zone
    CONSTRAINT demand_pkey PRIMARY KEY (data_type, symbol)
) WITH (fillfactor=70);
CREATE INDEX demand_due ON pricing.demand USING btree (data_type, due_at);
CREATE INDEX demand_owed ON pricing.demand USING btree (data_type, due_at) WHERE (owed_since IS NOT NULL);
CREATE INDEX demand_stretched ON pricing.demand USING btree (data_type) WHERE (stretched_from IS NOT NULL);
CREATE INDEX demand_watched ON pricing.demand USING btree (data_type, due_at) WHERE (NOT is_background);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.demand TO pricing_worker;
GRANT SELECT ON TABLE pricing.demand TO pricing_reader;

-- Documents as believed now, one for each pair and fiscal period; document_pairs has when a pair was last confirmed.
CREATE TABLE pricing.documents (
    data_type text NOT NULL  -- What kind of document it is.
    symbol text NOT NULL  -- The company.
    -- The day under which the provider files it: of an earnings report, or the last of a fiscal year; -infinity = no
    -- period.
    period date NOT NULL DEFAULT '-infinity'::date
    body jsonb  -- The validated answer, with the provider's names and digits; NULL = withdrawn by the provider.
    provider text NOT NULL  -- The provider that sent it.
    call_id bigint NOT NULL  -- The call that brought it.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believe it.
    CONSTRAINT documents_pkey PRIMARY KEY (data_type, symbol, period)
    CONSTRAINT body_is_an_object CHECK ((jsonb_typeof(body) = 'object'::text))
);
CREATE TRIGGER keep_revision AFTER UPDATE ON pricing.documents REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION pricing.keep_revision('data_type, symbol, period', 'o.data_type, o.symbol');
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.documents TO pricing_worker;
GRANT SELECT ON TABLE pricing.documents TO pricing_reader;

-- Workers that drain the queue; one is alive if unfinished and its lease has not run out, whatever its run's status.
CREATE TABLE pricing.drains (
    drain_id uuid NOT NULL DEFAULT gen_random_uuid()  -- Its name.
    run_id text  -- Dagster's id of the run that drains.
    worker text NOT NULL  -- Host and process.
    started_at timestamp with time zone NOT NULL  -- When it began.
    ends_at timestamp with time zone NOT NULL  -- When it hands over to a successor.
    lease_until timestamp with time zone NOT NULL  -- Until when it counts as alive without a sign of life.
    finished_at timestamp with time zone  -- When it ended properly.
    requested_at timestamp with time zone  -- When its run was requested; NULL = unknown.
    providers text[]  -- The providers that its worker asks; NULL = unknown.
    CONSTRAINT drains_pkey PRIMARY KEY (drain_id)
);
CREATE INDEX drains_alive ON pricing.drains USING btree (lease_until) WHERE (finished_at IS NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.drains TO pricing_worker;
GRANT SELECT ON TABLE pricing.drains TO pricing_reader;

-- When each duty last succeeded and failed; the row of follow_clock has when the clock was last checked: a future time
-- means that it was set back.
CREATE TABLE pricing.duties (
    duty text NOT NULL  -- The function's name.
    last_success_at timestamp with time zone  -- NULL = never yet.
    last_failure_at timestamp with time zone  -- NULL = never yet.
    last_error text  -- Why it last failed, in the database's words.
    -- It is not run before, because the clock was set forward or the pipeline was off for days, and what it deletes
    -- cannot be restored.
    not_before timestamp with time zone
    CONSTRAINT duties_pkey PRIMARY KEY (duty)
);
GRANT SELECT ON TABLE pricing.duties TO pricing_reader;
GRANT SELECT ON TABLE pricing.duties TO pricing_worker;

-- Pairs without a price that a provider has validly said it does not have; ignored once a price comes.
CREATE TABLE pricing.empty_answers (
    data_type text NOT NULL  -- The data type.
    symbol text NOT NULL  -- The symbol.
    fetched_at timestamp with time zone NOT NULL  -- When a provider last said so.
    CONSTRAINT empty_answers_pkey PRIMARY KEY (data_type, symbol)
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.empty_answers TO pricing_worker;
GRANT SELECT ON TABLE pricing.empty_answers TO pricing_reader;

-- Warnings of an ETL that did not stop it, kept for 90 days.
CREATE TABLE pricing.etl_warnings (
    warning_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- Its number.
    etl text NOT NULL  -- The ETL: commodities.
    run text NOT NULL  -- Its run.
    step text NOT NULL  -- The step: game versions, terminals, commodities or prices.
    -- The kind of failure: as of tasks, or rejected_rows, refused (no call was allowed) and lock_lost.
    kind text NOT NULL
    message text NOT NULL  -- What happened, and what to do.
    warned_at timestamp with time zone NOT NULL  -- When.
    CONSTRAINT etl_warnings_pkey PRIMARY KEY (warning_id)
);
CREATE INDEX etl_warnings_by_time ON pricing.etl_warnings USING btree (warned_at);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.etl_warnings TO pricing_worker;
GRANT SELECT ON TABLE pricing.etl_warnings TO pricing_reader;

-- Exchanges from domain/exchanges.toml, rewritten by each upgrade.
CREATE TABLE pricing.exchanges (
    mic text NOT NULL  -- Its code by ISO 10383.
    name text NOT NULL  -- For people.
    calendar text  -- The calendar that it follows, alone or with others; NULL = not known.
    currency text  -- The currency of all its shares; NULL = they have several.
    minor_unit text  -- The code of the minor unit in which it quotes prices, such as GBX; NULL = whole units.
    -- How its symbols end at providers, such as .L, :LSE or :XLON; if several exchanges share an ending, the currency
    -- decides.
    endings text[] NOT NULL DEFAULT '{}'::text[]
    CONSTRAINT exchanges_pkey PRIMARY KEY (mic)
    CONSTRAINT exchanges_calendar_fkey FOREIGN KEY (calendar) REFERENCES pricing.calendars(calendar)
    CONSTRAINT mic_is_code CHECK ((mic ~ '^[A-Z0-9]{4}$'::text))
);
GRANT SELECT ON TABLE pricing.exchanges TO pricing_reader;
GRANT SELECT ON TABLE pricing.exchanges TO pricing_worker;

-- Months of history with a file outside the database.
CREATE TABLE pricing.exported_months (
    data_type text NOT NULL  -- The data type.
    month date NOT NULL  -- First day of a UTC month of observed_at.
    versions bigint NOT NULL  -- Values in the file, present and earlier ones.
    changes bigint NOT NULL  -- pricing.month_changes at the export; if it differs now, another export is due.
    file_bytes bigint NOT NULL  -- Size of the file.
    sha256 text NOT NULL  -- Digest of the file.
    exported_at timestamp with time zone NOT NULL  -- When the file was written last.
    -- Since when only the file has the values, except each pair's newest; NULL = the database has all, too.
    moved_at timestamp with time zone
    -- Files about to replace this one, or at the end of their export: sizes by digest; reads accept them, too.
    coming jsonb NOT NULL DEFAULT '{}'::jsonb
    -- Digits before the point that the longest price of the type's files had when this one was written.
    price_whole smallint NOT NULL
    price_decimals smallint NOT NULL  -- Decimals of the file's prices.
    -- Digits before the point that the longest volume of the type's files had when this one was written.
    volume_whole smallint NOT NULL
    volume_decimals smallint NOT NULL  -- Decimals of the file's volumes.
    CONSTRAINT exported_months_pkey PRIMARY KEY (data_type, month)
    CONSTRAINT data_type_is_registered FOREIGN KEY (data_type) REFERENCES pricing.data_type_registry(data_type) ON
        DELETE CASCADE
    CONSTRAINT month_begins_on_its_first CHECK ((EXTRACT(day FROM month) = (1)::numeric))
);
GRANT SELECT ON TABLE pricing.exported_months TO pricing_reader;
GRANT SELECT ON TABLE pricing.exported_months TO pricing_worker;

-- Recipients whose last attempt failed, until the next success; after three failures in a row the breaker opens, and
-- their messages wait.
CREATE TABLE pricing.failing_recipients (
    operation_type text NOT NULL  -- The channel, or another operation type whose payload names the recipient.
    recipient text NOT NULL  -- The recipient that cannot be reached.
    since timestamp with time zone NOT NULL  -- When the first of these attempts failed.
    failed_at timestamp with time zone NOT NULL  -- When the last of them failed.
    failures integer NOT NULL DEFAULT 0  -- How many attempts have failed in a row.
    -- How often the breaker has opened since the first failure, each time for twice as long, up to 16 minutes.
    breaker_openings integer NOT NULL DEFAULT 0
    breaker_until timestamp with time zone  -- Until when only P0 is attempted; NULL = the breaker has not opened.
    -- Whether the recipient counts as unreachable: a message was given up, or three attempts failed.
    is_dead boolean NOT NULL DEFAULT false
    last_error text NOT NULL DEFAULT ''::text  -- Why the last attempt failed.
    CONSTRAINT failing_recipients_pkey PRIMARY KEY (operation_type, recipient)
) WITH (fillfactor=50);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.failing_recipients TO pricing_worker;

-- What a token for a feed reads.
CREATE TABLE pricing.feed_pairs (
    token_id bigint NOT NULL  -- The token.
    data_type text NOT NULL  -- Data type of prices.
    symbol text NOT NULL  -- Symbol of the instrument.
    CONSTRAINT feed_pairs_pkey PRIMARY KEY (token_id, data_type, symbol)
    CONSTRAINT feed_pairs_data_type_fkey FOREIGN KEY (data_type) REFERENCES pricing.data_type_registry(data_type) ON
        DELETE CASCADE
    CONSTRAINT feed_pairs_token_id_fkey FOREIGN KEY (token_id) REFERENCES pricing.api_tokens(token_id) ON DELETE CASCADE
);
GRANT SELECT ON TABLE pricing.feed_pairs TO pricing_worker;

-- What a provider can be asked for; each data type names one.
CREATE TABLE pricing.fetchers (
    fetcher text NOT NULL  -- Its name.
    -- What the answers consist of: prices, one for each time, with a history; documents, flat bodies, one for each
    -- period; inventory, slots of a product; commodities, what a terminal of a game buys and sells.
    contents text NOT NULL
    asset_classes text[]  -- The classes of instruments that have it; NULL = all.
    description text NOT NULL  -- For people.
    CONSTRAINT fetchers_pkey PRIMARY KEY (fetcher)
    CONSTRAINT contents_are_known CHECK ((contents = ANY (ARRAY['prices'::text, 'documents'::text, 'inventory'::text,
        'commodities'::text])))
);
CREATE INDEX fetchers_by_contents ON pricing.fetchers USING btree (contents);
GRANT SELECT ON TABLE pricing.fetchers TO pricing_reader;
GRANT SELECT ON TABLE pricing.fetchers TO pricing_worker;

-- How each watched data type served its viewers, every five minutes and for seven days, for plots.
CREATE TABLE pricing.freshness_samples (
    data_type text NOT NULL  -- The data type.
    at timestamp with time zone NOT NULL  -- When it was sampled.
    watched integer NOT NULL  -- How many pairs somebody watched.
    fresh integer NOT NULL  -- How many of them were within their TTL.
    late integer NOT NULL  -- How many were owed a price for more than max(30 s, TTL/4).
    oldest_age interval  -- Age of the oldest of their prices; NULL when none has one.
    CONSTRAINT freshness_samples_pkey PRIMARY KEY (data_type, at)
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.freshness_samples TO pricing_worker;
GRANT SELECT ON TABLE pricing.freshness_samples TO pricing_reader;
GRANT SELECT ON TABLE pricing.game_version_in_play TO pricing_reader;
GRANT SELECT ON TABLE pricing.game_version_in_play TO pricing_worker;

-- Versions of the game; each begins with new prices.
CREATE TABLE pricing.game_versions (
    version text NOT NULL  -- Its name, such as 4.1.
    seen_at timestamp with time zone NOT NULL  -- When a provider first named it.
    live_since timestamp with time zone  -- Since when it is live; NULL = it never was, as far as we know.
    live_until timestamp with time zone  -- Until when it was live; NULL while it is; at most one is.
    -- When it was live before live_since, if it came back.
    earlier_live_times tstzmultirange NOT NULL DEFAULT '{}'::tstzmultirange
    is_test boolean NOT NULL DEFAULT false  -- Whether it is only for tests, as the provider says.
    CONSTRAINT game_versions_pkey PRIMARY KEY (version)
    CONSTRAINT game_version_is_short CHECK (((length(version) >= 1) AND (length(version) <= 40)))
    CONSTRAINT live_times_are_in_order CHECK (((live_until IS NULL) OR (live_until >= live_since)))
);
CREATE UNIQUE INDEX one_version_is_live ON pricing.game_versions USING btree ((true)) WHERE ((live_since IS NOT NULL)
    AND (live_until IS NULL));
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.game_versions TO pricing_worker;
GRANT SELECT ON TABLE pricing.game_versions TO pricing_reader;

-- Days for which a provider has answered, with bars or with nothing; a backfill requests only the others.
CREATE TABLE pricing.history_coverage (
    data_type text NOT NULL  -- The data type.
    symbol text NOT NULL  -- The symbol.
    covered datemultirange NOT NULL DEFAULT '{}'::datemultirange  -- The answered days.
    CONSTRAINT history_coverage_pkey PRIMARY KEY (data_type, symbol)
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.history_coverage TO pricing_worker;
GRANT SELECT ON TABLE pricing.history_coverage TO pricing_reader;

-- Who holds what; while a pair has an active holding, its price is kept fresh by the background TTL.
CREATE TABLE pricing.holdings (
    user_id pricing.user_name NOT NULL  -- The user that holds it.
    data_type text NOT NULL  -- The data type.
    symbol text NOT NULL  -- The symbol.
    status text NOT NULL DEFAULT 'active'::text  -- active, or closed: kept as a record.
    -- Since when it is held; reset when a closed holding is opened again.
    since timestamp with time zone NOT NULL DEFAULT pricing.clock()
    closed_at timestamp with time zone  -- When it was released.
    active_symbol text GENERATED ALWAYS AS (
CASE
    WHEN (status = 'active'::text) THEN symbol
    ELSE NULL::text
END) STORED  -- The symbol, while the holding is active.
    -- Shares, units of a fund, coins, or of a pair the amount of its first currency; negative if sold short; NULL =
    -- unknown.
    quantity numeric
    CONSTRAINT holdings_pkey PRIMARY KEY (user_id, data_type, symbol)
    CONSTRAINT closed_holding_has_time CHECK (((status = 'closed'::text) = (closed_at IS NOT NULL)))
    CONSTRAINT quantity_is_sane CHECK (((abs(quantity) < '10000000000000000000000000000000000000000'::numeric) AND
        (scale(quantity) <= 100)))
    CONSTRAINT status_is_known CHECK ((status = ANY (ARRAY['active'::text, 'closed'::text])))
);
CREATE INDEX holdings_active ON pricing.holdings USING btree (data_type, active_symbol) WHERE (active_symbol IS NOT
    NULL);
ALTER TABLE pricing.holdings ENABLE ROW LEVEL SECURITY;
-- A reader sees no rows of another login.
CREATE POLICY reader_sees_own ON pricing.holdings FOR SELECT TO pricing_reader USING (((user_id)::text =
    (SESSION_USER)::text));
-- A worker acts for every user.
CREATE POLICY worker_serves_all ON pricing.holdings FOR ALL TO pricing_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.holdings TO pricing_worker;
GRANT SELECT ON TABLE pricing.holdings TO pricing_reader;

-- Instruments: everything that can be priced.
CREATE TABLE pricing.instruments (
    asset_class text NOT NULL  -- Its class, which decides its data types.
    symbol text NOT NULL  -- Its canonical symbol (docs/providers.md); providers may spell it otherwise.
    name text  -- For people.
    -- ISO 4217 or a coin (USDT), learned from the first answer if not given; values in another one are quarantined.
    currency text
    -- The least number of decimals stored with its prices; a source with more keeps more.
    scale smallint NOT NULL DEFAULT 2
    update_mode text NOT NULL DEFAULT 'api'::text  -- api = refreshed; manual = never fetched.
    is_active boolean NOT NULL DEFAULT true  -- False = never fetched.
    -- When a provider first had a valid answer; NULL = added by a subscription and not yet confirmed.
    verified_at timestamp with time zone
    created_at timestamp with time zone NOT NULL DEFAULT pricing.clock()  -- When it was added.
    -- When it trades or is valued, by pricing.calendar_rules unless given; NULL = unknown, so only TTLs count.
    calendar text
    -- First day of trading, if a person has given it, before which no backfill asks; pricing.listed_from also uses
    -- answers.
    listed_on date
    -- The MIC of its exchange, if a person has given it; NULL = the symbol decides (pricing.exchange_of).
    exchange text
    isin text  -- Its ISIN (ISO 6166), if a person has given it; it may trade on several exchanges; NULL = unknown.
    figi text  -- Its FIGI (ANSI X9.145), if a person has given it; NULL = unknown.
    CONSTRAINT instruments_pkey PRIMARY KEY (asset_class, symbol)
    CONSTRAINT instrument_has_calendar FOREIGN KEY (calendar) REFERENCES pricing.calendars(calendar)
    CONSTRAINT instrument_has_exchange FOREIGN KEY (exchange) REFERENCES pricing.exchanges(mic)
    CONSTRAINT currency_is_code CHECK ((currency ~ '^[A-Z]{3,5}$'::text))
    CONSTRAINT figi_looks_like_one CHECK ((figi ~ '^[B-DF-HJ-NP-TV-Z]{2}G[B-DF-HJ-NP-TV-Z0-9]{8}[0-9]$'::text))
    CONSTRAINT isin_looks_like_one CHECK ((isin ~ '^[A-Z]{2}[A-Z0-9]{9}[0-9]$'::text))
    CONSTRAINT scale_is_sane CHECK (((scale >= 0) AND (scale <= 12)))
    CONSTRAINT symbol_is_sane CHECK ((((length(symbol) >= 1) AND (length(symbol) <= 40)) AND (symbol ~
        '^[A-Za-z0-9^]([A-Za-z0-9./:=^_&''-]*|( ?[A-Za-z0-9.&''-])*:[A-Z0-9]{4})$'::text)))
    CONSTRAINT update_mode_is_known CHECK ((update_mode = ANY (ARRAY['api'::text, 'manual'::text])))
);
CREATE INDEX instruments_by_figi ON pricing.instruments USING btree (figi) WHERE (figi IS NOT NULL);
CREATE INDEX instruments_by_isin ON pricing.instruments USING btree (isin) WHERE (isin IS NOT NULL);
CREATE INDEX instruments_paused ON pricing.instruments USING btree (asset_class, symbol) WHERE ((update_mode <>
    'api'::text) OR (NOT is_active));
CREATE TRIGGER check_new_symbols AFTER INSERT ON pricing.instruments REFERENCING NEW TABLE AS added FOR EACH STATEMENT
    EXECUTE FUNCTION pricing.check_new_symbols();
CREATE TRIGGER choose_calendar BEFORE INSERT OR UPDATE OF currency, exchange ON pricing.instruments FOR EACH ROW WHEN
    ((new.calendar IS NULL)) EXECUTE FUNCTION pricing.choose_calendar();
CREATE TRIGGER instrument_paused AFTER UPDATE OF update_mode, is_active ON pricing.instruments FOR EACH ROW WHEN
    (((old.update_mode IS DISTINCT FROM new.update_mode) OR (old.is_active IS DISTINCT FROM new.is_active))) EXECUTE
    FUNCTION pricing.instrument_paused();
CREATE TRIGGER keep_class BEFORE UPDATE OF asset_class, symbol ON pricing.instruments FOR EACH ROW WHEN
    (((old.asset_class IS DISTINCT FROM new.asset_class) OR (old.symbol IS DISTINCT FROM new.symbol))) EXECUTE FUNCTION
    pricing.keep_class();
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.instruments TO pricing_worker;
GRANT SELECT ON TABLE pricing.instruments TO pricing_reader;
GRANT SELECT ON TABLE pricing.latest_answers TO pricing_reader;
GRANT SELECT ON TABLE pricing.latest_answers TO pricing_worker;

-- The newest known price of each pair, exactly amount / 10^scale.
CREATE TABLE pricing.latest_prices (
    data_type text NOT NULL  -- The data type.
    symbol text NOT NULL  -- The symbol.
    amount bigint NOT NULL  -- Price in units of 10^-scale.
    scale smallint NOT NULL  -- Decimals of amount.
    currency text  -- ISO 4217 or a coin (USDT); NULL = the source names none.
    -- The source's time; midnight UTC of the trading day for daily values.
    observed_at timestamp with time zone NOT NULL
    -- When a provider last confirmed it; advances with every valid answer.
    fetched_at timestamp with time zone NOT NULL
    provider text NOT NULL  -- The provider that sent it.
    call_id bigint NOT NULL  -- The call that brought it; collector_call_log has its run, time and bytes.
    source_text text NOT NULL  -- The price in the source's own digits.
    cache_ttl_minutes integer  -- Overrides the registry's TTL for this pair; refreshes never touch it.
    -- That of the pair's history; the newest value is the same on every basis.
    adjustment text NOT NULL DEFAULT 'raw'::text
    -- observed_at when this value first came; if the present observed_at is far ahead, the source may be frozen.
    changed_at timestamp with time zone
    quality text  -- As in price_history, of the bar whose close it is.
    -- The call that first brought this value; later ones confirmed it; NULL = stored before this was recorded.
    valued_by bigint
    CONSTRAINT latest_prices_pkey PRIMARY KEY (data_type, symbol)
    CONSTRAINT adjustment_is_known CHECK ((adjustment = ANY (ARRAY['raw'::text, 'splits'::text])))
    CONSTRAINT cache_ttl_is_positive CHECK ((cache_ttl_minutes > 0))
    CONSTRAINT scale_is_sane CHECK (((scale >= 0) AND (scale <= 18)))
) WITH (fillfactor=70);
CREATE INDEX latest_prices_own_ttl ON pricing.latest_prices USING btree (data_type, symbol) WHERE (cache_ttl_minutes IS
    NOT NULL);
CREATE TRIGGER learn_publish_lag AFTER UPDATE OF observed_at ON pricing.latest_prices FOR EACH ROW WHEN
    (((old.observed_at < new.observed_at) AND (new.observed_at = date_trunc('day'::text, new.observed_at,
    'UTC'::text)))) EXECUTE FUNCTION pricing.learn_publish_lag();
CREATE TRIGGER own_ttl_changed AFTER UPDATE OF cache_ttl_minutes ON pricing.latest_prices FOR EACH ROW WHEN
    ((old.cache_ttl_minutes IS DISTINCT FROM new.cache_ttl_minutes)) EXECUTE FUNCTION pricing.own_ttl_changed();
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.latest_prices TO pricing_worker;
GRANT SELECT ON TABLE pricing.latest_prices TO pricing_reader;

-- Units of logged calls between counted_from and counted_to, recounted now and then so that a claim counts only newer
-- calls; rows may be deleted at any time.
CREATE TABLE pricing.limit_counts (
    provider text NOT NULL  -- The provider.
    key_name text NOT NULL  -- The key they were made with.
    name text NOT NULL  -- The limit of provider_limits whose window this is.
    counted_from timestamp with time zone NOT NULL  -- Calls after this moment are counted.
    counted_to timestamp with time zone NOT NULL  -- Calls before this moment are counted.
    units bigint NOT NULL  -- Units charged for the counted calls.
    CONSTRAINT limit_counts_pkey PRIMARY KEY (provider, key_name, name)
    CONSTRAINT count_has_limit FOREIGN KEY (provider, name) REFERENCES pricing.provider_limits(provider, name) ON DELETE
        CASCADE
    CONSTRAINT count_is_upright CHECK ((counted_from < counted_to))
) WITH (fillfactor=50);
GRANT SELECT ON TABLE pricing.limit_counts TO pricing_reader;
GRANT SELECT ON TABLE pricing.limit_counts TO pricing_worker;

-- Pairs on users' lists; reading a list watches its pairs.
CREATE TABLE pricing.listed_pairs (
    user_id pricing.user_name NOT NULL  -- The user whose list it is.
    list text NOT NULL  -- Name of the list.
    data_type text NOT NULL  -- Data type of prices.
    symbol text NOT NULL  -- Symbol of the instrument.
    CONSTRAINT listed_pairs_pkey PRIMARY KEY (user_id, list, data_type, symbol)
    CONSTRAINT listed_pairs_data_type_fkey FOREIGN KEY (data_type) REFERENCES pricing.data_type_registry(data_type) ON
        DELETE CASCADE
    CONSTRAINT list_name_is_sane CHECK ((list ~ '^[a-z0-9][a-z0-9_-]{0,47}$'::text))
);
ALTER TABLE pricing.listed_pairs ENABLE ROW LEVEL SECURITY;
-- A reader sees no rows of another login.
CREATE POLICY reader_sees_own ON pricing.listed_pairs FOR SELECT TO pricing_reader USING (((user_id)::text =
    (SESSION_USER)::text));
-- A worker acts for every user.
CREATE POLICY worker_serves_all ON pricing.listed_pairs FOR ALL TO pricing_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.listed_pairs TO pricing_worker;
GRANT SELECT ON TABLE pricing.listed_pairs TO pricing_reader;

-- Pairs with values that have moved from the database to a file.
CREATE TABLE pricing.moved_days (
    data_type text NOT NULL  -- The data type.
    symbol text NOT NULL  -- The symbol.
    days datemultirange NOT NULL  -- UTC days with a believed value that has moved.
    noted_days datemultirange NOT NULL  -- The days of `days`, and days from which only earlier values have moved.
    CONSTRAINT moved_days_pkey PRIMARY KEY (data_type, symbol)
    CONSTRAINT data_type_is_registered FOREIGN KEY (data_type) REFERENCES pricing.data_type_registry(data_type) ON
        DELETE CASCADE
);
GRANT SELECT ON TABLE pricing.moved_days TO pricing_reader;
GRANT SELECT ON TABLE pricing.moved_days TO pricing_worker;

-- Days that became sessions while bars of them were quarantined, which a worker releases within a second.
CREATE TABLE pricing.opened_days (
    calendar text NOT NULL  -- The calendar.
    day date NOT NULL  -- The day, in the calendar's time zone.
    reason text NOT NULL  -- Why it became a session.
    -- How often bars of the day were recorded: a worker deletes the row only if it has seen them all.
    notes bigint NOT NULL DEFAULT 1
    CONSTRAINT opened_days_pkey PRIMARY KEY (calendar, day)
    CONSTRAINT opened_days_calendar_fkey FOREIGN KEY (calendar) REFERENCES pricing.calendars(calendar) ON DELETE CASCADE
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.opened_days TO pricing_worker;
GRANT SELECT ON TABLE pricing.opened_days TO pricing_reader;
GRANT SELECT ON TABLE pricing.operation_status TO pricing_reader;
GRANT SELECT ON TABLE pricing.operation_status TO pricing_worker;

-- What can be queued to happen outside the database, and how often it is tried.
CREATE TABLE pricing.operation_types (
    operation_type text NOT NULL  -- Its name, and that of its handler.
    description text NOT NULL DEFAULT ''::text  -- For people.
    -- The fields of a payload: string, number, boolean, object, array or url, optional with a ? at the end; others are
    -- refused.
    payload_fields jsonb NOT NULL DEFAULT '{}'::jsonb
    max_attempts smallint NOT NULL DEFAULT 3  -- Attempts before it is dead; counted when it is claimed.
    time_limit_seconds smallint NOT NULL DEFAULT 30  -- How long one attempt may take.
    -- Pause after the first failed attempt; it doubles with each further one.
    first_pause interval NOT NULL DEFAULT '00:05:00'::interval
    is_active boolean NOT NULL DEFAULT true  -- False = queued ones wait, and new ones are refused.
    is_built_in boolean NOT NULL DEFAULT false  -- Whether the pipeline handles it; false = a handler of the user's own.
    takes_messages boolean NOT NULL GENERATED ALWAYS AS (
CASE
    WHEN (jsonb_typeof(payload_fields) = 'object'::text) THEN ((payload_fields @> '{"body": "string", "title": "string",
        "recipient": "string"}'::jsonb) AND (COALESCE((payload_fields -> 'data'::text), '"object?"'::jsonb) =
        '"object?"'::jsonb) AND (NOT jsonb_path_exists((payload_fields - '{recipient, title, body, data}'::text[]),
        'strict $.*?(!(@ like_regex "[?]$"))'::jsonpath)))
    ELSE false
END) STORED  -- Whether it can be a channel: it takes recipient, title and body, and needs nothing else.
    CONSTRAINT operation_types_pkey PRIMARY KEY (operation_type)
    CONSTRAINT operation_types_takes_messages UNIQUE (operation_type, takes_messages)
    CONSTRAINT first_pause_is_sane CHECK (((first_pause >= '00:00:01'::interval) AND (first_pause <= '1
        day'::interval)))
    CONSTRAINT operation_attempts_are_sane CHECK (((max_attempts >= 1) AND (max_attempts <= 20)))
    CONSTRAINT operation_time_limit_is_sane CHECK (((time_limit_seconds >= 1) AND (time_limit_seconds <= 240)))
    CONSTRAINT operation_type_is_plain_name CHECK ((operation_type ~ '^[a-z][a-z0-9_]{0,47}$'::text))
    CONSTRAINT payload_fields_are_known CHECK (
CASE
    WHEN (jsonb_typeof(payload_fields) = 'object'::text) THEN (NOT jsonb_path_exists(payload_fields, 'strict
        $.keyvalue()?(!((@."key" like_regex "^[A-Za-z_][A-Za-z0-9_]{0, 47}$" && @."value".type() == "string") &&
        @."value" like_regex "^(string|number|boolean|object|array|url)[?]?$"))'::jsonpath))
    ELSE false
END)
);
GRANT SELECT ON TABLE pricing.operation_types TO pricing_reader;
GRANT SELECT ON TABLE pricing.operation_types TO pricing_worker;

-- Spans in which every call to a provider for a data type failed of trouble that others may share; deleted 15 s after
-- an answer, or 24 hours after the last failure.
CREATE TABLE pricing.outages (
    outage_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- Numbers outages in order.
    provider text NOT NULL  -- The provider that does not answer.
    data_type text NOT NULL  -- The data type.
    since timestamp with time zone NOT NULL  -- When the first of these calls began.
    last_fault_at timestamp with time zone NOT NULL  -- When the last call failed.
    probed_at timestamp with time zone  -- When a waiting pair or task was last put ahead of its pause; NULL = not yet.
    answered_at timestamp with time zone  -- When the provider answered again; NULL = not yet.
    CONSTRAINT outages_pkey PRIMARY KEY (outage_id)
    CONSTRAINT outages_data_type_fkey FOREIGN KEY (data_type) REFERENCES pricing.data_type_registry(data_type) ON DELETE
        CASCADE
    CONSTRAINT outages_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider) ON DELETE
        CASCADE
) WITH (fillfactor=50);
CREATE INDEX outages_data_type ON pricing.outages USING btree (data_type);
CREATE UNIQUE INDEX one_open_outage ON pricing.outages USING btree (provider, data_type) WHERE (answered_at IS NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.outages TO pricing_worker;
GRANT SELECT ON TABLE pricing.outages TO pricing_reader;

-- Requests of clients, and of walks that met a lock, to workers (serve_requests); rows are only added and deleted, so
-- nobody waits.
CREATE TABLE pricing.pair_requests (
    request_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- Requests are served in this order.
    data_type text NOT NULL  -- The data type.
    symbol text NOT NULL  -- The symbol.
    -- watched, held = a user has begun to; read = read while missing or stale; seen = viewed; scheduled = a schedule
    -- could not queue it, for want of room or because of a lock.
    kind text NOT NULL
    requested_at timestamp with time zone NOT NULL DEFAULT pricing.clock()  -- When it was asked for.
    user_id pricing.user_name  -- The user whose allowance the read counts against; NULL = not a client's read.
    CONSTRAINT pair_requests_pkey PRIMARY KEY (request_id)
    CONSTRAINT kind_is_known CHECK ((kind = ANY (ARRAY['watched'::text, 'held'::text, 'read'::text, 'seen'::text,
        'scheduled'::text])))
    CONSTRAINT symbol_is_sane CHECK ((length(symbol) <= 40))
);
CREATE INDEX pair_requests_pair ON pricing.pair_requests USING btree (data_type, symbol);
ALTER TABLE pricing.pair_requests ENABLE ROW LEVEL SECURITY;
-- A reader sees no rows of another login.
CREATE POLICY reader_sees_own ON pricing.pair_requests FOR SELECT TO pricing_reader USING (((user_id)::text =
    (SESSION_USER)::text));
-- A worker acts for every user.
CREATE POLICY worker_serves_all ON pricing.pair_requests FOR ALL TO pricing_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.pair_requests TO pricing_worker;
GRANT SELECT ON TABLE pricing.pair_requests TO pricing_reader;

-- When each pair was last viewed, to ten minutes: written when a viewer leaves and by reads, never by heartbeats, and
-- kept for 48 hours.
CREATE TABLE pricing.pair_views (
    data_type text NOT NULL  -- The data type.
    symbol text NOT NULL  -- The symbol.
    viewed_at timestamp with time zone NOT NULL  -- The last recorded view.
    CONSTRAINT pair_views_pkey PRIMARY KEY (data_type, symbol)
) WITH (fillfactor=70);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.pair_views TO pricing_worker;
GRANT SELECT ON TABLE pricing.pair_views TO pricing_reader;

-- Answered calls that have left collector_call_log, kept forever to trace the prices that they brought.
CREATE TABLE pricing.past_calls (
    call_id bigint NOT NULL  -- Its number, which prices carry.
    provider text NOT NULL  -- The provider that was asked.
    key_name text NOT NULL  -- The key that it was made with.
    data_type text NOT NULL  -- The data type.
    window_start date  -- First day asked for; NULL = the latest price.
    window_end date  -- Last day asked for, included; NULL = the latest price.
    symbols integer NOT NULL  -- How many symbols were asked for.
    run_id text  -- Dagster's id of the run that made it, even if Dagster has deleted that run; NULL = none.
    worker text NOT NULL  -- The worker that made it: host and process.
    started_at timestamp with time zone NOT NULL  -- When it was claimed.
    finished_at timestamp with time zone NOT NULL  -- When its answer was settled.
    http_status integer  -- Status of the answer.
    wire_bytes bigint  -- Headers and body as sent, compressed.
    CONSTRAINT past_calls_pkey PRIMARY KEY (call_id)
);
GRANT SELECT ON TABLE pricing.past_calls TO pricing_reader;
GRANT SELECT ON TABLE pricing.past_calls TO pricing_worker;

-- How many of a category a slot takes, as believed now.
CREATE TABLE pricing.pax_availability (
    slot_key bigint NOT NULL  -- The slot.
    category_key bigint NOT NULL  -- The category.
    minimum integer  -- Fewest units of one booking; NULL = no bound.
    maximum integer  -- Most units of one booking; NULL = no bound.
    remaining integer  -- Units left; NULL = unknown, or without a bound.
    is_primary boolean NOT NULL DEFAULT false  -- Whether the product is made for this category; others come along.
    is_offered boolean NOT NULL DEFAULT true  -- False = the slot no longer takes it.
    call_id bigint NOT NULL  -- The call that brought it.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believe it.
    CONSTRAINT pax_availability_pkey PRIMARY KEY (slot_key, category_key)
    CONSTRAINT pax_availability_category_key_fkey FOREIGN KEY (category_key) REFERENCES
        pricing.pax_categories(category_key)
    CONSTRAINT pax_availability_slot_key_fkey FOREIGN KEY (slot_key) REFERENCES pricing.slots(slot_key)
    CONSTRAINT maximum_is_sane CHECK ((maximum >= 0))
    CONSTRAINT minimum_is_sane CHECK (((minimum >= 0) AND (minimum <= maximum)))
    CONSTRAINT pax_remaining_is_sane CHECK ((remaining >= 0))
) WITH (fillfactor=85);
CREATE TRIGGER keep_revision AFTER UPDATE ON pricing.pax_availability REFERENCING OLD TABLE AS old_rows NEW TABLE AS
    new_rows FOR EACH STATEMENT EXECUTE FUNCTION pricing.keep_revision('slot_key, category_key', 'o.slot_key::text');
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.pax_availability TO pricing_worker;
GRANT SELECT ON TABLE pricing.pax_availability TO pricing_reader;

-- Who products are sold to, such as adults or a group of four.
CREATE TABLE pricing.pax_categories (
    category_key bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- Our number for it.
    symbol text NOT NULL  -- The product.
    provider text NOT NULL  -- The provider that gave the id.
    category_id text NOT NULL  -- Its id at the provider, unique within the product.
    name text NOT NULL  -- For people.
    kind text  -- The provider's word for it, such as ADULT; NULL = none.
    age_from integer  -- Youngest age, included; NULL = no bound.
    age_to integer  -- Oldest age, included; NULL = no bound.
    pax_count integer NOT NULL DEFAULT 1  -- How many people one unit is for.
    is_described boolean NOT NULL  -- Whether the product describes it, so that slots do not rename it.
    is_listed boolean NOT NULL DEFAULT true  -- False = the product no longer has it.
    call_id bigint NOT NULL  -- The call that brought it.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believe it.
    CONSTRAINT pax_categories_pkey PRIMARY KEY (category_key)
    CONSTRAINT pax_categories_symbol_provider_category_id_key UNIQUE (symbol, provider, category_id)
    CONSTRAINT pax_categories_symbol_fkey FOREIGN KEY (symbol) REFERENCES pricing.products(symbol)
    CONSTRAINT ages_are_upright CHECK ((age_to >= age_from))
    CONSTRAINT pax_count_is_positive CHECK ((pax_count > 0))
);
CREATE TRIGGER keep_revision AFTER UPDATE ON pricing.pax_categories REFERENCING OLD TABLE AS old_rows NEW TABLE AS
    new_rows FOR EACH STATEMENT EXECUTE FUNCTION pricing.keep_revision('category_key', 'o.symbol');
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.pax_categories TO pricing_worker;
GRANT SELECT ON TABLE pricing.pax_categories TO pricing_reader;

-- What people know of a symbol's prices, or of all of a data type (symbol NULL); a symbol's row replaces the broad one;
-- no row = no bounds.
CREATE TABLE pricing.plausibility_bounds (
    data_type text NOT NULL  -- The data type.
    symbol text  -- NULL = every symbol of the type without its own row.
    lowest numeric  -- Lower prices are quarantined.
    highest numeric  -- Higher prices are quarantined.
    -- Until then no value is quarantined as a jump: a person has checked a split or a change of unit.
    jumps_trusted_until timestamp with time zone
    CONSTRAINT plausibility_bounds_data_type_fkey FOREIGN KEY (data_type) REFERENCES
        pricing.data_type_registry(data_type) ON DELETE CASCADE
    CONSTRAINT bounds_are_upright CHECK ((lowest <= highest))
    CONSTRAINT highest_is_a_price CHECK (((highest > (0)::numeric) AND (highest < 'Infinity'::numeric)))
    CONSTRAINT lowest_is_a_price CHECK (((lowest >= (0)::numeric) AND (lowest < 'Infinity'::numeric)))
);
CREATE UNIQUE INDEX plausibility_bounds_pair ON pricing.plausibility_bounds USING btree (data_type, symbol) NULLS NOT
    DISTINCT;
GRANT SELECT ON TABLE pricing.plausibility_bounds TO pricing_reader;
GRANT SELECT ON TABLE pricing.plausibility_bounds TO pricing_worker;

-- Price alerts: what each waits for, and what it last saw and told.
CREATE TABLE pricing.price_alerts (
    price_alert_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- In the order in which they were added.
    recipient text NOT NULL  -- The recipient.
    data_type text NOT NULL  -- The data type of the prices.
    symbol text  -- The symbol; NULL = all symbols of the data type.
    -- above, below = the price crosses the threshold; moved = by so many percent; stale = for so long; each = every new
    -- price.
    condition text NOT NULL
    threshold numeric  -- A price, or for moved a percentage.
    lasts interval  -- How long a pair must be stale before it is told.
    pace interval  -- New prices are told together, at most once in this time.
    -- Whether the last price was beyond the threshold, or the pair was stale for too long: that was told.
    is_beyond boolean NOT NULL DEFAULT false
    seen numeric  -- The last price that was judged; NULL = none yet.
    seen_at timestamp with time zone  -- Its time at the source.
    reference numeric  -- For moved, the price from which the move counts.
    reference_at timestamp with time zone  -- Its time at the source.
    told_at timestamp with time zone  -- When its recipient was last told.
    created_at timestamp with time zone NOT NULL  -- When it was added.
    created_by text NOT NULL  -- Who added it.
    user_id text  -- The user who asked for it over HTTP; NULL = added with the command line.
    -- Whether every price stored or being stored when the alert was added has been judged; until then each look
    -- includes the latest price.
    is_caught_up boolean NOT NULL DEFAULT false
    -- The transaction before which all must have ended for the alert to be caught up; NULL = not looked at yet.
    caught_up_after xid8
    -- How far beyond the threshold a price must come back before a crossing is told again; 0 = to the threshold.
    hysteresis numeric NOT NULL DEFAULT 0
    -- What hysteresis is: an amount of the price, or percent of the threshold.
    hysteresis_in text NOT NULL DEFAULT 'amount'::text
    CONSTRAINT price_alerts_pkey PRIMARY KEY (price_alert_id)
    CONSTRAINT price_alerts_data_type_fkey FOREIGN KEY (data_type) REFERENCES pricing.data_type_registry(data_type) ON
        DELETE CASCADE
    CONSTRAINT price_alerts_recipient_fkey FOREIGN KEY (recipient) REFERENCES pricing.recipients(recipient) ON DELETE
        CASCADE
    CONSTRAINT a_user_is_told_once_a_minute CHECK (((user_id IS NULL) OR (pace IS NULL) OR (pace >=
        '00:01:00'::interval)))
    CONSTRAINT a_user_names_a_symbol CHECK (((user_id IS NULL) OR (symbol IS NOT NULL)))
    CONSTRAINT hysteresis_is_sane CHECK (((hysteresis >= (0)::numeric) AND (hysteresis <=
        '1000000000000000000'::numeric) AND (scale(hysteresis) <= 12)))
    CONSTRAINT hysteresis_leaves_a_way_back CHECK (((hysteresis = (0)::numeric) OR
CASE hysteresis_in
    WHEN 'percent'::text THEN (hysteresis < (100)::numeric)
    ELSE ((condition <> 'above'::text) OR (hysteresis < threshold))
END))
    CONSTRAINT hysteresis_unit_is_known CHECK ((hysteresis_in = ANY (ARRAY['amount'::text, 'percent'::text])))
    CONSTRAINT lasts_is_sane CHECK (((lasts >= '00:01:00'::interval) AND (lasts <= '30 days'::interval)))
    CONSTRAINT only_each_is_of_all_symbols CHECK (((symbol IS NOT NULL) OR (condition = 'each'::text)))
    CONSTRAINT only_thresholds_have_hysteresis CHECK (((hysteresis = (0)::numeric) OR (condition = ANY
        (ARRAY['above'::text, 'below'::text]))))
    CONSTRAINT pace_is_sane CHECK (((pace >= '00:00:01'::interval) AND (pace <= '01:00:00'::interval)))
    CONSTRAINT price_alert_user_is_sane CHECK (((length(user_id) >= 1) AND (length(user_id) <= 200)))
    CONSTRAINT price_condition_has_its_values CHECK ((((condition = ANY (ARRAY['above'::text, 'below'::text,
        'moved'::text])) = (threshold IS NOT NULL)) AND ((condition = 'stale'::text) = (lasts IS NOT NULL)) AND
        ((condition = 'each'::text) = (pace IS NOT NULL))))
    CONSTRAINT price_condition_is_known CHECK ((condition = ANY (ARRAY['above'::text, 'below'::text, 'moved'::text,
        'stale'::text, 'each'::text])))
    CONSTRAINT seen_price_has_time CHECK ((((seen IS NULL) = (seen_at IS NULL)) AND ((reference IS NULL) = (reference_at
        IS NULL))))
    CONSTRAINT threshold_is_positive CHECK (((threshold > (0)::numeric) AND (threshold <=
        '1000000000000000000'::numeric) AND (scale(threshold) <= 12)))
) WITH (fillfactor=70);
CREATE INDEX price_alerts_of_pair ON pricing.price_alerts USING btree (data_type, symbol);
CREATE INDEX price_alerts_of_user ON pricing.price_alerts USING btree (user_id, price_alert_id) WHERE (user_id IS NOT
    NULL);
CREATE UNIQUE INDEX price_alerts_once ON pricing.price_alerts USING btree (recipient, data_type, symbol, condition,
    threshold, lasts, user_id) NULLS NOT DISTINCT;
ALTER TABLE pricing.price_alerts ENABLE ROW LEVEL SECURITY;
-- A reader sees no rows of another login.
CREATE POLICY reader_sees_own ON pricing.price_alerts FOR SELECT TO pricing_reader USING ((user_id =
    (SESSION_USER)::text));
-- A worker acts for every user.
CREATE POLICY worker_serves_all ON pricing.price_alerts FOR ALL TO pricing_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.price_alerts TO pricing_worker;

-- New prices that an alert has not judged yet, a row for each price and alert, added in the transaction that stores the
-- price.
CREATE TABLE pricing.price_events (
    event_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- Rises; for a pair in the order of storage.
    price_alert_id bigint NOT NULL  -- The alert.
    symbol text NOT NULL  -- The symbol whose price it is.
    amount bigint NOT NULL  -- The price in units of its last decimal.
    scale smallint NOT NULL  -- How many decimals the price has.
    currency text  -- NULL = the provider named none.
    observed_at timestamp with time zone NOT NULL  -- The price's time at the source.
    provider text NOT NULL  -- The provider that sent it.
    call_id bigint NOT NULL  -- The call that brought it.
    stored_at timestamp with time zone NOT NULL  -- When it was stored.
    CONSTRAINT price_events_pkey PRIMARY KEY (price_alert_id, event_id)
) WITH (autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=500);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.price_events TO pricing_worker;

-- The believed value for every past time, with a table partition for each data type; amount is the close, NAV or quote.
CREATE TABLE pricing.price_history (
    data_type text NOT NULL  -- The data type.
    symbol text NOT NULL  -- The symbol.
    -- The source's time; midnight UTC of the trading day for daily values.
    observed_at timestamp with time zone NOT NULL
    amount bigint NOT NULL  -- Close, NAV or quote, in units of 10^-scale.
    open_amount bigint  -- Open of a daily bar, in units of 10^-scale.
    high_amount bigint  -- High of a daily bar, in units of 10^-scale.
    low_amount bigint  -- Low of a daily bar, in units of 10^-scale.
    scale smallint NOT NULL  -- Decimals of the amounts.
    currency text  -- ISO 4217 or a coin (USDT); NULL = the source names none.
    volume numeric  -- Traded volume of a daily bar, in shares or contracts.
    provider text NOT NULL  -- The provider that sent it.
    call_id bigint NOT NULL  -- The call that brought it.
    fetched_at timestamp with time zone NOT NULL  -- Since when we believe it.
    -- raw = as traded on its day; splits = divided by every split since; the same for all of a symbol's values in a
    -- data type.
    adjustment text NOT NULL DEFAULT 'raw'::text
    -- Which parts of the source's bar were dropped because they contradict its close, and why; NULL = none.
    quality text
    -- The source's spelling of amount; NULL = spelled as amount with scale decimals, as 146.50, or stored before
    -- spellings were kept.
    source_text text
    CONSTRAINT price_history_pkey PRIMARY KEY (data_type, symbol, observed_at)
    CONSTRAINT adjustment_is_known CHECK ((adjustment = ANY (ARRAY['raw'::text, 'splits'::text])))
) PARTITION BY LIST (data_type);
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.price_history TO pricing_worker;
GRANT SELECT ON TABLE pricing.price_history TO pricing_reader;

-- The old value of every changed history row, believed from recorded_at until revised_at.
CREATE TABLE pricing.price_revisions (
    data_type text NOT NULL  -- The data type.
    symbol text NOT NULL  -- The symbol.
    observed_at timestamp with time zone NOT NULL  -- The source's time.
    amount bigint NOT NULL  -- What we believed, in units of 10^-scale.
    open_amount bigint  -- Open, in units of 10^-scale.
    high_amount bigint  -- High, in units of 10^-scale.
    low_amount bigint  -- Low, in units of 10^-scale.
    scale smallint NOT NULL  -- Decimals of the amounts.
    currency text  -- As in price_history.
    volume numeric  -- Traded volume.
    provider text NOT NULL  -- The provider that had sent it.
    call_id bigint NOT NULL  -- The call that had brought it.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believed it.
    revised_at timestamp with time zone NOT NULL  -- Until when we believed it.
    revised_by bigint NOT NULL  -- The call that brought another value.
    adjustment text NOT NULL DEFAULT 'raw'::text  -- As in price_history.
    quality text  -- As in price_history.
    source_text text  -- As in price_history.
    CONSTRAINT price_revisions_pkey PRIMARY KEY (data_type, symbol, observed_at, revised_at)
    CONSTRAINT adjustment_is_known CHECK ((adjustment = ANY (ARRAY['raw'::text, 'splits'::text])))
);
CREATE INDEX price_revisions_recent ON pricing.price_revisions USING btree (data_type, revised_at);
GRANT INSERT, SELECT ON TABLE pricing.price_revisions TO pricing_worker;
GRANT SELECT ON TABLE pricing.price_revisions TO pricing_reader;

-- Variants of products, such as a language or a meeting point.
CREATE TABLE pricing.product_options (
    symbol text NOT NULL  -- The product.
    provider text NOT NULL  -- The provider that gave the id.
    option_id text NOT NULL  -- Its id at the provider, unique within the product.
    name text  -- For people; NULL = only slots have named it so far.
    is_default boolean NOT NULL DEFAULT false  -- Whether the provider books it where none is chosen.
    is_listed boolean NOT NULL DEFAULT true  -- False = the product no longer has it.
    call_id bigint NOT NULL  -- The call that brought it.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believe it.
    CONSTRAINT product_options_pkey PRIMARY KEY (symbol, provider, option_id)
    CONSTRAINT product_options_symbol_fkey FOREIGN KEY (symbol) REFERENCES pricing.products(symbol)
);
CREATE TRIGGER keep_revision AFTER UPDATE ON pricing.product_options REFERENCING OLD TABLE AS old_rows NEW TABLE AS
    new_rows FOR EACH STATEMENT EXECUTE FUNCTION pricing.keep_revision('symbol, provider, option_id', 'o.symbol');
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.product_options TO pricing_worker;
GRANT SELECT ON TABLE pricing.product_options TO pricing_reader;

-- What is sold in slots, by the symbol of its instrument (asset class inventory).
CREATE TABLE pricing.products (
    symbol text NOT NULL  -- Its instrument.
    provider text NOT NULL  -- The provider that last listed it.
    name text  -- For people; NULL = only its slots are known.
    time_zone text  -- IANA zone of its place, as the provider says; NULL = unknown.
    set_time_zone text  -- The zone that a person has set, which takes precedence; NULL = none.
    call_id bigint  -- The call that brought it; NULL = changed by a person since.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believe it.
    is_listed boolean NOT NULL DEFAULT true  -- False = its provider no longer has it.
    CONSTRAINT products_pkey PRIMARY KEY (symbol)
);
CREATE TRIGGER keep_revision AFTER UPDATE ON pricing.products REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION pricing.keep_revision('symbol', 'o.symbol');
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.products TO pricing_worker;
GRANT SELECT ON TABLE pricing.products TO pricing_reader;

-- What a provider can fetch, in which batches, and at what cost in its own units; claims plan calls from it.
CREATE TABLE pricing.provider_capabilities (
    provider text NOT NULL  -- The provider.
    fetcher text NOT NULL  -- What it can be asked for.
    batch_size integer NOT NULL  -- Symbols in one call for latest prices.
    window_batch_size integer NOT NULL DEFAULT 1  -- Symbols in one call for a span of days, where answers are long.
    units_per_call integer NOT NULL DEFAULT 0  -- Cost of a call, in the provider's units.
    units_per_symbol integer NOT NULL DEFAULT 0  -- Cost of each symbol of a call, in the provider's units.
    -- Longest span one call may ask for, so that an answer is never cut at a page.
    max_window_days integer NOT NULL DEFAULT 1
    bytes_per_day integer NOT NULL DEFAULT 150  -- Bytes on the wire for a day of history of one symbol, as an estimate.
    -- Whether a new data type of this fetcher may be routed to this provider automatically.
    routes_new_types boolean NOT NULL DEFAULT true
    -- The most days over all symbols of a call for a span, so that long spans travel alone; NULL = window_batch_size
    -- decides.
    window_days_per_call integer
    -- The fewest symbols that share a call for latest prices; fewer, and those that failed before, are requested one by
    -- one; 1 = any number shares a call.
    batch_from integer NOT NULL DEFAULT 1
    CONSTRAINT provider_capabilities_pkey PRIMARY KEY (provider, fetcher)
    CONSTRAINT provider_capabilities_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider)
    CONSTRAINT a_call_costs_something CHECK (((units_per_call >= 0) AND (units_per_symbol >= 0) AND ((units_per_call +
        units_per_symbol) > 0)))
    CONSTRAINT batch_from_is_at_most_batch_size CHECK ((batch_from <= batch_size))
    CONSTRAINT batch_from_is_positive CHECK ((batch_from > 0))
    CONSTRAINT batch_is_positive CHECK ((batch_size > 0))
    CONSTRAINT window_batch_is_positive CHECK ((window_batch_size > 0))
    CONSTRAINT window_days_are_positive CHECK ((window_days_per_call > 0))
    CONSTRAINT window_is_positive CHECK ((max_window_days > 0))
);
CREATE TRIGGER capability_changed AFTER INSERT OR UPDATE ON pricing.provider_capabilities FOR EACH ROW EXECUTE FUNCTION
    pricing.provider_switched();
CREATE TRIGGER forget_shown_batch AFTER UPDATE OF batch_size, window_batch_size ON pricing.provider_capabilities FOR
    EACH ROW EXECUTE FUNCTION pricing.forget_shown_batch();
GRANT SELECT ON TABLE pricing.provider_capabilities TO pricing_reader;
GRANT SELECT ON TABLE pricing.provider_capabilities TO pricing_worker;

-- Providers' API keys under AES-256-GCM, each with its own data key, wrapped by a master key outside the database, and
-- bound to provider, key_name, row_version and master_key_id.
CREATE TABLE pricing.provider_credentials (
    provider text NOT NULL  -- The provider.
    key_name text NOT NULL  -- Its name, under which provider_keys has its limits and pauses.
    row_version bigint NOT NULL  -- A new one each time the row is sealed.
    master_key_id text NOT NULL  -- The master key that wraps wrapped_key.
    key_nonce bytea NOT NULL  -- Nonce of wrapped_key, random.
    wrapped_key bytea NOT NULL  -- The data key, encrypted with the master key, and its tag.
    secret_nonce bytea NOT NULL  -- Nonce of ciphertext, random.
    ciphertext bytea NOT NULL  -- The API key, padded, encrypted with the data key, and its tag.
    created_at timestamp with time zone NOT NULL  -- When a key of this name was first stored.
    replaced_at timestamp with time zone  -- When it was last replaced by another; NULL = never.
    sealed_at timestamp with time zone NOT NULL  -- When the row was last encrypted, even if only for a new master key.
    CONSTRAINT provider_credentials_pkey PRIMARY KEY (provider, key_name)
    CONSTRAINT credential_version_is_unique UNIQUE (row_version)
    CONSTRAINT credential_has_key FOREIGN KEY (provider, key_name) REFERENCES pricing.provider_keys(provider, key_name)
    CONSTRAINT provider_credentials_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider) ON
        DELETE CASCADE
    CONSTRAINT ciphertext_is_padded CHECK ((((octet_length(ciphertext) >= 80) AND (octet_length(ciphertext) <= 4176))
        AND ((octet_length(ciphertext) % 64) = 16)))
    CONSTRAINT key_nonce_has_96_bits CHECK ((octet_length(key_nonce) = 12))
    CONSTRAINT master_key_id_is_plain CHECK ((master_key_id ~ '^[a-z0-9][a-z0-9_-]{0,47}$'::text))
    CONSTRAINT nonces_differ CHECK ((key_nonce <> secret_nonce))
    CONSTRAINT secret_nonce_has_96_bits CHECK ((octet_length(secret_nonce) = 12))
    CONSTRAINT wrapped_key_has_key_and_tag CHECK ((octet_length(wrapped_key) = 48))
);
GRANT SELECT ON TABLE pricing.provider_credentials TO pricing_worker;

-- Declared providers (`provider declare`), by which workers make calls and read answers; others are coded.
CREATE TABLE pricing.provider_declarations (
    provider text NOT NULL  -- The declared provider.
    host text NOT NULL  -- Host of its base URL, where its keys go; no other provider has it.
    content text NOT NULL  -- The file, in YAML, as it was declared.
    CONSTRAINT provider_declarations_pkey PRIMARY KEY (provider)
    CONSTRAINT provider_declarations_host_key UNIQUE (host)
    CONSTRAINT provider_declarations_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider)
        ON DELETE CASCADE
    CONSTRAINT content_is_short CHECK (((length(content) >= 1) AND (length(content) <= 64000)))
    CONSTRAINT host_is_plain CHECK ((host ~ '^[a-z0-9.-]{1,253}$'::text))
);
CREATE TRIGGER declared_anew AFTER UPDATE ON pricing.provider_declarations FOR EACH ROW WHEN ((old.content IS DISTINCT
    FROM new.content)) EXECUTE FUNCTION pricing.registry_changed();
CREATE TRIGGER keep_key_at_host BEFORE UPDATE ON pricing.provider_declarations FOR EACH ROW WHEN (((new.host <>
    old.host) OR (new.provider <> old.provider))) EXECUTE FUNCTION pricing.keep_key_at_host();
CREATE TRIGGER registry_changed AFTER INSERT OR DELETE ON pricing.provider_declarations FOR EACH ROW EXECUTE FUNCTION
    pricing.registry_changed();
GRANT SELECT ON TABLE pricing.provider_declarations TO pricing_reader;
GRANT SELECT ON TABLE pricing.provider_declarations TO pricing_worker;

-- Keys whose plan differs: other units than provider_limits says, in the same window.
CREATE TABLE pricing.provider_key_limits (
    provider text NOT NULL  -- The provider.
    key_name text NOT NULL  -- The key that differs.
    name text NOT NULL  -- The limit's name in provider_limits, which has its window.
    units integer NOT NULL  -- Units allowed to this key in the window.
    CONSTRAINT provider_key_limits_pkey PRIMARY KEY (provider, key_name, name)
    CONSTRAINT key_limit_has_key FOREIGN KEY (provider, key_name) REFERENCES pricing.provider_keys(provider, key_name)
        ON DELETE CASCADE
    CONSTRAINT key_limit_has_limit FOREIGN KEY (provider, name) REFERENCES pricing.provider_limits(provider, name) ON
        DELETE CASCADE
    CONSTRAINT key_limit_is_positive CHECK ((units > 0))
);
CREATE TRIGGER forget_shown_limit AFTER INSERT OR DELETE OR UPDATE ON pricing.provider_key_limits FOR EACH ROW EXECUTE
    FUNCTION pricing.forget_shown_limit();
GRANT SELECT ON TABLE pricing.provider_key_limits TO pricing_reader;
GRANT SELECT ON TABLE pricing.provider_key_limits TO pricing_worker;

-- A provider's API keys by name, each with its own rate limits; without rows it has one key named default; secrets are
-- in provider_credentials, encrypted, or in settings.
CREATE TABLE pricing.provider_keys (
    provider text NOT NULL  -- The provider.
    key_name text NOT NULL  -- Its name.
    is_active boolean NOT NULL DEFAULT true  -- False = no call is made with it.
    -- Until when no worker uses the key, because the provider refused it, for speed or altogether.
    blocked_until timestamp with time zone
    blocked_reason text  -- Why it is blocked, for people.
    -- Refusals in a row: until the next good answer the pause grows, and one call at a time is made.
    throttles integer NOT NULL DEFAULT 0
    reported_left integer  -- Units that the provider last reported as left; stored only while they are few.
    reported_at timestamp with time zone  -- When the provider said so.
    -- Units that the provider counts and we do not, subtracted until foreign_until: others use the key, or its plan is
    -- smaller than our limit.
    foreign_units integer NOT NULL DEFAULT 0
    foreign_until timestamp with time zone  -- Until when foreign_units are subtracted.
    CONSTRAINT provider_keys_pkey PRIMARY KEY (provider, key_name)
    CONSTRAINT provider_keys_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider) ON DELETE
        CASCADE
    CONSTRAINT foreign_units_are_counted CHECK ((foreign_units >= 0))
    CONSTRAINT key_name_is_plain CHECK ((key_name ~ '^[a-z0-9][a-z0-9_-]{0,47}$'::text))
) WITH (fillfactor=50);
GRANT SELECT ON TABLE pricing.provider_keys TO pricing_reader;
GRANT SELECT ON TABLE pricing.provider_keys TO pricing_worker;

-- Rate limits of each key, in the provider's units, in any window_seconds or per calendar day of day_timezone; all must
-- have room.
CREATE TABLE pricing.provider_limits (
    provider text NOT NULL  -- The provider.
    name text NOT NULL  -- Its name.
    units integer NOT NULL  -- Units allowed in the window.
    window_seconds integer  -- Length of a sliding window in seconds; NULL = a calendar day.
    day_timezone text  -- Time zone whose midnight ends the day; NULL = a sliding window.
    CONSTRAINT provider_limits_pkey PRIMARY KEY (provider, name)
    CONSTRAINT provider_limits_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider)
    CONSTRAINT limit_has_one_window CHECK (((window_seconds IS NULL) <> (day_timezone IS NULL)))
    CONSTRAINT limit_is_positive CHECK ((units > 0))
    CONSTRAINT limit_window_is_positive CHECK ((window_seconds > 0))
);
CREATE TRIGGER check_limit BEFORE INSERT OR UPDATE ON pricing.provider_limits FOR EACH ROW WHEN ((new.day_timezone IS
    NOT NULL)) EXECUTE FUNCTION pricing.check_limit();
CREATE TRIGGER forget_shown_limit AFTER UPDATE ON pricing.provider_limits FOR EACH ROW EXECUTE FUNCTION
    pricing.forget_shown_limit();
CREATE TRIGGER limit_changed AFTER UPDATE ON pricing.provider_limits FOR EACH ROW WHEN ((old.units <> new.units))
    EXECUTE FUNCTION pricing.provider_switched();
GRANT SELECT ON TABLE pricing.provider_limits TO pricing_reader;
GRANT SELECT ON TABLE pricing.provider_limits TO pricing_worker;

-- Plans that `provider use` has written, so that `provider undo` can restore what was before.
CREATE TABLE pricing.provider_plans (
    provider text NOT NULL  -- The provider.
    plan text NOT NULL  -- Its name in plans.toml or in the declaration.
    symbols integer NOT NULL  -- The number of watched symbols that its TTLs are made for.
    settings_before jsonb NOT NULL  -- Limits, batches and types of the provider before its first plan.
    CONSTRAINT provider_plans_pkey PRIMARY KEY (provider)
    CONSTRAINT provider_plans_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider) ON
        DELETE CASCADE
    CONSTRAINT plan_is_for_some_symbols CHECK ((symbols > 0))
    CONSTRAINT plan_is_plain_name CHECK ((plan ~ '^[a-z][a-z0-9_-]{0,47}$'::text))
);
GRANT SELECT ON TABLE pricing.provider_plans TO pricing_reader;
GRANT SELECT ON TABLE pricing.provider_plans TO pricing_worker;

-- The providers of a data type (symbol NULL), or of one of its symbols, whose own rules come first, in order.
CREATE TABLE pricing.provider_routing (
    data_type text NOT NULL  -- The data type.
    symbol text  -- The one symbol of the rule; NULL = all without their own rule.
    provider text NOT NULL  -- The provider that serves it.
    is_active boolean NOT NULL DEFAULT true  -- False = the rule is ignored.
    rank smallint NOT NULL DEFAULT 1  -- The lowest is asked first, the next when that cannot serve.
    CONSTRAINT provider_routing_data_type_fkey FOREIGN KEY (data_type) REFERENCES pricing.data_type_registry(data_type)
        ON DELETE CASCADE
    CONSTRAINT provider_routing_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider)
    CONSTRAINT rank_is_positive CHECK ((rank > 0))
);
CREATE UNIQUE INDEX provider_routing_once ON pricing.provider_routing USING btree (data_type, symbol, provider) NULLS
    NOT DISTINCT;
CREATE UNIQUE INDEX provider_routing_order ON pricing.provider_routing USING btree (data_type, symbol, rank) NULLS NOT
    DISTINCT;
CREATE TRIGGER registry_changed AFTER INSERT OR DELETE OR UPDATE ON pricing.provider_routing FOR EACH STATEMENT EXECUTE
    FUNCTION pricing.registry_changed();
CREATE TRIGGER route_changed AFTER INSERT OR DELETE OR UPDATE ON pricing.provider_routing FOR EACH ROW EXECUTE FUNCTION
    pricing.route_changed();
GRANT SELECT ON TABLE pricing.provider_routing TO pricing_reader;
GRANT SELECT ON TABLE pricing.provider_routing TO pricing_worker;

-- The row whose lock makes checking the limits and taking from them one step.
CREATE TABLE pricing.provider_state (
    provider text NOT NULL  -- The provider.
    claims bigint NOT NULL DEFAULT 0  -- Claims so far, so that every tenth can begin with a backfill.
    -- open = no calls before breaker_until; half_open = one probe is under way, whose success closes it.
    breaker pricing.breaker_position NOT NULL DEFAULT 'closed'::text
    breaker_since timestamp with time zone  -- Its last change; failures before it closed no longer count.
    -- When a probe may be made (open), or when the probe counts as lost (half open).
    breaker_until timestamp with time zone
    breaker_openings integer NOT NULL DEFAULT 0  -- Openings in a row; the wait is 60 s, doubling to 10 min.
    breaker_reason text  -- Why the breaker last opened, for people.
    probe_call bigint  -- The call that decides.
    last_call_at timestamp with time zone  -- When calls were last claimed, for request_delay_ms.
    -- Why other providers of a route go first: breaker open for minutes, quota spent or keys refused; checked every 10
    -- s (watch_providers).
    trouble text
    -- When the breaker first opened, failed probes aside; NULL = it is closed.
    breaker_began_at timestamp with time zone
    page_call bigint  -- The oldest call that waits for its next request, which precedes new and younger calls.
    page_key text  -- The key of that call; calls with another key do not wait for it.
    page_until timestamp with time zone  -- Until when others wait for it, renewed every second.
    -- The last change of queue_change_seq that a claim has seen; while it is the last, first_urgency holds.
    queue_change bigint
    -- Transactions before this one may have made that change, and when all have ended, their tasks are seen; NULL = not
    -- known.
    change_horizon xid8
    -- With the next two, where claims begin: no pending task is before it (-priority); NULL = not known.
    first_urgency integer
    first_cadence integer  -- See first_urgency; cadence_minutes.
    first_id bigint  -- See first_urgency; less than the id of the first pending task.
    CONSTRAINT provider_state_pkey PRIMARY KEY (provider)
    CONSTRAINT provider_state_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider) ON
        DELETE CASCADE
    CONSTRAINT breaker_has_end CHECK ((((breaker)::text = 'closed'::text) = (breaker_until IS NULL)))
    CONSTRAINT probing_has_call CHECK ((((breaker)::text = 'half_open'::text) = (probe_call IS NOT NULL)))
) WITH (fillfactor=50);
GRANT SELECT ON TABLE pricing.provider_state TO pricing_reader;
GRANT SELECT ON TABLE pricing.provider_state TO pricing_worker;

-- Spellings that people have given (`instrument spell`); otherwise the provider's rule applies.
CREATE TABLE pricing.provider_symbols (
    provider text NOT NULL  -- The provider with this spelling.
    asset_class text NOT NULL  -- The class of the instrument.
    symbol text NOT NULL  -- The instrument's canonical symbol.
    spelling text NOT NULL  -- The symbol as the provider gets it.
    -- When it was given, or, for older ones, when this column was added.
    given_at timestamp with time zone NOT NULL DEFAULT now()
    CONSTRAINT provider_symbols_pkey PRIMARY KEY (provider, asset_class, symbol)
    CONSTRAINT spelling_is_of_one_symbol UNIQUE (provider, asset_class, spelling)
    CONSTRAINT provider_symbols_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider) ON
        DELETE CASCADE
    CONSTRAINT spelling_has_instrument FOREIGN KEY (asset_class, symbol) REFERENCES pricing.instruments(asset_class,
        symbol) ON DELETE CASCADE
    CONSTRAINT spelling_is_sane CHECK ((spelling ~ '^[!-+\--~]{1,64}$'::text))
);
CREATE INDEX provider_symbols_of_instrument ON pricing.provider_symbols USING btree (asset_class, symbol);
CREATE TRIGGER check_given_spelling AFTER INSERT OR UPDATE OF spelling ON pricing.provider_symbols FOR EACH ROW EXECUTE
    FUNCTION pricing.check_given_spelling();
CREATE TRIGGER spelling_changed AFTER INSERT OR DELETE OR UPDATE ON pricing.provider_symbols FOR EACH ROW EXECUTE
    FUNCTION pricing.spelling_changed();
GRANT SELECT ON TABLE pricing.provider_symbols TO pricing_reader;
GRANT SELECT ON TABLE pricing.provider_symbols TO pricing_worker;

-- Bars stored before their day was over, until they come again afterwards.
CREATE TABLE pricing.provisional_bars (
    data_type text NOT NULL  -- The data type.
    symbol text NOT NULL  -- The symbol.
    observed_at timestamp with time zone NOT NULL  -- Its day, as in price_history.
    asked integer NOT NULL DEFAULT 0  -- How often it was requested alone; after six times it stays as it is.
    ask_at timestamp with time zone NOT NULL  -- When it is requested next, unless a refresh brings it before.
    CONSTRAINT provisional_bars_pkey PRIMARY KEY (data_type, symbol, observed_at)
);
CREATE INDEX provisional_bars_due ON pricing.provisional_bars USING btree (ask_at);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.provisional_bars TO pricing_worker;
GRANT SELECT ON TABLE pricing.provisional_bars TO pricing_reader;

-- How long after a session's end a pair's daily value appears at the provider, as learned.
CREATE TABLE pricing.publish_lags (
    data_type text NOT NULL  -- Its data type.
    symbol text NOT NULL  -- Its symbol.
    lag interval NOT NULL  -- From the close until the value is requested.
    CONSTRAINT publish_lags_pkey PRIMARY KEY (data_type, symbol)
    CONSTRAINT lag_is_sane CHECK (((lag >= '00:00:00'::interval) AND (lag <= '24:00:00'::interval)))
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.publish_lags TO pricing_worker;
GRANT SELECT ON TABLE pricing.publish_lags TO pricing_reader;

-- Answers that brought new quarantined values, one for each call, without API keys.
CREATE TABLE pricing.quarantined_bodies (
    call_id bigint NOT NULL  -- The call, in collector_call_log while that is kept.
    body bytea NOT NULL  -- Compressed by zlib: the first 1,000,000 bytes of the body.
    size integer NOT NULL  -- Bytes of the whole body, uncompressed.
    http_status integer  -- The status it came with.
    recorded_at timestamp with time zone NOT NULL  -- When it came.
    CONSTRAINT quarantined_bodies_pkey PRIMARY KEY (call_id)
    CONSTRAINT body_is_bounded CHECK ((octet_length(body) <= 1100000))
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.quarantined_bodies TO pricing_worker;
GRANT SELECT ON TABLE pricing.quarantined_bodies TO pricing_reader;

-- Values from providers that are not believed, kept for people and never prices; the same value is one row, however
-- often it comes.
CREATE TABLE pricing.quarantined_values (
    value_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- Numbers quarantined values.
    data_type text NOT NULL  -- The requested data type.
    symbol text NOT NULL  -- The requested symbol.
    provider text NOT NULL  -- The provider that sent it.
    observed_at timestamp with time zone  -- The source's time; NULL = none, or an impossible one.
    -- refused, closed_day, currency, bounds, unit, jump, spike, split, dividend or disagreement: docs/truth.md.
    kind text NOT NULL
    value text NOT NULL  -- The source's own spelling of the price; empty where the answer as a whole was refused.
    reason text NOT NULL  -- Why it is not believed, in words.
    -- Everything that would be stored, as text: close, open, high, low, volume, currency, adjustment; NULL = it could
    -- not be read.
    bar jsonb
    call_id bigint NOT NULL  -- The first call that brought it; quarantined_bodies may have its body.
    recorded_at timestamp with time zone NOT NULL  -- When it first came.
    last_seen_at timestamp with time zone NOT NULL  -- When it last came.
    last_call_id bigint NOT NULL  -- The last call that brought it.
    times bigint NOT NULL DEFAULT 1  -- In how many answers it came.
    -- quarantined = waits for a person; released = believed and stored after all; rejected = wrong for good.
    status text NOT NULL DEFAULT 'quarantined'::text
    resolved_at timestamp with time zone  -- When that was decided.
    resolved_by text  -- Who decided: a person, or a call whose answer brought it again and was believed.
    resolution text  -- The reason, in words.
    -- When workers ask a second provider about it; NULL = answered, or no longer asked.
    ask_at timestamp with time zone
    asked smallint NOT NULL DEFAULT 0  -- How often workers have asked, at most four times.
    CONSTRAINT quarantined_values_pkey PRIMARY KEY (value_id)
    CONSTRAINT same_value_is_one_row UNIQUE NULLS NOT DISTINCT (data_type, symbol, observed_at, kind, value, provider)
    CONSTRAINT quarantined_is_unresolved CHECK (((status = 'quarantined'::text) = (resolved_at IS NULL)))
    CONSTRAINT status_is_known CHECK ((status = ANY (ARRAY['quarantined'::text, 'released'::text, 'rejected'::text])))
    CONSTRAINT value_is_short CHECK ((length(value) <= 100))
);
CREATE INDEX quarantined_values_of_closed_days ON pricing.quarantined_values USING btree (observed_at) WHERE (kind =
    'closed_day'::text);
CREATE INDEX quarantined_values_seen ON pricing.quarantined_values USING btree (last_seen_at);
CREATE INDEX quarantined_values_to_ask ON pricing.quarantined_values USING btree (ask_at) WHERE ((ask_at IS NOT NULL)
    AND (status = 'quarantined'::text));
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.quarantined_values TO pricing_worker;
GRANT SELECT ON TABLE pricing.quarantined_values TO pricing_reader;

-- Reads of each user that workers served in the last minute; only workers write it, so no client keeps it locked.
CREATE TABLE pricing.read_charges (
    user_id pricing.user_name NOT NULL  -- The user whose read had to be fetched.
    charged_at timestamp with time zone NOT NULL  -- When it was served.
    pairs integer NOT NULL  -- How many pairs that were.
    CONSTRAINT read_charges_pkey PRIMARY KEY (user_id, charged_at)
    CONSTRAINT pairs_are_positive CHECK ((pairs > 0))
);
ALTER TABLE pricing.read_charges ENABLE ROW LEVEL SECURITY;
-- A reader sees no rows of another login.
CREATE POLICY reader_sees_own ON pricing.read_charges FOR SELECT TO pricing_reader USING (((user_id)::text =
    (SESSION_USER)::text));
-- A worker acts for every user.
CREATE POLICY worker_serves_all ON pricing.read_charges FOR ALL TO pricing_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.read_charges TO pricing_worker;
GRANT SELECT ON TABLE pricing.read_charges TO pricing_reader;

-- Recipients of messages, their channels, and when they are notified.
CREATE TABLE pricing.recipients (
    recipient text NOT NULL  -- A name for people.
    -- email, sms, chat, webhook, log, which sends nothing, or an operation type of the user's own that takes messages.
    channel text NOT NULL
    -- P0 = only alerts of P0; P1 = of P0 and P1; P2 = all; NULL = none, because it is for users.
    least_severity text DEFAULT 'P1'::text
    -- Messages that are not P0 wait from then, by the recipient's time zone; NULL = never.
    quiet_from time without time zone
    quiet_until time without time zone  -- ... until then.
    time_zone text NOT NULL DEFAULT 'UTC'::text  -- IANA zone of the quiet hours.
    allows_private boolean NOT NULL DEFAULT false  -- Whether the address may be in a private network.
    is_active boolean NOT NULL DEFAULT true  -- False = nothing is queued for it.
    created_at timestamp with time zone NOT NULL  -- When it was added.
    row_version bigint NOT NULL DEFAULT 0  -- Rises with each change of the address; bound to the ciphertext.
    master_key_id text  -- The master key that sealed the address.
    key_nonce bytea  -- Nonce of the wrapped data key.
    wrapped_key bytea  -- Data key, sealed by the master key.
    secret_nonce bytea  -- Nonce of the ciphertext.
    -- Address, and secret of a webhook, as JSON, sealed by the data key; NULL for log and channels of the user's own.
    ciphertext bytea
    -- Always true: the channel must be an operation type that takes messages.
    takes_messages boolean NOT NULL GENERATED ALWAYS AS (true) STORED
    user_id text  -- The user whose price alerts it gets; NULL = no single one.
    -- Whether it gets price alerts of any user, as an application's does.
    takes_any_user boolean NOT NULL DEFAULT false
    CONSTRAINT recipients_pkey PRIMARY KEY (recipient)
    CONSTRAINT channel_takes_messages FOREIGN KEY (channel, takes_messages) REFERENCES
        pricing.operation_types(operation_type, takes_messages)
    CONSTRAINT quiet_hours_are_whole CHECK ((((quiet_from IS NULL) = (quiet_until IS NULL)) AND (quiet_from <>
        quiet_until)))
    CONSTRAINT recipient_has_address CHECK ((((channel = ANY (ARRAY['email'::text, 'sms'::text, 'chat'::text,
        'webhook'::text])) = (ciphertext IS NOT NULL)) AND (num_nulls(master_key_id, key_nonce, wrapped_key,
        secret_nonce, ciphertext) = ANY (ARRAY[0, 5]))))
    CONSTRAINT recipient_is_of_one_or_any CHECK (((user_id IS NULL) OR (NOT takes_any_user)))
    CONSTRAINT recipient_is_plain_name CHECK ((recipient ~ '^[a-z0-9][a-z0-9_-]{0,47}$'::text))
    CONSTRAINT recipient_user_is_sane CHECK (((length(user_id) >= 1) AND (length(user_id) <= 200)))
    CONSTRAINT severity_is_known CHECK ((least_severity = ANY (ARRAY['P0'::text, 'P1'::text, 'P2'::text])))
    CONSTRAINT time_zone_is_known CHECK ((('2000-01-01 00:00:00+00'::timestamp with time zone AT TIME ZONE time_zone) IS
        NOT NULL))
    CONSTRAINT users_are_told_of_no_trouble CHECK (((least_severity IS NULL) = ((user_id IS NOT NULL) OR
        takes_any_user)))
);
ALTER TABLE pricing.recipients ENABLE ROW LEVEL SECURITY;
-- A reader sees no rows of another login.
CREATE POLICY reader_sees_own ON pricing.recipients FOR SELECT TO pricing_reader USING ((user_id =
    (SESSION_USER)::text));
-- A worker acts for every user.
CREATE POLICY worker_serves_all ON pricing.recipients FOR ALL TO pricing_worker USING (true) WITH CHECK (true);
GRANT SELECT ON TABLE pricing.recipients TO pricing_worker;

-- Counts changes of the registry, so that the sensor knows when to reload the code location, and stores where prices
-- come from.
CREATE TABLE pricing.registry_state (
    singleton boolean NOT NULL DEFAULT true  -- Always true, so that there is only one row.
    version bigint NOT NULL  -- Rises with every change of the registry.
    -- Where prices come from, the sandbox or real providers, which must not mix; NULL until the first worker starts.
    prices_from text
    CONSTRAINT registry_state_pkey PRIMARY KEY (singleton)
    CONSTRAINT one_row CHECK (singleton)
    CONSTRAINT prices_from_known CHECK ((prices_from = ANY (ARRAY['sandbox'::text, 'real providers'::text])))
);
GRANT SELECT ON TABLE pricing.registry_state TO pricing_reader;
GRANT SELECT ON TABLE pricing.registry_state TO pricing_worker;

-- Answers in which stored days have other values (docs/truth.md): by one ratio they are quarantined and the history is
-- fetched again once; scattered ones are stored.
CREATE TABLE pricing.restatements (
    restatement_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- Numbers restatements.
    data_type text NOT NULL  -- The data type.
    symbol text NOT NULL  -- The symbol.
    provider text NOT NULL  -- The provider that sent it.
    -- split = by a ratio of splits; dividend = by another ratio; scattered = single days; basis = raw, in a history
    -- that is divided by splits.
    kind text NOT NULL
    ratio numeric  -- What the stored values are divided by; 1 for a basis.
    days integer NOT NULL  -- How many stored days had another value, the last time.
    largest numeric NOT NULL  -- The largest change as a share of the stored value.
    first_on date NOT NULL  -- The first of these days.
    last_on date NOT NULL  -- The last of these days.
    call_id bigint NOT NULL  -- The first call that brought it.
    recorded_at timestamp with time zone NOT NULL  -- When it first came.
    times bigint NOT NULL DEFAULT 1  -- In how many answers it came.
    last_seen_at timestamp with time zone NOT NULL  -- When it last came.
    backfill_id uuid  -- The backfill that fetches the history again; NULL = not planned (yet).
    -- When a new split, or the other basis again, caused another fetch of the history; NULL = never.
    reopened_at timestamp with time zone
    CONSTRAINT restatements_pkey PRIMARY KEY (restatement_id)
    CONSTRAINT kind_is_known CHECK ((kind = ANY (ARRAY['split'::text, 'dividend'::text, 'scattered'::text,
        'basis'::text])))
    CONSTRAINT ratio_is_of_one_ratio CHECK (((kind = 'scattered'::text) = (ratio IS NULL)))
);
CREATE INDEX restatements_pair ON pricing.restatements USING btree (data_type, symbol, last_seen_at);
CREATE INDEX restatements_unasked ON pricing.restatements USING btree (recorded_at) WHERE ((ratio IS NOT NULL) AND
    (backfill_id IS NULL));
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.restatements TO pricing_worker;
GRANT SELECT ON TABLE pricing.restatements TO pricing_reader;

-- The old row of everything that changed except prices, believed from recorded_at until revised_at; price_revisions has
-- those of prices.
CREATE TABLE pricing.revisions (
    kind text NOT NULL  -- The table of the row.
    key text[] NOT NULL  -- What reads look it up by, such as the symbol, or the symbol and the day of a slot.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believed it.
    revised_at timestamp with time zone NOT NULL  -- Until when we believed it.
    revised_by bigint  -- The call that changed or omitted it; NULL or 0 = a person did.
    -- For a corporate action, who removed or replaced it by hand; the provider's next report of the same is refused.
    removed_by text
    removed_because text  -- Why, in that person's words.
    old jsonb NOT NULL  -- The row as it was, with the names of its columns; numbers are exact.
    CONSTRAINT because_is_short CHECK ((length(removed_because) <= 500))
);
CREATE INDEX revisions_by_commodity ON pricing.revisions USING btree (((old ->> 'commodity_id'::text)), revised_at)
    WHERE (kind = 'commodity_prices'::text);
CREATE INDEX revisions_by_key ON pricing.revisions USING btree (kind, key, revised_at);
GRANT INSERT, SELECT ON TABLE pricing.revisions TO pricing_worker;
GRANT SELECT ON TABLE pricing.revisions TO pricing_reader;

-- Pairs that a provider does not serve while another may; it is asked again after a week, or when a route changes.
CREATE TABLE pricing.route_refusals (
    data_type text NOT NULL  -- The data type.
    symbol text NOT NULL  -- The symbol.
    provider text NOT NULL  -- The provider that does not serve it.
    kind text NOT NULL  -- unknown_symbol, plan_restricted or endpoint_restricted.
    reason text NOT NULL  -- What it said.
    refused_until timestamp with time zone NOT NULL  -- Until when others are asked first.
    CONSTRAINT route_refusals_pkey PRIMARY KEY (data_type, symbol, provider)
    CONSTRAINT route_refusals_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider) ON
        DELETE CASCADE
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.route_refusals TO pricing_worker;
GRANT SELECT ON TABLE pricing.route_refusals TO pricing_reader;

-- For each scheduled data type, the last served slot of its schedule, and how far the walk over its instruments is.
CREATE TABLE pricing.schedule_walks (
    data_type text NOT NULL  -- The scheduled data type.
    served_slot timestamp with time zone NOT NULL  -- No slot up to this one is owed.
    walk_slot timestamp with time zone  -- The slot whose walk is under way; NULL when none is.
    walk_after text NOT NULL DEFAULT ''::text  -- The walk goes on after this symbol.
    -- Where the lap began, after an earlier slot's unfinished walk, and where it ends.
    lap_start text NOT NULL DEFAULT ''::text
    wrapped boolean NOT NULL DEFAULT false  -- The lap has passed the last symbol and goes on from the first.
    -- The first slot after served_slot, as the sensor reads the schedule; NULL = not read yet, or unreadable.
    next_slot timestamp with time zone
    CONSTRAINT schedule_walks_pkey PRIMARY KEY (data_type)
    CONSTRAINT schedule_walks_data_type_fkey FOREIGN KEY (data_type) REFERENCES pricing.data_type_registry(data_type) ON
        DELETE CASCADE
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.schedule_walks TO pricing_worker;
GRANT SELECT ON TABLE pricing.schedule_walks TO pricing_reader;

-- What other providers, asked by workers or a person, said about a quarantined value: it helps a person decide and is
-- never a price.
CREATE TABLE pricing.second_opinions (
    value_id bigint NOT NULL  -- The quarantined value it is about.
    provider text NOT NULL  -- The provider that was asked.
    call_id bigint NOT NULL  -- The call, in collector_call_log while that is kept.
    asked_at timestamp with time zone NOT NULL  -- When it was asked last.
    answered_at timestamp with time zone  -- When it answered; NULL = not yet, or its caller was lost.
    observed_at timestamp with time zone  -- The time of its value.
    value numeric  -- Its value; NULL = none.
    currency text  -- The currency, if it names one.
    failure text  -- Why it has no value.
    adjustment text  -- The basis of its value: raw or splits, as in price_history.
    -- The quarantined value divided by this one, on one basis (near 1 they agree); NULL = not comparable.
    ratio numeric
    CONSTRAINT second_opinions_pkey PRIMARY KEY (value_id, provider)
    CONSTRAINT opinion_is_on_a_value FOREIGN KEY (value_id) REFERENCES pricing.quarantined_values(value_id) ON DELETE
        CASCADE
    CONSTRAINT adjustment_is_known CHECK ((adjustment = ANY (ARRAY['raw'::text, 'splits'::text])))
    CONSTRAINT ratio_is_positive CHECK (((ratio > (0)::numeric) AND (ratio < 'Infinity'::numeric)))
);
CREATE INDEX second_opinions_call ON pricing.second_opinions USING btree (call_id);
CREATE INDEX second_opinions_recent ON pricing.second_opinions USING btree (answered_at) WHERE (ratio IS NOT NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.second_opinions TO pricing_worker;
GRANT SELECT ON TABLE pricing.second_opinions TO pricing_reader;

-- Fetchers of providers that refused a call for its number of symbols; claims keep to the smaller one.
CREATE TABLE pricing.shown_batches (
    provider text NOT NULL  -- The provider that refused.
    fetcher text NOT NULL  -- The fetcher.
    is_of_days boolean NOT NULL  -- Whether it is about spans of days; false = about latest values.
    shown_size integer NOT NULL  -- How many symbols a call may ask for.
    shown_at timestamp with time zone NOT NULL  -- When the last one was refused.
    CONSTRAINT shown_batches_pkey PRIMARY KEY (provider, fetcher, is_of_days)
    CONSTRAINT shown_batch_has_fetcher FOREIGN KEY (provider, fetcher) REFERENCES
        pricing.provider_capabilities(provider, fetcher) ON DELETE CASCADE
    CONSTRAINT batch_is_positive CHECK ((shown_size > 0))
);
GRANT SELECT ON TABLE pricing.shown_batches TO pricing_reader;
GRANT SELECT ON TABLE pricing.shown_batches TO pricing_worker;

-- Limits of keys that answers have shown to be lower than written; claims keep to the lower one.
CREATE TABLE pricing.shown_limits (
    provider text NOT NULL  -- The provider.
    key_name text NOT NULL  -- The key that was called with.
    name text NOT NULL  -- The limit's name in provider_limits, which has its window.
    shown_units integer NOT NULL  -- Units that the provider allows in the window, as it says.
    shown_at timestamp with time zone NOT NULL  -- When it last said so, to the minute.
    CONSTRAINT shown_limits_pkey PRIMARY KEY (provider, key_name, name)
    CONSTRAINT shown_limit_has_limit FOREIGN KEY (provider, name) REFERENCES pricing.provider_limits(provider, name) ON
        DELETE CASCADE
    CONSTRAINT key_name_is_plain CHECK ((key_name ~ '^[a-z0-9][a-z0-9_-]{0,47}$'::text))
    CONSTRAINT shown_limit_is_positive CHECK ((shown_units > 0))
) WITH (fillfactor=50);
GRANT SELECT ON TABLE pricing.shown_limits TO pricing_reader;
GRANT SELECT ON TABLE pricing.shown_limits TO pricing_worker;

-- Parts that work again and again, such as sensors and the staleness check, and the start of the pipeline.
CREATE TABLE pricing.signs_of_life (
    -- A sensor's name; enqueue_due = the staleness check; look_for_alerts and send_messages = the notifiers; start =
    -- the last start of the pipeline, or the end of a time when nothing ran.
    part text NOT NULL
    began_at timestamp with time zone NOT NULL  -- When it last began.
    ended_at timestamp with time zone  -- When it last succeeded; NULL = never yet.
    seconds double precision  -- How long that took.
    times bigint NOT NULL DEFAULT 0  -- How often it has succeeded.
    total_seconds double precision NOT NULL DEFAULT 0  -- How long that took in all.
    CONSTRAINT signs_of_life_pkey PRIMARY KEY (part)
) WITH (fillfactor=50);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.signs_of_life TO pricing_worker;
GRANT SELECT ON TABLE pricing.signs_of_life TO pricing_reader;

-- Measured wire bytes of a symbol's latest price, or of a day of its history: the first measurement whole, each later
-- one counting a tenth.
CREATE TABLE pricing.size_estimates (
    provider text NOT NULL  -- The provider.
    data_type text NOT NULL  -- The data type.
    per text NOT NULL  -- The unit: a symbol's latest price, or a day of a symbol's history.
    bytes double precision NOT NULL  -- Bytes on the wire, as a moving average.
    measurements bigint NOT NULL DEFAULT 1  -- Answers measured.
    overruns bigint NOT NULL DEFAULT 0  -- Answers of more than twice their reserved bytes.
    last_overrun_at timestamp with time zone  -- When an answer last took more than twice its estimate.
    last_overrun_ratio double precision  -- Bytes received for each byte reserved, at the last overrun.
    CONSTRAINT size_estimates_pkey PRIMARY KEY (provider, data_type, per)
    CONSTRAINT size_estimates_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider) ON
        DELETE CASCADE
    CONSTRAINT size_is_per_symbol_or_day CHECK ((per = ANY (ARRAY['symbol'::text, 'day'::text])))
    CONSTRAINT size_is_positive CHECK (((bytes > (0)::double precision) AND (bytes < ('1000000000000'::numeric)::double
        precision)))
) WITH (fillfactor=50);
GRANT SELECT ON TABLE pricing.size_estimates TO pricing_reader;
GRANT SELECT ON TABLE pricing.size_estimates TO pricing_worker;

-- What a slot costs for a category, as believed now, in units of the last decimal of its currency.
CREATE TABLE pricing.slot_prices (
    slot_key bigint NOT NULL  -- The slot.
    category_key bigint NOT NULL  -- The category.
    final_price bigint  -- What is paid; NULL = the provider names no price.
    original_price bigint  -- The price before discounts; NULL = not named.
    -- original_price less final_price; below zero it is a surcharge.
    discount bigint GENERATED ALWAYS AS ((original_price - final_price)) STORED
    currency text  -- ISO 4217; NULL only without prices.
    scale smallint NOT NULL  -- How many decimals the three prices have.
    call_id bigint NOT NULL  -- The call that brought it.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believe it.
    CONSTRAINT slot_prices_pkey PRIMARY KEY (slot_key, category_key)
    CONSTRAINT slot_prices_category_key_fkey FOREIGN KEY (category_key) REFERENCES pricing.pax_categories(category_key)
    CONSTRAINT slot_prices_slot_key_fkey FOREIGN KEY (slot_key) REFERENCES pricing.slots(slot_key)
    CONSTRAINT final_price_is_no_debt CHECK ((final_price >= 0))
    CONSTRAINT original_price_is_no_debt CHECK ((original_price >= 0))
    CONSTRAINT prices_have_a_currency CHECK (((currency IS NOT NULL) OR ((final_price IS NULL) AND (original_price IS
        NULL))))
    CONSTRAINT slot_currency_is_code CHECK ((currency ~ '^[A-Z]{3}$'::text))
    CONSTRAINT slot_scale_is_sane CHECK (((scale >= 0) AND (scale <= 18)))
) WITH (fillfactor=90);
CREATE TRIGGER keep_revision AFTER UPDATE ON pricing.slot_prices REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION pricing.keep_revision('slot_key, category_key', 'o.slot_key::text');
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.slot_prices TO pricing_worker;
GRANT SELECT ON TABLE pricing.slot_prices TO pricing_reader;

-- The local days that each pair's last answer listed in full, and when they were confirmed.
CREATE TABLE pricing.slot_windows (
    data_type text NOT NULL  -- The data type of the requested slots.
    symbol text NOT NULL  -- The product.
    first_day date NOT NULL  -- First local day of the answer.
    last_day date NOT NULL  -- Last local day of the answer, included.
    fetched_at timestamp with time zone NOT NULL  -- When it was stored.
    provider text NOT NULL  -- The provider that answered.
    call_id bigint NOT NULL  -- The call; an earlier call's answer says nothing about these days.
    -- The days about which the answer says nothing, because a slot's id cannot be read.
    unread_days date[] NOT NULL DEFAULT '{}'::date[]
    CONSTRAINT slot_windows_pkey PRIMARY KEY (data_type, symbol)
    CONSTRAINT slot_windows_symbol_fkey FOREIGN KEY (symbol) REFERENCES pricing.products(symbol)
    CONSTRAINT slot_window_is_upright CHECK ((last_day >= first_day))
) WITH (fillfactor=70);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.slot_windows TO pricing_worker;
GRANT SELECT ON TABLE pricing.slot_windows TO pricing_reader;

-- Times at which an option of a product takes place, as believed now.
CREATE TABLE pricing.slots (
    slot_key bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- Our number for it.
    symbol text NOT NULL  -- The product.
    provider text NOT NULL  -- The provider that gave the ids.
    option_id text NOT NULL  -- The option's id at the provider.
    slot_id text NOT NULL  -- Its id at the provider, unique within product and option.
    local_day date GENERATED ALWAYS AS ((local_start)::date) STORED  -- Its local day at the place.
    local_start timestamp without time zone NOT NULL  -- Its start in local time.
    local_end timestamp without time zone NOT NULL  -- Its end in local time.
    utc_offset interval  -- The provider's offset of local_start from UTC; NULL = none, so time_zone places it.
    time_zone text  -- The product's zone by which its times were placed; NULL = utc_offset places them.
    starts_at timestamp with time zone NOT NULL  -- When it starts.
    ends_at timestamp with time zone NOT NULL  -- When it ends.
    bookable_until timestamp with time zone  -- Until when the provider takes bookings; NULL = unknown.
    -- available, freesale (without a bound), limited, sold_out or closed as the provider says; vanished = no longer
    -- listed.
    status text NOT NULL
    remaining integer  -- Places left; NULL = unknown, or without a bound.
    capacity integer  -- Places in all; NULL = unknown.
    call_id bigint NOT NULL  -- The call that brought it.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believe it.
    CONSTRAINT slots_pkey PRIMARY KEY (slot_key)
    CONSTRAINT slots_symbol_provider_option_id_slot_id_key UNIQUE (symbol, provider, option_id, slot_id)
    CONSTRAINT slots_symbol_fkey FOREIGN KEY (symbol) REFERENCES pricing.products(symbol)
    CONSTRAINT capacity_is_sane CHECK ((capacity >= 0))
    CONSTRAINT slot_ends_after_it_starts CHECK ((ends_at >= starts_at))
    CONSTRAINT slot_is_placed_once CHECK (((utc_offset IS NULL) <> (time_zone IS NULL)))
    CONSTRAINT slot_remaining_is_sane CHECK (((remaining >= 0) AND (remaining <= capacity)))
    CONSTRAINT slot_status_is_known CHECK ((status = ANY (ARRAY['available'::text, 'freesale'::text, 'limited'::text,
        'sold_out'::text, 'closed'::text, 'vanished'::text])))
) WITH (fillfactor=85);
CREATE INDEX slots_by_day ON pricing.slots USING btree (symbol, local_day);
CREATE TRIGGER keep_revision AFTER UPDATE ON pricing.slots REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR
    EACH STATEMENT EXECUTE FUNCTION pricing.keep_revision('slot_key', 'o.symbol, to_char(o.local_day, ''YYYY-MM-DD'')');
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.slots TO pricing_worker;
GRANT SELECT ON TABLE pricing.slots TO pricing_reader;

-- Changes of streamed pairs, kept ten minutes (at most 100,000 events), from which a broken stream resumes.
CREATE TABLE pricing.stream_events (
    "position" bigint NOT NULL  -- Rises in the order of commits, and for a pair in the order of its prices.
    noted_at timestamp with time zone NOT NULL  -- When it was logged.
    data_type text NOT NULL  -- What changed: its data type.
    symbol text NOT NULL  -- Its symbol.
    is_new_price boolean NOT NULL  -- Whether the price is new; false = only its freshness or the reason.
    amount bigint  -- The price in units of its last decimal; NULL = it has none.
    scale smallint  -- How many decimals the price has.
    currency text  -- NULL = the provider named none.
    observed_at timestamp with time zone  -- The price's time at the source.
    fetched_at timestamp with time zone  -- When a provider last confirmed it.
    provider text  -- The provider that sent it.
    verdict text  -- What pricing.verdict_on says of the price; NULL = it has none.
    state text  -- Why it is not, in one word; NULL = it is.
    sentence text  -- The same in a sentence.
    since timestamp with time zone  -- Since when that is so.
    next_at timestamp with time zone  -- When that may change.
    CONSTRAINT stream_events_pkey PRIMARY KEY ("position")
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.stream_events TO pricing_worker;
GRANT SELECT ON TABLE pricing.stream_events TO pricing_reader;

-- How far the log of live streams goes; only the session that locks its row looks for changes, so positions follow the
-- order of commits.
CREATE TABLE pricing.stream_head (
    is_only boolean NOT NULL DEFAULT true  -- Always true, so that there is only one row.
    "position" bigint NOT NULL DEFAULT 0  -- Of the last event; positions have no gaps but where pairs were forgotten.
    kept_from bigint NOT NULL DEFAULT 0  -- Events up to this position are deleted.
    -- The id of this log among all databases; with the table's number, which a restore changes, it is part of clients'
    -- event ids.
    log_id uuid NOT NULL DEFAULT gen_random_uuid()
    CONSTRAINT stream_head_pkey PRIMARY KEY (is_only)
    CONSTRAINT head_is_only_one CHECK (is_only)
    CONSTRAINT head_is_upright CHECK (((0 <= kept_from) AND (kept_from <= "position")))
) WITH (fillfactor=50);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.stream_head TO pricing_worker;
GRANT SELECT ON TABLE pricing.stream_head TO pricing_reader;

-- Pairs that a live stream shows, or showed within a quarter of an hour, as last told.
CREATE TABLE pricing.streamed_pairs (
    data_type text NOT NULL  -- Its data type.
    symbol text NOT NULL  -- Its symbol.
    since_position bigint NOT NULL  -- The log has all its events after this position.
    wanted_until timestamp with time zone NOT NULL  -- When it is forgotten; a stream that shows it extends this.
    judge_at timestamp with time zone NOT NULL  -- When its freshness is judged next; -infinity = never judged.
    amount bigint  -- The price in units of its last decimal; NULL = it has none.
    scale smallint  -- How many decimals the price has.
    currency text  -- NULL = the provider named none.
    observed_at timestamp with time zone  -- The price's time at the source.
    fetched_at timestamp with time zone  -- When a provider last confirmed it.
    provider text  -- The provider that sent it.
    verdict text  -- What pricing.verdict_on says of the price, five seconds later; NULL = it has none.
    state text  -- Why it is not fresh, in one word of pricing.why_old; NULL = it is.
    sentence text  -- The same in a sentence.
    since timestamp with time zone  -- Since when that is so.
    next_at timestamp with time zone  -- When that may change.
    CONSTRAINT streamed_pairs_pkey PRIMARY KEY (data_type, symbol)
) WITH (fillfactor=50);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.streamed_pairs TO pricing_worker;
GRANT SELECT ON TABLE pricing.streamed_pairs TO pricing_reader;

-- Symbols of instruments that were merged into others, which they now mean; no spelling rule leads to them.
CREATE TABLE pricing.symbol_aliases (
    asset_class text NOT NULL  -- The class of both.
    alias text NOT NULL  -- The old symbol, which people may still write.
    symbol text NOT NULL  -- The instrument that is meant.
    CONSTRAINT symbol_aliases_pkey PRIMARY KEY (asset_class, alias)
    CONSTRAINT alias_has_instrument FOREIGN KEY (asset_class, symbol) REFERENCES pricing.instruments(asset_class,
        symbol) ON DELETE CASCADE
);
CREATE INDEX symbol_aliases_of_instrument ON pricing.symbol_aliases USING btree (asset_class, symbol);
GRANT SELECT ON TABLE pricing.symbol_aliases TO pricing_reader;
GRANT SELECT ON TABLE pricing.symbol_aliases TO pricing_worker;

-- How long completed tasks took from queueing to stored, counted since the beginning.
CREATE TABLE pricing.task_times (
    data_type text NOT NULL  -- The data type.
    wanted_by text NOT NULL  -- Who wanted them, by their priority: viewers, holdings, schedules or backfills.
    buckets bigint[] NOT NULL  -- How many took up to each of pricing.task_time_bounds() seconds, cumulatively.
    times bigint NOT NULL  -- How many there were.
    total_seconds double precision NOT NULL  -- How long they took in all.
    -- Tasks finished up to then are counted; the latest of all rows applies.
    counted_until timestamp with time zone NOT NULL
    CONSTRAINT task_times_pkey PRIMARY KEY (data_type, wanted_by)
    CONSTRAINT wanted_by_is_known CHECK ((wanted_by = ANY (ARRAY['viewers'::text, 'holdings'::text, 'schedules'::text,
        'backfills'::text])))
) WITH (fillfactor=50);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.task_times TO pricing_worker;
GRANT SELECT ON TABLE pricing.task_times TO pricing_reader;

-- Where commodities are traded; those no longer listed stay, marked.
CREATE TABLE pricing.terminals (
    symbol text NOT NULL  -- Its symbol, such as UEX:12.
    name text NOT NULL  -- Its name in the game.
    code text  -- Its short name, such as ARCL1.
    system text  -- The star system.
    planet text  -- The planet; NULL = none.
    moon text  -- The moon; NULL = none.
    place text  -- The station, outpost or city.
    is_available boolean NOT NULL DEFAULT true  -- Whether players can trade there now.
    modified_at timestamp with time zone  -- The source's time of its last change; NULL = never changed.
    recorded_at timestamp with time zone NOT NULL  -- When this row last changed here.
    -- Since when its provider no longer lists it; NULL = listed, or known only from prices.
    vanished_at timestamp with time zone
    call_id bigint NOT NULL  -- The call that brought the last change.
    CONSTRAINT terminals_pkey PRIMARY KEY (symbol)
    CONSTRAINT terminal_symbol_is_short CHECK (((length(symbol) >= 1) AND (length(symbol) <= 40)))
);
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.terminals TO pricing_worker;
GRANT SELECT ON TABLE pricing.terminals TO pricing_reader;

-- Until when each pair's history is thinned, so that nothing is read twice.
CREATE TABLE pricing.thinned (
    data_type text NOT NULL  -- The data type.
    symbol text NOT NULL  -- The symbol.
    until timestamp with time zone NOT NULL  -- Midnight UTC; quotes before it were thinned.
    CONSTRAINT thinned_pkey PRIMARY KEY (data_type, symbol)
) WITH (fillfactor=70);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.thinned TO pricing_worker;
GRANT SELECT ON TABLE pricing.thinned TO pricing_reader;
GRANT SELECT ON TABLE pricing.trade_routes TO pricing_reader;
GRANT SELECT ON TABLE pricing.trade_routes TO pricing_worker;

-- By how much a provider's TTLs are stretched so that its quota lasts, updated every 5 min (stretch_ttls); rows older
-- than 15 min, and providers below a twentieth of their quota, stretch nothing.
CREATE TABLE pricing.ttl_stretches (
    provider text NOT NULL  -- The provider.
    -- How many TTLs old a watched price gets before its pair is queued; 1 = its TTL.
    watched_factor double precision NOT NULL
    -- The same for unwatched held pairs and schedules, which are stretched first.
    background_factor double precision NOT NULL
    -- Bytes an hour that watched pairs need at their TTLs, averaged over about a day.
    watched_need double precision NOT NULL
    need_weight double precision NOT NULL  -- The part of a day that this average covers, from 0 to 1.
    -- When the quota would end for viewers without stretching (quota_forecasts); NULL = it lasts.
    ends_at timestamp with time zone
    noted_at timestamp with time zone NOT NULL  -- When this was computed.
    CONSTRAINT ttl_stretches_pkey PRIMARY KEY (provider)
    CONSTRAINT ttl_stretches_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider) ON DELETE
        CASCADE
    CONSTRAINT background_ttls_never_shrink CHECK ((background_factor >= (1)::double precision))
    CONSTRAINT need_is_not_negative CHECK ((watched_need >= (0)::double precision))
    CONSTRAINT watched_ttls_never_shrink CHECK ((watched_factor >= (1)::double precision))
    CONSTRAINT weight_is_a_share CHECK (((need_weight > (0)::double precision) AND (need_weight <= (1)::double
        precision)))
) WITH (fillfactor=50);
GRANT SELECT ON TABLE pricing.ttl_stretches TO pricing_reader;
GRANT SELECT ON TABLE pricing.ttl_stretches TO pricing_worker;

-- One row for each kind of work that must not run twice at once, locked by the session that does it and added when
-- needed.
CREATE TABLE pricing.turns (
    name text NOT NULL  -- The work.
    CONSTRAINT turns_pkey PRIMARY KEY (name)
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.turns TO pricing_worker;
GRANT SELECT ON TABLE pricing.turns TO pricing_reader;
GRANT SELECT ON TABLE pricing.universe TO pricing_reader;
GRANT SELECT ON TABLE pricing.universe TO pricing_worker;

-- The used part of each user's new pairs a minute; leaving gives nothing back, so coming and going is bounded, too.
CREATE TABLE pricing.user_allowances (
    user_id text NOT NULL  -- The user.
    -- Each new pair adds its share of a minute, at most a minute ahead of now; a past time means that nothing is used.
    spent_until timestamp with time zone NOT NULL
    CONSTRAINT user_allowances_pkey PRIMARY KEY (user_id)
) WITH (fillfactor=50);
ALTER TABLE pricing.user_allowances ENABLE ROW LEVEL SECURITY;
-- A reader sees no rows of another login.
CREATE POLICY reader_sees_own ON pricing.user_allowances FOR SELECT TO pricing_reader USING ((user_id =
    (SESSION_USER)::text));
-- A worker acts for every user.
CREATE POLICY worker_serves_all ON pricing.user_allowances FOR ALL TO pricing_worker USING (true) WITH CHECK (true);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.user_allowances TO pricing_worker;
GRANT SELECT ON TABLE pricing.user_allowances TO pricing_reader;

-- What one user may ask for, in one row, which may be changed at any time and counts from the next heartbeat.
CREATE TABLE pricing.user_caps (
    singleton boolean NOT NULL DEFAULT true  -- Always true, so that there is only one row.
    -- Pairs that one user may watch at once, and hold, and have fetched by reads in a minute.
    pairs_per_user integer NOT NULL DEFAULT 10000
    -- Pairs one user may begin to watch or hold, or have fetched by reads, in a minute.
    new_pairs_per_minute integer NOT NULL DEFAULT 5000
    price_alerts_per_user integer NOT NULL DEFAULT 100  -- Price alerts one user may have.
    CONSTRAINT user_caps_pkey PRIMARY KEY (singleton)
    CONSTRAINT new_pairs_per_minute_is_positive CHECK ((new_pairs_per_minute > 0))
    CONSTRAINT one_row CHECK (singleton)
    CONSTRAINT pairs_per_user_is_positive CHECK ((pairs_per_user > 0))
    CONSTRAINT price_alerts_per_user_is_positive CHECK ((price_alerts_per_user > 0))
);
GRANT SELECT ON TABLE pricing.user_caps TO pricing_reader;
GRANT SELECT ON TABLE pricing.user_caps TO pricing_worker;

-- Warnings and notices of PostgreSQL by cause and ten minutes, counted outside the transactions that raised them.
CREATE TABLE pricing.warning_counts (
    since timestamp with time zone NOT NULL  -- When the ten minutes began in which they were written down.
    source text NOT NULL  -- The function that warned; postgresql = PostgreSQL itself.
    subject text NOT NULL  -- What it is about; of PostgreSQL's own ones, WARNING or NOTICE.
    sqlstate text NOT NULL  -- The code of the error behind it; empty = none.
    times bigint NOT NULL  -- How often it was raised.
    last_at timestamp with time zone NOT NULL  -- When the last one was raised.
    last_message text NOT NULL  -- What the last one said.
    CONSTRAINT warning_counts_pkey PRIMARY KEY (since, source, subject, sqlstate)
    CONSTRAINT warnings_are_counted CHECK ((times > 0))
) WITH (fillfactor=70);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.warning_counts TO pricing_worker;
GRANT SELECT ON TABLE pricing.warning_counts TO pricing_reader;

-- What went wrong without stopping anything else, at most one row a minute for the same trouble; kept 30 days.
CREATE TABLE pricing.warnings (
    warning_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- Rises with each warning.
    at timestamp with time zone NOT NULL  -- When it was given.
    source text NOT NULL  -- The function that warned: enqueue_due, run_duties.
    subject text NOT NULL  -- What it was about: a data type, a duty.
    sqlstate text  -- The error behind it, as PostgreSQL numbers errors; NULL = none.
    message text NOT NULL  -- What happened, in the database's words.
    CONSTRAINT warnings_pkey PRIMARY KEY (warning_id)
);
CREATE INDEX warnings_newest ON pricing.warnings USING btree (source, subject, at DESC);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.warnings TO pricing_worker;
GRANT SELECT ON TABLE pricing.warnings TO pricing_reader;

-- Calendars of the quotes watched at a provider with a limit of a calendar day, as of the last minute.
CREATE TABLE pricing.watched_calendars (
    provider text NOT NULL  -- The provider of the quotes.
    calendar text NOT NULL  -- When they trade; empty = not known.
    CONSTRAINT watched_calendars_pkey PRIMARY KEY (provider, calendar)
    CONSTRAINT watched_calendars_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider) ON
        DELETE CASCADE
);
GRANT SELECT ON TABLE pricing.watched_calendars TO pricing_reader;
GRANT SELECT ON TABLE pricing.watched_calendars TO pricing_worker;

-- What stands beside a pair's price: whether it is of a day, is paused, has an active sender, and since when its value
-- is the same.
CREATE FUNCTION pricing.about_price(wanted_type text, wanted_symbol text, sender text) RETURNS TABLE(is_daily boolean,
    paused boolean, provider_active boolean, frozen_since timestamp with time zone) LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.about_price(text,text,text) TO pricing_reader, pricing_worker;

-- Spans of trading days that answers lacked and that are due to be requested again; after three times only while
-- another instrument of the exchange has a value.
CREATE FUNCTION pricing.absent_spans() RETURNS TABLE(data_type text, symbol text, first_day date, last_day date, since
    timestamp with time zone) LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.absent_spans() TO pricing_reader, pricing_worker;

-- The set of a day's action; splits and spin-offs share one, because a provider may report one as the other.
CREATE FUNCTION pricing.action_set(kind text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.action_set(text) TO pricing_reader, pricing_worker;

-- An instrument's corporate actions, newest first, a day's split or spin-off before its payments, as believed at a time
-- (NULL = now).
CREATE FUNCTION pricing.actions_as_of(wanted_class text, wanted_symbol text, as_of timestamp with time zone DEFAULT
    NULL::timestamp with time zone) RETURNS TABLE(ex_on date, kind text, new_shares numeric, old_shares numeric, amount
    bigint, scale smallint, currency text, provider text, call_id bigint, recorded_at timestamp with time zone,
    entered_by text, reason text) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.actions_as_of(text,text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- The actions of an answer as stored, before payments of one day get their parts.
CREATE FUNCTION pricing.actions_of_answer(wanted_class text, from_provider text, from_call bigint, actions jsonb)
    RETURNS SETOF pricing.corporate_actions LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.actions_of_answer(text,text,bigint,jsonb) TO pricing_reader, pricing_worker;

-- Creates missing instruments and demand, due at once, except for locked ones, which adopt_pairs picks up, and other
-- spellings of an instrument.
CREATE FUNCTION pricing.add_demand(data_types text[], symbols text[], until timestamp with time zone DEFAULT
    NULL::timestamp with time zone) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=100ms;
GRANT EXECUTE ON FUNCTION pricing.add_demand(text[],text[],timestamp with time zone) TO pricing_worker;

-- Adds the row that claims of a provider lock.
TRIGGER FUNCTION pricing.add_provider_state() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- A pair's values between two UTC days, oldest first, as believed at a time (NULL = now): raw, adjusted for splits or
-- total return (rounded to 10 decimals), or as stored (NULL).
CREATE FUNCTION pricing.adjusted_prices(wanted_type text, wanted_symbol text, first_day date, last_day date, as_of
    timestamp with time zone DEFAULT NULL::timestamp with time zone, adjust text DEFAULT NULL::text, moved
    pricing.price_revisions[] DEFAULT NULL::pricing.price_revisions[], read_until date DEFAULT NULL::date) RETURNS
    TABLE(observed_at timestamp with time zone, open numeric, high numeric, low numeric, close numeric, volume numeric,
    currency text, adjustment text, provider text, call_id bigint, recorded_at timestamp with time zone, quality text)
    LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.adjusted_prices(text, text, date, date, timestamp with time zone, text,
    pricing.price_revisions[], date) TO pricing_reader, pricing_worker;

-- What divides and multiplies prices and volumes of each span of days because of later splits and payments, and which
-- payments could not be counted.
CREATE FUNCTION pricing.adjustment_steps(wanted_type text, wanted_symbol text, with_payments boolean, first_day date,
    last_day date, as_of timestamp with time zone, moved pricing.price_revisions[]) RETURNS TABLE(from_day date,
    until_day date, new_shares numeric, old_shares numeric, more_volume numeric, less_volume numeric, kept numeric,
    not_counted text) LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.adjustment_steps(text, text, boolean, date, date, timestamp with time zone,
    pricing.price_revisions[]) TO pricing_reader, pricing_worker;

-- How many new pairs a user's caps admit now (which is booked), how many would fit later and in how many seconds, and
-- what to say about the rest.
CREATE FUNCTION pricing.admit_pairs(user_id text, new_pairs integer, had bigint, OUT admitted integer, OUT fitting
    integer, OUT retry_after integer, OUT too_many text, OUT too_fast text) RETURNS record LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.admit_pairs(text,integer,bigint) TO pricing_worker;

-- Refuses (53400) a new price alert beyond its user's cap, one session of a user at a time; returns how many the user
-- has.
CREATE FUNCTION pricing.admit_price_alert(user_id pricing.user_name) RETURNS bigint LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.admit_price_alert(pricing.user_name) TO pricing_worker;

-- The reads that may be served now within each user's caps; only one session serves reads until its transaction ends.
CREATE FUNCTION pricing.admitted_reads() RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.admitted_reads() TO pricing_worker;

-- Serves watched or held pairs without demand, or last judged without a viewer, because a lock delayed their request;
-- returns how many.
CREATE FUNCTION pricing.adopt_pairs() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off,
    plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.adopt_pairs() TO pricing_worker;

-- Applies a corrected day: adds or deletes its session, marks its quarantined bars for release, and judges pairs that
-- wait for an opening.
CREATE FUNCTION pricing.after_correction(wanted_calendar text, on_day date, why text) RETURNS void LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.after_correction(text,date,text) TO pricing_worker;

-- Whether two providers' values agree (within a tenth) or disagree, by their ratio; NULL = unknown.
CREATE FUNCTION pricing.agreement(ratio numeric) RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.agreement(numeric) TO pricing_reader, pricing_worker;

-- The path in the Dagster UI of the run or asset that an alert is about; NULL = none.
CREATE FUNCTION pricing.alert_place(rule text, subject text, says text) RETURNS text LANGUAGE sql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.alert_place(text,text,text) TO pricing_reader, pricing_worker;

-- Takes the alerts to tell now: new ones, repetitions, news and ended ones; P2 together once a day.
CREATE FUNCTION pricing.alerts_to_tell() RETURNS TABLE(alert_id bigint, rule text, subject text, severity text, says
    text, since timestamp with time zone, is_over boolean, is_repeated boolean, has_news boolean) LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.alerts_to_tell() TO pricing_worker;

-- Returns the answer to a request for pairs, or raises an error if one is refused, so that the statement changes
-- nothing: SELECT pricing.all_or_nothing(pricing.heartbeat(...)).
CREATE FUNCTION pricing.all_or_nothing(answer jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.all_or_nothing(jsonb) TO pricing_client, pricing_reader, pricing_worker;

-- Locks a provider's state and says what it allows now: the key with the most room, its units, the quota's bytes, calls
-- and tasks; NULL = no call.
CREATE FUNCTION pricing.allowance_of(wanted_provider text, keys text[], max_calls integer) RETURNS
    pricing.call_allowance LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.allowance_of(text,text[],integer) TO pricing_worker;

-- Records a file that is about to replace a month's file: reads accept both until note_export.
CREATE FUNCTION pricing.announce_export(wanted_type text, wanted_month date, bytes bigint, digest text) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.announce_export(text,date,bigint,text) TO pricing_worker;

-- The answer to a request for pairs: how many are new, accepted, doubtful and refused, and the pairs not accepted as
-- written with their faults; also the accepted pairs.
CREATE FUNCTION pricing.answer_pairs(changed integer, accepted integer, answers pricing.pair_answer[] DEFAULT
    '{}'::pricing.pair_answer[]) RETURNS jsonb LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.answer_pairs(integer,integer,pricing.pair_answer[]) TO pricing_reader, pricing_worker;

-- Adds an entry, or an array of them, to a task's history; keeps the first and the last ten, and counts the rest.
CREATE FUNCTION pricing.append_errors(errors jsonb, added jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.append_errors(jsonb,jsonb) TO pricing_reader, pricing_worker;

-- Applies a calendar's corrections to its sessions between two days; returns how many days.
CREATE FUNCTION pricing.apply_corrections(wanted_calendar text, from_day date, to_day date) RETURNS integer LANGUAGE
    plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.apply_corrections(text,date,date) TO pricing_worker;

-- Refuses a data type whose fetcher is unknown or does not fit its asset class, and fills in its contents and staleness
-- function.
TRIGGER FUNCTION pricing.apply_fetcher() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Subtracts units that others have used, if the provider reports fewer left than we believed, for its longest window up
-- to an hour; five or fewer left double the delay between calls.
CREATE FUNCTION pricing.apply_units_left(wanted_provider text, wanted_key text, stated_left integer, now_ timestamp with
    time zone) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.apply_units_left(text,text,integer,timestamp with time zone) TO pricing_worker;

-- Whether any provider's TTLs are stretched; stretch_of says by how much.
CREATE FUNCTION pricing.are_ttls_stretched() RETURNS boolean LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.are_ttls_stretched() TO pricing_reader, pricing_worker;

-- Forgets answers without a value, so that the next backfill requests those days again; returns how many pairs are
-- affected.
CREATE FUNCTION pricing.ask_again(wanted_type text, from_day date, to_day date, only_symbols text[] DEFAULT
    NULL::text[]) RETURNS bigint LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.ask_again(text,date,date,text[]) TO pricing_worker;

-- Leaves requests for what a schedule could not queue, to be retried in a minute.
CREATE FUNCTION pricing.ask_later(wanted_type text, symbols text[]) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.ask_later(text,text[]) TO pricing_worker;

-- Which of the symbols (NULL = none) the last served slot still has to fetch: not left out, backing off, queued or
-- fetched since.
CREATE FUNCTION pricing.asked_by_schedule(wanted_type text, symbols text[]) RETURNS text[] LANGUAGE plpgsql SET
    search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.asked_by_schedule(text,text[]) TO pricing_worker;

-- The slots of a product on local days (a week from today; at most 366), a row per category, as believed now or at a
-- time; queues what is missing or stale, and never waits.
CREATE FUNCTION pricing.availability(wanted_symbol text, first_day date DEFAULT NULL::date, last_day date DEFAULT
    NULL::date, pax integer DEFAULT 1, only_currency text DEFAULT NULL::text, only_sellable boolean DEFAULT false, as_of
    timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS TABLE(local_day date, option_id text,
    option_name text, slot_id text, local_start timestamp without time zone, local_end timestamp without time zone,
    starts_at timestamp with time zone, status text, remaining integer, capacity integer, sellable boolean, category_id
    text, category text, is_primary boolean, minimum integer, maximum integer, pax_remaining integer, final numeric,
    original numeric, discount numeric, currency text, provider text, recorded_at timestamp with time zone, fetched_at
    timestamp with time zone, fresh boolean) LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.availability(text, date, date, integer, text, boolean, timestamp with time zone) TO
    pricing_client, pricing_reader, pricing_worker;

-- Waits up to a quarter of a second until no other claim is under way, so that each sees the others' symbols.
CREATE FUNCTION pricing.await_claims() RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.await_claims() TO pricing_worker;

-- Makes sure, in its own transaction, that everything committed before is on disk.
CREATE FUNCTION pricing.await_disk() RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.await_disk() TO pricing_worker;

-- Takes a turn as take_turn does, but waits a second for it, for a person.
CREATE FUNCTION pricing.await_turn(wanted text) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.await_turn(text) TO pricing_worker;

-- Makes pairs back off after their task died: after trouble they stay owed, after a fault of the symbol they do not,
-- and readers are told why; skips locked pairs.
CREATE FUNCTION pricing.back_off(wanted_type text, symbols text[], kind text, reason text) RETURNS void LANGUAGE sql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.back_off(text,text[],text,text) TO pricing_worker;

-- How many tasks a backfill waits for, how many are not finished, how many failed.
CREATE FUNCTION pricing.backfill_progress(wanted uuid, OUT tasks integer, OUT open integer, OUT failed integer) RETURNS
    record LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.backfill_progress(uuid) TO pricing_worker;

-- Cuts a backfill to the days that can have history; refuses impossible spans with a sentence.
CREATE FUNCTION pricing.backfill_span(wanted_type text, INOUT from_day date, INOUT to_day date) RETURNS record LANGUAGE
    plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.backfill_span(text,date,date) TO pricing_reader, pricing_worker;

-- The instruments that a backfill of the whole type (NULL), or of these symbols, covers.
CREATE FUNCTION pricing.backfilled(wanted_type text, only_symbols text[]) RETURNS TABLE(symbol text, calendar text)
    LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.backfilled(text,text[]) TO pricing_reader, pricing_worker;

-- How long a pair backs off after this many deaths: 1 min doubling to 10 min after trouble, 1 h doubling to 24 h after
-- a fault of its symbol.
CREATE FUNCTION pricing.backoff_interval(kind text, failures integer) RETURNS interval LANGUAGE sql IMMUTABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.backoff_interval(text,integer) TO pricing_reader, pricing_worker;

-- The day whose shares a stored value refers to: its own if raw, or the day it was recorded if divided by the splits
-- until then.
CREATE FUNCTION pricing.basis_day(adjustment text, observed_at timestamp with time zone, recorded_at timestamp with time
    zone) RETURNS date LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.basis_day(text, timestamp with time zone, timestamp with time zone) TO pricing_reader,
    pricing_worker;

-- How many symbols one call of a provider may ask for, for the latest price or a span of days, within what it has shown
-- and the most days of a call.
CREATE FUNCTION pricing.batch_of(able pricing.provider_capabilities, first_day date, last_day date) RETURNS integer
    LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.batch_of(pricing.provider_capabilities,date,date) TO pricing_reader, pricing_worker;

-- By how much a task's failures shrink its calls: each refusal of a batch makes the next ten times smaller, so the
-- third asks for one symbol.
CREATE FUNCTION pricing.batch_parts(errors jsonb) RETURNS integer LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.batch_parts(jsonb) TO pricing_reader, pricing_worker;

-- How many symbols one call may ask for, given how many the provider has shown to take (NULL = unknown).
CREATE FUNCTION pricing.batch_size(able pricing.provider_capabilities, shown integer, first_day date, last_day date)
    RETURNS integer LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.batch_size(pricing.provider_capabilities, integer, date, date) TO pricing_reader,
    pricing_worker;

-- Starts a drain whose run was requested at a time; NULL if wanted_drains are at work, or another session is starting
-- one.
CREATE FUNCTION pricing.begin_drain(worker_name text, run text, seconds integer, requested timestamp with time zone
    DEFAULT NULL::timestamp with time zone, most integer DEFAULT 1) RETURNS uuid LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.begin_drain(text,text,integer,timestamp with time zone,integer) TO pricing_worker;

-- Adds the new pairs of a heartbeat or hold within the user's caps, requests their prices, and answers each pair.
CREATE FUNCTION pricing.begin_pairs(kind text, user_id text, data_types text[], symbols text[], at_once boolean,
    are_renewed boolean DEFAULT false) RETURNS jsonb LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off,
    lock_timeout=2s;
GRANT EXECUTE ON FUNCTION pricing.begin_pairs(text,text,text[],text[],boolean,boolean) TO pricing_worker;

-- The most profitable trade routes, of all or from one terminal (its symbol, code or name).
CREATE FUNCTION pricing.best_routes(starts_at text DEFAULT NULL::text, at_most integer DEFAULT 20) RETURNS SETOF
    pricing.trade_routes LANGUAGE sql STABLE SECURITY DEFINER SET search_path=pg_temp, lock_timeout=1s,
    enable_nestloop=off;
GRANT EXECUTE ON FUNCTION pricing.best_routes(text,integer) TO pricing_client, pricing_reader, pricing_worker;

-- What watched or held pairs need, and what their providers allow (NULL = no limit): units a minute, and bytes in 30
-- days.
CREATE FUNCTION pricing.budget() RETURNS TABLE(provider text, pairs bigint, units_needed double precision, units_allowed
    double precision, bytes_needed bigint, bytes_allowed bigint) LANGUAGE plpgsql STABLE SECURITY DEFINER SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.budget() TO pricing_reader, pricing_worker;

-- Moves tasks to the dead with their last error, and makes their pairs back off.
CREATE FUNCTION pricing.bury(ids bigint[], kind text, entry jsonb, reason text) RETURNS void LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.bury(bigint[],text,jsonb,text) TO pricing_worker;

-- Fails claimed tasks whose symbol one provider does not serve while another of the route is in trouble or refuses us,
-- as that one's trouble: a symbol is at fault only if nobody serves it.
CREATE FUNCTION pricing.bury_by_trouble(ids bigint[], entry jsonb, message text) RETURNS void LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.bury_by_trouble(bigint[],jsonb,text) TO pricing_worker;

-- Moves locked operations to the dead ones, failed or cancelled, with a last error; returns their ids.
CREATE FUNCTION pricing.bury_operations(ids bigint[], as_status text, message text) RETURNS bigint[] LANGUAGE plpgsql
    SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.bury_operations(bigint[],text,text) TO pricing_worker;

-- Adds a dead task for each pair that no provider serves, and makes the pair back off, so that people see why it has no
-- price.
CREATE FUNCTION pricing.bury_unrouted(data_types text[], symbols text[], priorities integer[], window_starts date[],
    window_ends date[], backfill uuid) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.bury_unrouted(text[],text[],integer[],date[],date[],uuid) TO pricing_worker;

-- Bytes of the last 720 hours (partial hours count whole), including the estimates of calls in flight.
CREATE FUNCTION pricing.bytes_used(wanted_provider text, now_ timestamp with time zone) RETURNS bigint LANGUAGE plpgsql
    STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.bytes_used(text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- How many calls to a provider since then failed by its fault, and how many there were, a call and its pages counting
-- once; a call that fails again after others of its type were answered does not count.
CREATE FUNCTION pricing.calls_that_count(wanted_provider text, after timestamp with time zone, OUT faults integer, OUT
    calls integer) RETURNS record LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.calls_that_count(text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Removes the waiting tasks of a backfill, except those that a later one waits for; returns how many.
CREATE FUNCTION pricing.cancel_backfill(wanted uuid, reason text DEFAULT 'its backfill was cancelled'::text) RETURNS
    integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.cancel_backfill(uuid,text) TO pricing_worker;

-- Cancels waiting and running operations, though a running one may still happen; returns their ids.
CREATE FUNCTION pricing.cancel_operations(ids bigint[]) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp,
    lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.cancel_operations(bigint[]) TO pricing_worker;

-- Cancels live tasks by hand, makes their pairs back off for an hour, and returns each outcome.
CREATE FUNCTION pricing.cancel_tasks(wanted bigint[], reason text DEFAULT 'cancelled by hand'::text) RETURNS
    TABLE(task_id bigint, outcome text) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.cancel_tasks(bigint[],text) TO pricing_worker;

-- A typed symbol in ASCII capitals and with single spaces.
CREATE FUNCTION pricing.capital(given text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.capital(text) TO pricing_reader, pricing_worker;

-- The categories of a product, as believed at a time (NULL = now).
CREATE FUNCTION pricing.categories_as_of(wanted_symbol text, as_of timestamp with time zone) RETURNS SETOF
    pricing.pax_categories LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.categories_as_of(text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Prepares a history for a call on another basis: other days become revisions, quarantined values on the old basis are
-- deleted; false, without a change, if days must not leave.
CREATE FUNCTION pricing.change_basis(wanted_type text, wanted_symbol text, from_call bigint, basis text, brought
    timestamp with time zone[], may_leave boolean) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET
    search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.change_basis(text, text, bigint, text, timestamp with time zone[], boolean) TO
    pricing_worker;

-- Refuses a backfill that has just been queued if it cannot fit what its providers' quotas leave for backfills.
CREATE FUNCTION pricing.check_backfill_quota(wanted uuid) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.check_backfill_quota(uuid) TO pricing_worker;

-- Checks pairs by halves until only locked ones are skipped, or time is up; returns the number queued.
CREATE FUNCTION pricing.check_by_halves(wanted_type text, symbols text[], until timestamp with time zone) RETURNS
    integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.check_by_halves(text,text[],timestamp with time zone) TO pricing_worker;

-- Refuses a registry row with a table, staleness function, time zone or schedule that is not allowed.
TRIGGER FUNCTION pricing.check_data_type() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- The check digit by Luhn's rule.
CREATE FUNCTION pricing.check_digit(digits text) RETURNS integer LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.check_digit(text) TO pricing_reader, pricing_worker;

-- Refuses a spelling that is another instrument's symbol, and waits for sessions that add instruments.
TRIGGER FUNCTION pricing.check_given_spelling() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Refuses identifiers with a wrong check digit; NULL = not given.
CREATE FUNCTION pricing.check_identifiers(isin text, figi text) RETURNS void LANGUAGE plpgsql IMMUTABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.check_identifiers(text,text) TO pricing_reader, pricing_worker;

-- Refuses two lists of different length.
CREATE FUNCTION pricing.check_lengths(data_types text[], symbols text[]) RETURNS void LANGUAGE plpgsql IMMUTABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.check_lengths(text[],text[]) TO pricing_reader, pricing_worker;

-- Trigger: refuses a limit of a calendar day in an unknown time zone, which would fail every claim.
TRIGGER FUNCTION pricing.check_limit() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Refuses lists that do not form pairs, more than 10,000 pairs, and texts too long to repeat in an answer.
CREATE FUNCTION pricing.check_lists(data_types text[], symbols text[]) RETURNS void LANGUAGE plpgsql IMMUTABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.check_lists(text[],text[]) TO pricing_reader, pricing_worker;

-- Refuses an instrument whose symbol is another one's spelling at a provider: two would get one answer.
TRIGGER FUNCTION pricing.check_new_symbols() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Refuses a user's table that cannot be filled: without a unique index on its symbol, or with required columns that are
-- not fetched.
CREATE FUNCTION pricing.check_own_table(kind pricing.data_type_registry) RETURNS void LANGUAGE plpgsql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.check_own_table(pricing.data_type_registry) TO pricing_reader, pricing_worker;

-- Refuses a new symbol that its data type cannot have, with a proposal, and warns of doubtful ones.
CREATE FUNCTION pricing.check_shapes(data_types text[], symbols text[]) RETURNS void LANGUAGE plpgsql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.check_shapes(text[],text[]) TO pricing_reader, pricing_worker;

-- Refuses a data type whose table or view is missing, not the owner's, or unfit for the staleness check.
CREATE FUNCTION pricing.check_table(kind pricing.data_type_registry, is_new boolean) RETURNS void LANGUAGE plpgsql
    STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.check_table(pricing.data_type_registry,boolean) TO pricing_reader, pricing_worker;

-- The staleness check of at most this many due pairs of a data type, or of those in a list; skips locked pairs and
-- returns the number queued.
CREATE FUNCTION pricing.check_type(wanted_type text, at_most integer, symbols text[] DEFAULT NULL::text[], queued_until
    timestamp with time zone DEFAULT '-infinity'::timestamp with time zone, until timestamp with time zone DEFAULT
    NULL::timestamp with time zone) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp,
    plan_cache_mode=force_generic_plan, enable_seqscan=off, enable_memoize=off, lock_timeout=100ms;
GRANT EXECUTE ON FUNCTION pricing.check_type(text, integer, text[], timestamp with time zone, timestamp with time zone)
    TO pricing_worker;

-- Refuses an invalid user name.
CREATE FUNCTION pricing.check_user(user_id text) RETURNS void LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.check_user(text) TO pricing_reader, pricing_worker;

-- Gives an instrument without a calendar that of its exchange, or the one that the rules name; an ETF without a rule
-- follows equities.
TRIGGER FUNCTION pricing.choose_calendar() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Logs a call that a person makes for latest prices or a search as open, within all limits (commit before making it),
-- or says why not now.
CREATE FUNCTION pricing.claim_by_hand(wanted_provider text, wanted_type text, wanted_fetcher text, wanted_symbols
    text[], keys text[], who text, OUT refusal text, OUT key_name text, OUT call_id bigint, OUT claimed_at timestamp
    with time zone) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.claim_by_hand(text,text,text,text[],text[],text) TO pricing_worker;

-- Claims as many tasks as the provider allows, in at most max_calls calls of the key with the most room, and logs these
-- as open; commit before making them, and unless is_waited_for, wait for await_disk.
CREATE FUNCTION pricing.claim_calls(wanted_provider text, worker_name text, max_calls integer, run text DEFAULT
    NULL::text, keys text[] DEFAULT NULL::text[], is_waited_for boolean DEFAULT true, lease interval DEFAULT
    '00:01:00'::interval) RETURNS TABLE(call_id bigint, key_name text, data_type text, fetcher text, window_start date,
    window_end date, claim_token uuid, claimed_at timestamp with time zone, asset_class text, spellings jsonb, ids
    bigint[], symbols text[], priorities integer[], attempts smallint[]) LANGUAGE plpgsql SECURITY DEFINER SET
    search_path=pg_temp, lock_timeout=200ms, plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.claim_calls(text,text,integer,text,text[],boolean,interval) TO pricing_worker;

-- Logs a call for a list as open if all limits allow it (commit before making it); otherwise says why not, and in how
-- many seconds to ask again (infinity = never).
CREATE FUNCTION pricing.claim_etl_call(wanted_provider text, wanted_type text, keys text[], who text, OUT refusal text,
    OUT wait_seconds double precision, OUT key_name text, OUT call_id bigint, OUT claimed_at timestamp with time zone)
    RETURNS record LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.claim_etl_call(text,text,text[],text) TO pricing_worker;

-- Claims due operations for five minutes and counts the attempt: urgent ones first, then each recipient in turn, at
-- most eight at once or half of what is free.
CREATE FUNCTION pricing.claim_operations(types text[], most integer, by_worker text) RETURNS TABLE(id bigint,
    operation_type text, payload jsonb, idempotency_key uuid, attempt smallint, max_attempts smallint,
    time_limit_seconds smallint, enqueued_at timestamp with time zone, claim_token uuid) LANGUAGE plpgsql SET
    search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.claim_operations(text[],integer,text) TO pricing_worker;

-- Logs a call of a provider about quarantined values as open, within all limits and behind its waiting tasks (commit
-- before making it), or says why not now.
CREATE FUNCTION pricing.claim_opinions(wanted_provider text, worker_name text, keys text[], run text DEFAULT NULL::text,
    only_value bigint DEFAULT NULL::bigint, OUT refusal text, OUT key_name text, OUT call_id bigint, OUT data_type text,
    OUT fetcher text, OUT day date, OUT claimed_at timestamp with time zone, OUT value_ids bigint[], OUT symbols text[])
    RETURNS record LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.claim_opinions(text,text,text[],text,bigint) TO pricing_worker;

-- Opens a call's next request (page) within its provider's limits (commit before making it), or says when to ask again
-- (wait_seconds), or why the call ends (refusal).
CREATE FUNCTION pricing.claim_page(first_call bigint, ids bigint[], token uuid, first_bytes bigint, page_bytes bigint,
    most_seconds double precision, most_requests integer, OUT call_id bigint, OUT wait_seconds double precision, OUT
    refusal text, OUT retry_after double precision) RETURNS record LANGUAGE plpgsql SECURITY DEFINER SET
    search_path=pg_temp, lock_timeout=500ms, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.claim_page(bigint, bigint[], uuid, bigint, bigint, double precision, integer) TO
    pricing_worker;

-- Logs one call of a provider's search for a person as open, within its limits and quota (commit before making it), or
-- says why not now.
CREATE FUNCTION pricing.claim_search(wanted_provider text, worker_name text, keys text[], wanted_type text, OUT refusal
    text, OUT key_name text, OUT call_id bigint, OUT claimed_at timestamp with time zone) RETURNS record LANGUAGE sql
    SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.claim_search(text,text,text[],text) TO pricing_worker;

-- Ends subscriptions that are silent for 5 minutes, demand that nobody wants and that does not back off, and its
-- waiting tasks.
CREATE FUNCTION pricing.clean_subscriptions() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp,
    enable_seqscan=off, plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.clean_subscriptions() TO pricing_worker;

-- The only clock. Tests replace it to move time; nothing else may.
CREATE FUNCTION pricing.clock() RETURNS timestamp with time zone LANGUAGE sql;
GRANT EXECUTE ON FUNCTION pricing.clock() TO pricing_reader, pricing_worker;

-- A pair's last value in the two weeks before a day, as believed at a time (NULL = now), and the day of its shares;
-- NULL = none.
CREATE FUNCTION pricing.close_before(wanted_type text, wanted_symbol text, day date, as_of timestamp with time zone,
    moved pricing.price_revisions[], OUT amount bigint, OUT scale smallint, OUT currency text, OUT basis_day date)
    RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.close_before(text, text, date, timestamp with time zone, pricing.price_revisions[]) TO
    pricing_reader, pricing_worker;

-- Releases quarantined values that a later answer confirms or a known split or dividend explains; returns how many.
CREATE FUNCTION pricing.close_believed(only_ids bigint[] DEFAULT NULL::bigint[]) RETURNS integer LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.close_believed(bigint[]) TO pricing_worker;

-- The holidays between two days: days on which a calendar is closed although it trades on that weekday.
CREATE FUNCTION pricing.closed_days(wanted_calendar text, from_day date, to_day date) RETURNS SETOF date LANGUAGE sql
    STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.closed_days(text,date,date) TO pricing_reader, pricing_worker;

-- Coins in which prices are quoted, as in providers/currencies.py (a test compares them).
CREATE FUNCTION pricing.coins() RETURNS text[] LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.coins() TO pricing_reader, pricing_worker;

-- Where a commodity (slug, code, name or number) is traded, with prices and amounts for one SCU, cheapest first, as
-- believed now or at a time; queues nothing.
CREATE FUNCTION pricing.commodity(wanted text, as_of timestamp with time zone DEFAULT NULL::timestamp with time zone)
    RETURNS TABLE(symbol text, terminal text, code text, system text, place text, is_available boolean, quality text,
    buy numeric, sell numeric, stock bigint, demand bigint, game_version text, is_of_other_version boolean, modified_at
    timestamp with time zone, recorded_at timestamp with time zone, provider text) LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.commodity(text, timestamp with time zone) TO pricing_client, pricing_reader,
    pricing_worker;

-- The number of the commodity with this slug, code, name or number, preferably a listed one; NULL = unknown.
CREATE FUNCTION pricing.commodity_of(word text) RETURNS bigint LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.commodity_of(text) TO pricing_reader, pricing_worker;

-- Everything ever believed about a commodity at a terminal, oldest first; believed_until is NULL for current values.
CREATE FUNCTION pricing.commodity_price_history(wanted_commodity bigint, wanted_terminal text) RETURNS
    TABLE(believed_from timestamp with time zone, believed_until timestamp with time zone, quality text, buy numeric,
    sell numeric, stock bigint, demand bigint, game_version text, modified_at timestamp with time zone, provider text,
    call_id bigint) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.commodity_price_history(bigint,text) TO pricing_reader, pricing_worker;

-- Prices as they were believed at a time (NULL = now), of all commodities and terminals or of one; a row without prices
-- says that the commodity was no longer traded there.
CREATE FUNCTION pricing.commodity_prices_as_of(as_of timestamp with time zone DEFAULT NULL::timestamp with time zone,
    only_commodity bigint DEFAULT NULL::bigint, only_terminal text DEFAULT NULL::text) RETURNS TABLE(symbol text,
    commodity_id bigint, quality text, buy numeric, sell numeric, stock bigint, demand bigint, game_version text,
    modified_at timestamp with time zone, recorded_at timestamp with time zone, provider text, call_id bigint) LANGUAGE
    sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.commodity_prices_as_of(timestamp with time zone, bigint, text) TO pricing_reader,
    pricing_worker;

-- The one provider for all symbols of a data type, and the bytes of a latest price from it; NULL = some may need
-- another.
CREATE FUNCTION pricing.common_route(wanted_type text, OUT provider text, OUT est_bytes bigint) RETURNS record LANGUAGE
    plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.common_route(text) TO pricing_reader, pricing_worker;

-- Completes operations with their results, and closes their recipients' breakers: those that the claim still owns, or
-- that were taken from it and wait since this attempt; returns their ids.
CREATE FUNCTION pricing.complete_operations(ids bigint[], token uuid, results jsonb, at_attempt integer DEFAULT
    NULL::integer) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan,
    enable_seqscan=off, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.complete_operations(bigint[],uuid,jsonb,integer) TO pricing_worker;

-- Finishes claimed tasks and sets when their pairs are due again; returns the ids that the claim still owned.
CREATE FUNCTION pricing.complete_tasks(ids bigint[], token uuid) RETURNS bigint[] LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.complete_tasks(bigint[],uuid) TO pricing_worker;

-- Records that a provider has answered for these pairs, whatever it said, and finishes their unclaimed tasks.
CREATE FUNCTION pricing.confirm_pairs(wanted_type text, symbols text[], from_provider text, from_call bigint) RETURNS
    void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.confirm_pairs(text,text[],text,bigint) TO pricing_worker;

-- Confirms stored values after a valid but empty answer, also where there is none; erases nothing.
CREATE FUNCTION pricing.confirm_prices(wanted_type text, symbols text[]) RETURNS void LANGUAGE sql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.confirm_prices(text,text[]) TO pricing_worker;

-- Enters a person's correction of a day, a session or a closed day, which counts at once; returns added or replaced.
CREATE FUNCTION pricing.correct_calendar(wanted_calendar text, on_day date, open_ boolean, opens time without time zone,
    closes time without time zone, why text, said_at text, by_ text) RETURNS text LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.correct_calendar(text, date, boolean, time without time zone, time without time zone,
    text, text, text) TO pricing_worker;

-- The command that writes down a limit that the provider has shown: `provider use` if a plan is in use, otherwise
-- `limit set`.
CREATE FUNCTION pricing.correction_of(wanted pricing.provider_limits, key text, shown integer) RETURNS text LANGUAGE
    plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.correction_of(pricing.provider_limits,text,integer) TO pricing_reader, pricing_worker;

-- What a backfill would cost at each provider (NULL = no route), without queueing it: calls, units, estimated bytes,
-- seconds, and the quota left for backfills.
CREATE FUNCTION pricing.cost_backfill(wanted_type text, from_day date, to_day date, only_symbols text[] DEFAULT
    NULL::text[]) RETURNS TABLE(provider text, symbols bigint, tasks bigint, calls bigint, units bigint, wire_bytes
    bigint, seconds double precision, quota_bytes bigint, used_bytes bigint, left_bytes bigint) LANGUAGE plpgsql STABLE
    SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.cost_backfill(text,date,date,text[]) TO pricing_reader, pricing_worker;

-- How many of a call's tasks, from its first, fit the units and bytes that are left.
CREATE FUNCTION pricing.count_fitting(priorities integer[], bytes bigint[], all_bytes bigint, units_per_call integer,
    units_per_symbol integer, allowed pricing.call_allowance) RETURNS integer LANGUAGE plpgsql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.count_fitting(integer[], bigint[], bigint, integer, integer, pricing.call_allowance)
    TO pricing_reader, pricing_worker;

-- Adds tasks completed in a leaf between two times to task_times; returns how many.
CREATE FUNCTION pricing.count_leaf_times(leaf text, counted timestamp with time zone, until timestamp with time zone)
    RETURNS bigint LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.count_leaf_times(text, timestamp with time zone, timestamp with time zone) TO
    pricing_worker;

-- Adds tasks completed since the last call, up to a minute ago, to task_times; returns how many.
CREATE FUNCTION pricing.count_task_times() RETURNS bigint LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.count_task_times() TO pricing_worker;

-- Counts a provider's windows from its call log for later claims; only under the lock of provider_state.
CREATE FUNCTION pricing.count_units(wanted_provider text, now_ timestamp with time zone) RETURNS void LANGUAGE sql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.count_units(text,timestamp with time zone) TO pricing_worker;

-- Adds the warnings that a program has received; waits at most a second for a locked row.
CREATE FUNCTION pricing.count_warnings(heard jsonb) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp,
    lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.count_warnings(jsonb) TO pricing_worker;

-- Marks these days as answered, so that no backfill asks again, and stores which trading days the answer lacked, which
-- are requested again.
CREATE FUNCTION pricing.cover(wanted_type text, symbols text[], from_day date, to_day date) RETURNS void LANGUAGE sql
    SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.cover(text,text[],date,date) TO pricing_worker;

-- What is wrong with a cron expression, for its author; NULL = it has a next time.
CREATE FUNCTION pricing.cron_fault(schedule text) RETURNS text LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.cron_fault(text) TO pricing_reader, pricing_worker;

-- The values that a field of a cron expression means; NULL unless it has only numbers, names, *, ranges, steps and
-- lists.
CREATE FUNCTION pricing.cron_values(field text, lowest integer, highest integer, names text[] DEFAULT '{}'::text[])
    RETURNS integer[] LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.cron_values(text,integer,integer,text[]) TO pricing_reader, pricing_worker;

-- When each active provider's units of this calendar day are used up: after trading while they are spread over it
-- (basis paced), then at the last hour's pace (measured); of several limits, the first to end.
CREATE FUNCTION pricing.day_forecasts(only_providers text[] DEFAULT NULL::text[]) RETURNS TABLE(provider text, units
    bigint, used bigint, hour_units bigint, basis text, outlook text, ends_at timestamp with time zone, until timestamp
    with time zone) LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.day_forecasts(text[]) TO pricing_reader, pricing_worker;

-- Whether this database has prices of the sandbox or of real providers; the first caller decides.
CREATE FUNCTION pricing.decide_prices_from(wanted text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.decide_prices_from(text) TO pricing_worker;

-- Releases or rejects quarantined values for a person, with level_of(id) a whole level, and returns each value's
-- outcome.
CREATE FUNCTION pricing.decide_quarantined(wanted bigint[], decision text, by_whom text, why text DEFAULT NULL::text)
    RETURNS TABLE(value_id bigint, outcome text, is_latest boolean, revised boolean) LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.decide_quarantined(bigint[],text,text,text) TO pricing_worker;

-- The beginning of a sentence about a pair: when it was last confirmed, or that it never was.
CREATE FUNCTION pricing.describe_confirmation(wanted_type text, wanted_symbol text, fetched_at timestamp with time zone,
    quality text) RETURNS text LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.describe_confirmation(text, text, timestamp with time zone, text) TO pricing_reader,
    pricing_worker;

-- Why judge_symbols refuses a symbol for a data type or class, or for all if none is named; NULL = watching adds it.
CREATE FUNCTION pricing.describe_misfit(symbol text, wanted_type text DEFAULT NULL::text, wanted_class text DEFAULT
    NULL::text) RETURNS text LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.describe_misfit(text,text,text) TO pricing_reader, pricing_worker;

-- Says that no provider is in use, and how to choose one; NULL = one is.
CREATE FUNCTION pricing.describe_no_provider() RETURNS text LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.describe_no_provider() TO pricing_reader, pricing_worker;

-- Says that no active provider serves a pair, and what to do.
CREATE FUNCTION pricing.describe_no_route(data_type text, symbol text) RETURNS text LANGUAGE sql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.describe_no_route(text,text) TO pricing_reader, pricing_worker;

-- The data types for which a provider does not answer, in words; NULL = it answers, or was not asked for two minutes.
CREATE FUNCTION pricing.describe_outages(wanted_provider text, only_type text DEFAULT NULL::text) RETURNS text LANGUAGE
    sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.describe_outages(text,text) TO pricing_reader, pricing_worker;

-- When a provider's quota would end without stretching, as the end of a sentence.
CREATE FUNCTION pricing.describe_quota_end(wanted_provider text) RETURNS text LANGUAGE sql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.describe_quota_end(text) TO pricing_reader, pricing_worker;

-- How symbols look in every class, for people.
CREATE FUNCTION pricing.describe_sane_symbol() RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.describe_sane_symbol() TO pricing_reader, pricing_worker;

-- How symbols of an asset class look, for people; NULL = any way.
CREATE FUNCTION pricing.describe_shape(asset_class text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.describe_shape(text) TO pricing_reader, pricing_worker;

-- The HTTP API's answer for a symbol that is not an instrument, has no prices, or does not fit the data type.
CREATE FUNCTION pricing.describe_unknown_symbol(symbol text, wanted_type text) RETURNS text LANGUAGE sql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.describe_unknown_symbol(text,text) TO pricing_reader, pricing_worker;

-- A sentence that says why a pending operation has not been attempted; NULL = it is not pending.
CREATE FUNCTION pricing.describe_wait(operation pricing.async_operations) RETURNS text LANGUAGE plpgsql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.describe_wait(pricing.async_operations) TO pricing_reader, pricing_worker;

-- Remembers for a week that a provider does not serve these claimed tasks, and gives them to the next provider of their
-- route; returns those that had one.
CREATE FUNCTION pricing.detour(ids bigint[], kind text, message text) RETURNS bigint[] LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.detour(bigint[],text,text) TO pricing_worker;

-- Whether some symbol of a data type has its own providers, by a rule or because one has refused it.
CREATE FUNCTION pricing.differs_by_symbol(wanted_type text) RETURNS boolean LANGUAGE plpgsql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.differs_by_symbol(text) TO pricing_reader, pricing_worker;

-- A symbol's documents in one data type, newest period first, as believed now or at a time; queues what is missing or
-- stale, and never waits.
CREATE FUNCTION pricing.document(wanted_type text, wanted_symbol text, as_of timestamp with time zone DEFAULT
    NULL::timestamp with time zone) RETURNS TABLE(period date, body jsonb, recorded_at timestamp with time zone,
    fetched_at timestamp with time zone, fresh boolean, provider text) LANGUAGE plpgsql SECURITY DEFINER SET
    search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.document(text, text, timestamp with time zone) TO pricing_client, pricing_reader,
    pricing_worker;

-- A pair's documents, newest period first, as believed at a time (NULL = now).
CREATE FUNCTION pricing.documents_as_of(wanted_type text, wanted_symbol text, as_of timestamp with time zone DEFAULT
    NULL::timestamp with time zone) RETURNS TABLE(period date, body jsonb, recorded_at timestamp with time zone,
    provider text, call_id bigint) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.documents_as_of(text,text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Makes confirmed slots of a product stale, except those that one provider confirmed, after its provider or its time
-- zone changed.
CREATE FUNCTION pricing.doubt_slots(wanted_symbol text, except_of text DEFAULT NULL::text) RETURNS void LANGUAGE plpgsql
    SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.doubt_slots(text,text) TO pricing_worker;

-- New dividends and capital gains that are too large to believe beside the price or earlier payments, and why.
CREATE FUNCTION pricing.doubted_payments(wanted_type text, actions jsonb) RETURNS TABLE(symbol text, ex_on date, kind
    text, cash numeric, currency text, reason text) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.doubted_payments(text,jsonb) TO pricing_reader, pricing_worker;

-- Refuses to delete a data type that has data; otherwise removes its empty storage.
TRIGGER FUNCTION pricing.drop_storage() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=1s;

-- The total duration of some ranges of time.
CREATE FUNCTION pricing.duration_of(ranges tstzmultirange) RETURNS interval LANGUAGE sql IMMUTABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.duration_of(tstzmultirange) TO pricing_reader, pricing_worker;

-- The periodic duties, each a function of this name, with their interval and order.
CREATE FUNCTION pricing.duty_intervals() RETURNS TABLE(place integer, name text, every interval) LANGUAGE sql IMMUTABLE
    SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.duty_intervals() TO pricing_reader, pricing_worker;

-- Empties the leaf of a past week, unless somebody reads it or tasks have finished in it since.
CREATE FUNCTION pricing.empty_leaf(leaf text, now_ timestamp with time zone) RETURNS void LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.empty_leaf(text,timestamp with time zone) TO pricing_worker;

-- Makes backing-off pairs due now because the cause has been corrected (NULL = all symbols of the type); returns how
-- many.
CREATE FUNCTION pricing.end_backoff(wanted_type text, symbols text[] DEFAULT NULL::text[]) RETURNS integer LANGUAGE
    plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.end_backoff(text,text[]) TO pricing_worker;

-- Ends a drain, or leaves it to its lease if its row is locked.
CREATE FUNCTION pricing.end_drain(ended uuid) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.end_drain(uuid) TO pricing_worker;

-- Makes tasks due that wait because nothing was believed, after a value of their pair was released.
CREATE FUNCTION pricing.end_waits(wanted_type text, symbols text[]) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.end_waits(text,text[]) TO pricing_worker;

-- Queues symbols of one data type, as enqueue_pairs does.
CREATE FUNCTION pricing.enqueue(wanted_type text, symbols text[], priorities integer[], window_starts date[] DEFAULT
    NULL::date[], window_ends date[] DEFAULT NULL::date[], backfill uuid DEFAULT NULL::uuid) RETURNS integer LANGUAGE
    sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.enqueue(text,text[],integer[],date[],date[],uuid) TO pricing_worker;

-- Queues pairs by halves while another session queues some of them, until only those are skipped or time is up; returns
-- how many tasks are new.
CREATE FUNCTION pricing.enqueue_by_halves(data_types text[], symbols text[], priorities integer[], window_starts date[],
    window_ends date[], until timestamp with time zone) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.enqueue_by_halves(text[], text[], integer[], date[], date[], timestamp with time zone)
    TO pricing_worker;

-- The staleness check: serves requests, queues at most this many due and stale pairs of each data type, continues
-- walks, and returns the number queued.
CREATE FUNCTION pricing.enqueue_due(at_most integer DEFAULT 10000) RETURNS integer LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.enqueue_due(integer) TO pricing_worker;

-- Queues a message to a recipient in the caller's transaction, and returns the operation's id; in quiet hours it waits
-- unless it is urgent.
CREATE FUNCTION pricing.enqueue_message(to_recipient text, title text, body text, is_urgent boolean DEFAULT false, data
    jsonb DEFAULT NULL::jsonb, goes_first boolean DEFAULT false) RETURNS bigint LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.enqueue_message(text,text,text,boolean,jsonb,boolean) TO pricing_worker;

-- Queues a side effect of an active type in the caller's transaction, and returns its id; an urgent one goes first,
-- even in quiet hours.
CREATE FUNCTION pricing.enqueue_operation(wanted_type text, payload jsonb, due_at timestamp with time zone DEFAULT
    NULL::timestamp with time zone, is_urgent boolean DEFAULT false) RETURNS bigint LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.enqueue_operation(text,jsonb,timestamp with time zone,boolean) TO pricing_worker;

-- Queues pairs for now or for spans of days, or raises the priority of live tasks; skips inactive types and what
-- another session is queueing (a backfill fails instead); returns how many tasks are new.
CREATE FUNCTION pricing.enqueue_pairs(data_types text[], symbols text[], priorities integer[], window_starts date[]
    DEFAULT NULL::date[], window_ends date[] DEFAULT NULL::date[], backfill uuid DEFAULT NULL::uuid, until timestamp
    with time zone DEFAULT NULL::timestamp with time zone) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp,
    plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off, lock_timeout=100ms;
GRANT EXECUTE ON FUNCTION pricing.enqueue_pairs(text[], text[], integer[], date[], date[], uuid, timestamp with time
    zone) TO pricing_worker;

-- Serves a slot of a scheduled type (NULL = now) by starting to queue its instruments; returns how many so far, NULL if
-- the slot was served already or the type has no schedule.
CREATE FUNCTION pricing.enqueue_scheduled(wanted_type text, slot timestamp with time zone DEFAULT NULL::timestamp with
    time zone) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.enqueue_scheduled(text,timestamp with time zone) TO pricing_worker;

-- Queues the pairs that a walk has reached, as far as their providers can take them, and leaves requests for the rest;
-- returns the number queued.
CREATE FUNCTION pricing.enqueue_walked(wanted_type text, symbols text[]) RETURNS integer LANGUAGE plpgsql SET
    search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.enqueue_walked(text,text[]) TO pricing_worker;

-- Adds a split, spin-off, dividend or capital gain by hand; returns added, replaced or known_already.
CREATE FUNCTION pricing.enter_action(wanted_class text, wanted_symbol text, day date, wanted_kind text, new_ numeric,
    old_ numeric, cash numeric, cash_currency text, by_whom text, why text DEFAULT NULL::text, is_further boolean
    DEFAULT false) RETURNS text LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.enter_action(text, text, date, text, numeric, numeric, numeric, text, text, text,
    boolean) TO pricing_worker;

-- Enters recognized changes of face value as splits, so that quarantined NAVs are judged again; returns how many.
CREATE FUNCTION pricing.enter_face_values() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.enter_face_values() TO pricing_worker;

-- The MIC of the exchange that a symbol's ending names, such as VOD.L or VOD:LSE; NULL = none, or several that the
-- currency does not distinguish.
CREATE FUNCTION pricing.exchange_of(of_class text, of_symbol text, in_currency text) RETURNS text LANGUAGE sql STABLE
    SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.exchange_of(text,text,text) TO pricing_reader, pricing_worker;

-- The MICs of the exchanges that this ending in capital letters means, such as .L, :LSE, :XLON, or LN after a space;
-- NULL = none.
CREATE FUNCTION pricing.exchanges_marked(ending text) RETURNS text[] LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.exchanges_marked(text) TO pricing_reader, pricing_worker;

-- Closes calls whose worker was lost and books their estimate: their fate is unknown, so they count as made.
CREATE FUNCTION pricing.expire_calls() RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.expire_calls() TO pricing_worker;

-- Months of a type that have ever changed or have a file, with how many values the file has, and whether it is missing
-- or old.
CREATE FUNCTION pricing.exports(wanted_type text, first_month date, last_month date) RETURNS TABLE(month date, changes
    bigint, is_due boolean, versions bigint, exported_at timestamp with time zone, moved_at timestamp with time zone)
    LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.exports(text,date,date) TO pricing_reader, pricing_worker;

-- Renews a drain's lease and the providers that it asks; skips a locked row.
CREATE FUNCTION pricing.extend_drain(extended uuid, asked_providers text[] DEFAULT NULL::text[]) RETURNS void LANGUAGE
    sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.extend_drain(uuid,text[]) TO pricing_worker;

-- Renews a worker's lease on its tasks; returns the ids that its claim still owns.
CREATE FUNCTION pricing.extend_tasks(ids bigint[], token uuid, lease interval DEFAULT '00:01:00'::interval) RETURNS
    bigint[] LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.extend_tasks(bigint[],uuid,interval) TO pricing_worker;

-- Changes of face value that quarantined NAVs show: twenty days at one end of the history, a power of ten from the
-- adjacent believed value, and not contradicted by another provider.
CREATE FUNCTION pricing.face_value_changes() RETURNS TABLE(asset_class text, symbol text, changed_on date, navs bigint,
    before_nav numeric, after_nav numeric) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.face_value_changes() TO pricing_reader, pricing_worker;

-- The name under which recognized changes of face value are entered.
CREATE FUNCTION pricing.face_value_rule() RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.face_value_rule() TO pricing_reader, pricing_worker;

-- Fails waiting tasks that can never be called as misconfigured, or gives them to a provider that can fetch them;
-- returns how many failed.
CREATE FUNCTION pricing.fail_impossible_tasks() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.fail_impossible_tasks() TO pricing_worker;

-- Records a failed attempt, to be repeated after a growing pause or dead; returns the new status, NULL if the claim was
-- lost.
CREATE FUNCTION pricing.fail_operation(failed bigint, token uuid, message text, is_permanent boolean DEFAULT false,
    retry_after interval DEFAULT NULL::interval) RETURNS text LANGUAGE plpgsql SET search_path=pg_temp,
    plan_cache_mode=force_generic_plan, enable_seqscan=off, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.fail_operation(bigint,uuid,text,boolean,interval) TO pricing_worker;

-- Fails claimed tasks: repeats them after 5 s, 30 s, 2 min (implausible: after their TTL), snoozes throttled and
-- unfinished ones, gives unserved ones to the next provider, or buries them; returns the ids that the claim still
-- owned.
CREATE FUNCTION pricing.fail_tasks(ids bigint[], token uuid, kind text, message text, is_permanent boolean, retry_after
    interval DEFAULT NULL::interval) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.fail_tasks(bigint[],uuid,text,text,boolean,interval) TO pricing_worker;

-- When a task with this history first failed of trouble that others may share; NULL = never.
CREATE FUNCTION pricing.failing_since(errors jsonb) RETURNS timestamp with time zone LANGUAGE sql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.failing_since(jsonb) TO pricing_reader, pricing_worker;

-- The doubts and refusals among answers, each kind once: a sentence with the number of pairs and a few names.
CREATE FUNCTION pricing.faults_of(answers pricing.pair_answer[]) RETURNS jsonb LANGUAGE sql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.faults_of(pricing.pair_answer[]) TO pricing_reader, pricing_worker;

-- Queues watched or held pairs of a data type, or the named ones, even if fresh, except those that are paused, back off
-- or have no quota; returns their tasks.
CREATE FUNCTION pricing.fetch_now(wanted_type text, only_symbols text[] DEFAULT NULL::text[]) RETURNS bigint[] LANGUAGE
    plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.fetch_now(text,text[]) TO pricing_worker;

-- Ends all back-offs of a type that now fetches another kind of data.
TRIGGER FUNCTION pricing.fetcher_changed() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Digits of a file's decimals: 18 are a number of 64 bits, with which every program computes.
CREATE FUNCTION pricing.file_digits(whole integer, decimals integer) RETURNS integer LANGUAGE sql IMMUTABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.file_digits(integer,integer) TO pricing_reader, pricing_worker;

-- Copies latest prices into the user's table for their data type, with the owner's rights; a failure is only a warning.
CREATE FUNCTION pricing.fill_own_table(wanted_type text, symbols text[]) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
    SET search_path=pg_temp, lock_timeout=100ms;
GRANT EXECUTE ON FUNCTION pricing.fill_own_table(text,text[]) TO pricing_worker;

-- The calendars of the quotes watched at a provider, computed from demand; an empty text stands for quotes without one.
CREATE FUNCTION pricing.find_watched_calendars(wanted_provider text) RETURNS SETOF text LANGUAGE plpgsql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.find_watched_calendars(text) TO pricing_reader, pricing_worker;

-- Finishes an answered call's tasks that its claim still owns, as complete_tasks does, and settles the call, which is
-- judged if it owned one (is_owned); returns the ids of the tasks.
CREATE FUNCTION pricing.finish_call(finished bigint, ids bigint[], token uuid, status integer, bytes bigint, kind text
    DEFAULT NULL::text, stated_left integer DEFAULT NULL::integer, is_owned boolean DEFAULT true, shown_units integer
    DEFAULT NULL::integer, shown_seconds integer DEFAULT NULL::integer, without_length boolean DEFAULT false) RETURNS
    bigint[] LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.finish_call(bigint, bigint[], uuid, integer, bigint, text, integer, boolean, integer,
    integer, boolean) TO pricing_worker;

-- Finishes unclaimed tasks for latest values, because another call's answer has served their pairs; returns their ids.
CREATE FUNCTION pricing.finish_pending(wanted_type text, symbols text[]) RETURNS bigint[] LANGUAGE plpgsql SET
    search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.finish_pending(text,text[]) TO pricing_worker;

-- Finishes tasks that lock_tasks has locked or, with a token, that its claim still owns, sets when their pairs are due
-- again (except locked ones), and returns their ids.
CREATE FUNCTION pricing.finish_tasks(wanted bigint[], token uuid DEFAULT NULL::uuid, of_call bigint DEFAULT
    NULL::bigint) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan,
    enable_seqscan=off, jit=off, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.finish_tasks(bigint[],uuid,bigint) TO pricing_worker;

-- Whether a symbol can belong to an asset class: tickers for equities, numbers for funds, pairs for coins and exchange
-- rates, anything for a class of your own.
CREATE FUNCTION pricing.fits_class(asset_class text, symbol text) RETURNS boolean LANGUAGE sql IMMUTABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.fits_class(text,text) TO pricing_reader, pricing_worker;

-- The rows of refetches that fit the providers' quotas, at most 500 bars and 20 histories of each.
CREATE FUNCTION pricing.fitting_refetches() RETURNS TABLE(data_type text, symbol text, from_day date, to_day date,
    is_history boolean) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.fitting_refetches() TO pricing_worker;

-- Follows a step of the clock since the last look; true = the transaction should end now, because it holds many rows.
CREATE FUNCTION pricing.follow_clock(now_ timestamp with time zone) RETURNS boolean LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.follow_clock(timestamp with time zone) TO pricing_worker;

-- Applies a changed rule: forgets refusals, ends back-offs, retries unknown symbols, reroutes waiting tasks, and asks a
-- new second provider about quarantined values of the last three days.
CREATE FUNCTION pricing.forget_route(wanted_type text, wanted_symbol text) RETURNS void LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.forget_route(text,text) TO pricing_worker;

-- Forgets a shown batch size when a person writes one.
TRIGGER FUNCTION pricing.forget_shown_batch() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Forgets a shown limit when a person writes one.
TRIGGER FUNCTION pricing.forget_shown_limit() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Deletes stream events older than ten minutes or beyond 100,000, and pairs not streamed for a quarter of an hour; the
-- caller has locked the head.
CREATE FUNCTION pricing.forget_stream_events(now_ timestamp with time zone) RETURNS void LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.forget_stream_events(timestamp with time zone) TO pricing_worker;

-- Resolves dead tasks by hand without another attempt, and returns each outcome.
CREATE FUNCTION pricing.forget_tasks(wanted bigint[]) RETURNS TABLE(task_id bigint, outcome text) LANGUAGE sql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.forget_tasks(bigint[]) TO pricing_worker;

-- Forgets views after 48 hours, and allowances that have been full for an hour; returns how many views.
CREATE FUNCTION pricing.forget_views() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.forget_views() TO pricing_worker;

-- A time for programs: ISO 8601 in UTC, with microseconds where there are any.
CREATE FUNCTION pricing.format_iso(at timestamp with time zone) RETURNS text LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.format_iso(timestamp with time zone) TO pricing_reader, pricing_worker;

-- An ordinal for people: 1st, 2nd, 3rd, 4th.
CREATE FUNCTION pricing.format_ordinal(place integer) RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.format_ordinal(integer) TO pricing_reader, pricing_worker;

-- A duration for people, in one unit, rounded down.
CREATE FUNCTION pricing.format_span(span interval) RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.format_span(interval) TO pricing_reader, pricing_worker;

-- A time for people, in UTC, to the second.
CREATE FUNCTION pricing.format_time(at timestamp with time zone) RETURNS text LANGUAGE sql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.format_time(timestamp with time zone) TO pricing_reader, pricing_worker;

-- A future time for people, in UTC, with the time until then: "..., in 7 h 40 min".
CREATE FUNCTION pricing.format_time_ahead(at timestamp with time zone) RETURNS text LANGUAGE sql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.format_time_ahead(timestamp with time zone) TO pricing_reader, pricing_worker;

-- How long a value may stay the same, by its source's times, before it is suspected to be frozen.
CREATE FUNCTION pricing.frozen_after(fetcher text) RETURNS interval LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.frozen_after(text) TO pricing_reader, pricing_worker;

-- A pair's sessions without a value between two days, joined to gaps, each with its kind and whether a call is
-- worthwhile.
CREATE FUNCTION pricing.gaps(wanted_type text, wanted_symbol text, from_day date, to_day date) RETURNS TABLE(first_day
    date, last_day date, sessions bigint, kind text, detail text) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.gaps(text,text,date,date) TO pricing_reader, pricing_worker;

-- Stores which version of the game is live; false if that was known.
CREATE FUNCTION pricing.go_live(wanted_version text) RETURNS boolean LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.go_live(text) TO pricing_worker;

-- Groups tasks into calls of one data type and window, each symbol once; turn is the place of a call's first task among
-- those picked.
CREATE FUNCTION pricing.group_calls(wanted_provider text, picked pricing.picked_task[], at_most integer) RETURNS
    TABLE(turn bigint, data_type text, fetcher text, asset_class text, window_start date, window_end date,
    units_per_call integer, units_per_symbol integer, spellings jsonb, places tid[], ids bigint[], symbols text[],
    priorities integer[], attempts smallint[], bytes bigint[]) LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.group_calls(text,pricing.picked_task[],integer) TO pricing_reader, pricing_worker;

-- Whether a provider has ever answered a call, as far as the call log goes back.
CREATE FUNCTION pricing.has_answered(wanted_provider text) RETURNS boolean LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.has_answered(text) TO pricing_reader, pricing_worker;

-- Whether some pair of a data type may have to be fetched elsewhere than by its first rule.
CREATE FUNCTION pricing.has_detours(wanted_type text) RETURNS boolean LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.has_detours(text) TO pricing_reader, pricing_worker;

-- Whether a pair has a believed value of that day that moved to a file.
CREATE FUNCTION pricing.has_moved(wanted_type text, wanted_symbol text, day date) RETURNS boolean LANGUAGE sql STABLE
    SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.has_moved(text,text,date) TO pricing_reader, pricing_worker;

-- Whether instruments of a class may split; otherwise a step of any size is a true move or a mistake.
CREATE FUNCTION pricing.has_splits(asset_class text) RETURNS boolean LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.has_splits(text) TO pricing_reader, pricing_worker;

-- Each part of the pipeline, causes first: whether it is late, when it last was not, and what that means.
CREATE FUNCTION pricing.health() RETURNS TABLE(part text, is_late boolean, since timestamp with time zone, says text)
    LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.health() TO pricing_reader, pricing_worker;

-- Says that a user is looking at these pairs: creates missing instruments, queues what is missing or stale (at_once or
-- by request), and answers each pair (see answer_pairs).
CREATE FUNCTION pricing.heartbeat(user_id text, data_types text[], symbols text[], at_once boolean DEFAULT true) RETURNS
    jsonb LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off, plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.heartbeat(text,text[],text[],boolean) TO pricing_worker;

-- Says that the session's user is looking at these pairs, and answers each pair (see answer_pairs).
CREATE FUNCTION pricing.heartbeat(data_types text[], symbols text[]) RETURNS jsonb LANGUAGE sql SECURITY DEFINER SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.heartbeat(text[],text[]) TO pricing_client, pricing_worker;

-- Values of a symbol between two UTC days, both included, oldest first: as believed at as_of (NULL = now), and raw,
-- adjusted for splits or for total return by adjust (NULL = as stored).
CREATE FUNCTION pricing.history(wanted_type text, wanted_symbol text, first_day date, last_day date, as_of timestamp
    with time zone DEFAULT NULL::timestamp with time zone, adjust text DEFAULT NULL::text) RETURNS TABLE(observed_at
    timestamp with time zone, open numeric, high numeric, low numeric, close numeric, volume numeric, currency text,
    provider text, fetched_at timestamp with time zone, adjustment text, call_id bigint, quality text) LANGUAGE sql
    STABLE SECURITY DEFINER SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.history(text, text, date, date, timestamp with time zone, text) TO pricing_client,
    pricing_reader, pricing_worker;

-- Counts a backfill's instruments by their history between two days: queued, stored (some value), not_listed (yet),
-- empty (the provider has none), or nothing_yet.
CREATE FUNCTION pricing.history_standing(wanted_type text, from_day date, to_day date, only_symbols text[] DEFAULT
    NULL::text[]) RETURNS jsonb LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.history_standing(text,date,date,text[]) TO pricing_reader, pricing_worker;

-- Says that a user holds these pairs until released, queues those without a price (at_once or by request), and answers
-- as heartbeat does. Quantities replace those of before; NULL leaves one as it is.
CREATE FUNCTION pricing.hold(user_id text, data_types text[], symbols text[], quantities numeric[] DEFAULT
    NULL::numeric[], at_once boolean DEFAULT true) RETURNS jsonb LANGUAGE plpgsql SET search_path=pg_temp,
    lock_timeout=2s;
GRANT EXECUTE ON FUNCTION pricing.hold(text,text[],text[],numeric[],boolean) TO pricing_worker;

-- Says that the session's user holds these pairs, in these quantities, and answers each pair (see answer_pairs).
CREATE FUNCTION pricing.hold(data_types text[], symbols text[], quantities numeric[] DEFAULT NULL::numeric[]) RETURNS
    jsonb LANGUAGE sql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.hold(text[],text[],numeric[]) TO pricing_client, pricing_worker;

-- Duties that have never succeeded, and either failed or have not run although others have since the start, at least
-- twenty seconds ago.
CREATE FUNCTION pricing.idle_duties(started timestamp with time zone) RETURNS TABLE(duty text, since timestamp with time
    zone, last_error text) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.idle_duties(timestamp with time zone) TO pricing_reader, pricing_worker;

-- Waiting tasks that can never be called, with the reason and what to do; is_misrouted if another provider may fetch
-- it.
CREATE FUNCTION pricing.impossible_tasks() RETURNS TABLE(id bigint, data_type text, is_misrouted boolean, message text)
    LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.impossible_tasks() TO pricing_reader, pricing_worker;

-- A payment that a total return cannot count, and why, for people.
CREATE FUNCTION pricing.in_words(lack jsonb) RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.in_words(jsonb) TO pricing_reader, pricing_worker;

-- Adds a task for each pair that has a provider and no live task; returns how many, whether a provider had none
-- pending, whether pairs have no provider, and the live tasks with the wanted priorities.
CREATE FUNCTION pricing.insert_tasks(data_types text[], symbols text[], priorities integer[], window_starts date[],
    window_ends date[], backfill uuid, OUT added integer, OUT is_news boolean, OUT are_unrouted boolean, OUT live_ids
    bigint[], OUT live_priorities integer[]) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.insert_tasks(text[],text[],integer[],date[],date[],uuid) TO pricing_worker;

-- The instant of a local time by RFC 5545: the first of two, and for a skipped one the time after the jump.
CREATE FUNCTION pricing.instant_of(local timestamp without time zone, zone text) RETURNS timestamp with time zone
    LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.instant_of(timestamp without time zone,text) TO pricing_reader, pricing_worker;

-- Stops the waiting tasks of a paused instrument; makes the pairs of a resumed one due at once.
TRIGGER FUNCTION pricing.instrument_paused() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- How many instruments of a calendar have a daily bar between two days.
CREATE FUNCTION pricing.instruments_traded(wanted_calendar text, from_day date, to_day date) RETURNS bigint LANGUAGE sql
    STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.instruments_traded(text,date,date) TO pricing_reader, pricing_worker;

-- Whether another open call with the same key goes before a call's next request: an older one, or one with a request in
-- flight.
CREATE FUNCTION pricing.is_before_page(call pricing.collector_call_log, now_ timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_before_page(pricing.collector_call_log, timestamp with time zone) TO
    pricing_reader, pricing_worker;

-- Whether a fetcher brings values of days, whose date is a trading day.
CREATE FUNCTION pricing.is_daily(fetcher text) RETURNS boolean LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.is_daily(text) TO pricing_reader, pricing_worker;

-- Whether a time is older than the TTL, missing, or more than a minute ahead; refuses a TTL that is not positive.
CREATE FUNCTION pricing.is_data_stale(stamp timestamp with time zone, ttl_minutes integer) RETURNS boolean LANGUAGE
    plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_data_stale(timestamp with time zone,integer) TO pricing_reader, pricing_worker;

-- Whether this is a FIGI (ANSI X9.145), with its check digit.
CREATE FUNCTION pricing.is_figi(given text) RETURNS boolean LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_figi(text) TO pricing_reader, pricing_worker;

-- Whether a provider that once answered for a pair has not known it for a week, and was asked within that week.
CREATE FUNCTION pricing.is_forgotten(wanted_type text, wanted_symbol text) RETURNS boolean LANGUAGE sql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_forgotten(text,text) TO pricing_reader, pricing_worker;

-- Whether an open call asks any provider about this symbol now, for a task or a second opinion; tasks given back or
-- cancelled meanwhile do not count.
CREATE FUNCTION pricing.is_in_work(wanted_symbol text) RETURNS boolean LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_in_work(text) TO pricing_reader, pricing_worker;

-- Whether this is an ISIN (ISO 6166), with its check digit.
CREATE FUNCTION pricing.is_isin(given text) RETURNS boolean LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_isin(text) TO pricing_reader, pricing_worker;

-- Whether a waiting page has the next call with a key.
CREATE FUNCTION pricing.is_kept_for_page(state pricing.provider_state, wanted_key text, now_ timestamp with time zone)
    RETURNS boolean LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.is_kept_for_page(pricing.provider_state, text, timestamp with time zone) TO
    pricing_reader, pricing_worker;

-- Whether a leaf still belongs to the finished tasks, and was not dropped or detached.
CREATE FUNCTION pricing.is_leaf(leaf text) RETURNS boolean LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_leaf(text) TO pricing_reader, pricing_worker;

-- Stale when a newer value should exist by the instrument's calendar and by the TTL, or when there is no time at all,
-- or one more than a minute ahead.
CREATE FUNCTION pricing.is_market_stale(data_type text, symbol text, stamp timestamp with time zone, ttl_minutes
    integer) RETURNS boolean LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_market_stale(text, text, timestamp with time zone, integer) TO pricing_reader,
    pricing_worker;

-- The staleness function that data types name to follow calendars; without a symbol the TTL decides.
CREATE FUNCTION pricing.is_market_stale(stamp timestamp with time zone, ttl_minutes integer) RETURNS boolean LANGUAGE
    plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_market_stale(timestamp with time zone,integer) TO pricing_reader, pricing_worker;

-- Whether a value is quarantined because its level differs from its neighbours'.
CREATE FUNCTION pricing.is_of_level(kind text) RETURNS boolean LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.is_of_level(text) TO pricing_reader, pricing_worker;

-- Whether a reported action may be a believed one of another day, because sources differ about ex-days: the same ratio
-- within 7 days, or the same amount within 6.
CREATE FUNCTION pricing.is_one_action(believed pricing.corporate_actions, said pricing.corporate_actions) RETURNS
    boolean LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_one_action(pricing.corporate_actions, pricing.corporate_actions) TO pricing_reader,
    pricing_worker;

-- Whether a kind of failure may mean that the provider serves nobody; throttled has its own pauses.
CREATE FUNCTION pricing.is_outage(kind text) RETURNS boolean LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.is_outage(text) TO pricing_reader, pricing_worker;

-- Whether a pair's price is missing or stale for a viewer, by the registry's table and function.
CREATE FUNCTION pricing.is_pair_stale(data_type text, symbol text) RETURNS boolean LANGUAGE plpgsql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_pair_stale(text,text) TO pricing_reader, pricing_worker;

-- Whether the TTL has passed at a moment, or the time is missing or more than a minute ahead of it.
CREATE FUNCTION pricing.is_past_ttl(stamp timestamp with time zone, ttl_minutes integer, now_ timestamp with time zone)
    RETURNS boolean LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.is_past_ttl(timestamp with time zone, integer, timestamp with time zone) TO
    pricing_reader, pricing_worker;

-- Whether a failed call counts against its provider; wrong keys, symbols, plans and requests are ours.
CREATE FUNCTION pricing.is_provider_fault(kind text) RETURNS boolean LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.is_provider_fault(text) TO pricing_reader, pricing_worker;

-- Whether a person has removed or replaced exactly this action of this provider.
CREATE FUNCTION pricing.is_refuted(said pricing.corporate_actions) RETURNS boolean LANGUAGE plpgsql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_refuted(pricing.corporate_actions) TO pricing_reader, pricing_worker;

-- Whether an action entered by hand replaces this one: the same day's ratio, or a payment of the same kind and
-- currency.
CREATE FUNCTION pricing.is_replaced_by(believed pricing.corporate_actions, entered pricing.corporate_actions) RETURNS
    boolean LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_replaced_by(pricing.corporate_actions, pricing.corporate_actions) TO
    pricing_reader, pricing_worker;

-- Whether an instrument of any class may have this symbol.
CREATE FUNCTION pricing.is_sane_symbol(symbol text) RETURNS boolean LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_sane_symbol(text) TO pricing_reader, pricing_worker;

-- Whether a provider that shows a limit without naming its window may mean this one (NULL = a calendar day): up to an
-- hour.
CREATE FUNCTION pricing.is_short_window(seconds integer) RETURNS boolean LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.is_short_window(integer) TO pricing_reader, pricing_worker;

-- Whether a source that was asked at a time had nothing as new as it should have.
CREATE FUNCTION pricing.is_source_old(kind pricing.data_type_registry, symbol text, observed_at timestamp with time
    zone, asked_at timestamp with time zone, ttl_minutes integer) RETURNS boolean LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.is_source_old(pricing.data_type_registry, text, timestamp with time zone, timestamp
    with time zone, integer) TO pricing_reader, pricing_worker;

-- Asks the staleness function that the registry names for the type about a pair, with its calendar if the function
-- follows calendars.
CREATE FUNCTION pricing.is_stale(data_type text, symbol text, stamp timestamp with time zone, ttl_minutes integer)
    RETURNS boolean LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_stale(text, text, timestamp with time zone, integer) TO pricing_reader,
    pricing_worker;

-- The verdict of the staleness function that the registry names for the type; stale without one.
CREATE FUNCTION pricing.is_stale(data_type text, stamp timestamp with time zone, ttl_minutes integer) RETURNS boolean
    LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_stale(text,timestamp with time zone,integer) TO pricing_reader, pricing_worker;

-- Whether a claim still owns a task of a call (NULL = a call without tasks, which is its own claim); locks nothing.
CREATE FUNCTION pricing.is_still_claimed(of_call bigint, ids bigint[], token uuid) RETURNS boolean LANGUAGE plpgsql
    STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_still_claimed(bigint,bigint[],uuid) TO pricing_reader, pricing_worker;

-- Whether a kind of failure is a fault of the symbol; all others are trouble, and the pair stays late.
CREATE FUNCTION pricing.is_symbol_fault(kind text) RETURNS boolean LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.is_symbol_fault(text) TO pricing_reader, pricing_worker;

-- Whether this server knows a time zone.
CREATE FUNCTION pricing.is_time_zone(name text) RETURNS boolean LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_time_zone(text) TO pricing_reader, pricing_worker;

-- Whether an instrument has quarantined values, or its history came divided by one ratio, so that a new split may
-- explain it.
CREATE FUNCTION pricing.is_to_judge(wanted_class text, wanted_symbol text, wanted_kind text) RETURNS boolean LANGUAGE
    plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_to_judge(text,text,text) TO pricing_reader, pricing_worker;

-- Whether another instrument of the same exchange has a value for a day.
CREATE FUNCTION pricing.is_traded_by_others(wanted_type text, wanted_symbol text, day date) RETURNS boolean LANGUAGE sql
    STABLE;
GRANT EXECUTE ON FUNCTION pricing.is_traded_by_others(text,text,date) TO pricing_reader, pricing_worker;

-- Whether a quarantined value has nothing that could be stored: it is not a price, or two contradict each other.
CREATE FUNCTION pricing.is_unreadable(kind text, bar jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.is_unreadable(text,jsonb) TO pricing_reader, pricing_worker;

-- Whether a pair's last values came so rarely, as of a fund valued each week or month, that the next need not be there
-- yet.
CREATE FUNCTION pricing.is_usual_pause(wanted_type text, wanted_symbol text, newest timestamp with time zone, asked_at
    timestamp with time zone) RETURNS boolean LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_usual_pause(text, text, timestamp with time zone, timestamp with time zone) TO
    pricing_reader, pricing_worker;

-- Updates a provider's breaker, outages, key pauses, shown limits and remaining units after a settled call whose claim
-- was still owned; does nothing if the provider is locked.
CREATE FUNCTION pricing.judge_call(call pricing.collector_call_log, stated_left integer, shown_units integer,
    shown_seconds integer) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.judge_call(pricing.collector_call_log,integer,integer,integer) TO pricing_worker;

-- The answer to each pair of a request, before caps: its data type must be active, and its symbol must pass
-- judge_symbols.
CREATE FUNCTION pricing.judge_pairs(data_types text[], symbols text[]) RETURNS SETOF pricing.pair_answer LANGUAGE sql
    STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.judge_pairs(text[],text[]) TO pricing_reader, pricing_worker;

-- Makes pairs due that wait longer than their TTL is stretched now, of the data types of some providers (NULL = all);
-- returns how many pairs.
CREATE FUNCTION pricing.judge_stretched(providers text[] DEFAULT NULL::text[]) RETURNS integer LANGUAGE plpgsql SET
    search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.judge_stretched(text[]) TO pricing_worker;

-- What each pair of data type and symbol means: accepted, doubtful (accepted, with a reason) or refused (with a reason
-- and a proposal), and the canonical symbol.
CREATE FUNCTION pricing.judge_symbols(data_types text[], symbols text[]) RETURNS TABLE(place integer, data_type text,
    given text, symbol text, outcome text, reason text, proposal text) LANGUAGE plpgsql STABLE SET search_path=pg_temp,
    enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.judge_symbols(text[],text[]) TO pricing_reader, pricing_worker;

-- Due pairs with times, TTLs and verdicts from a table or function of the user's own; if that fails, all count as
-- stale.
CREATE FUNCTION pricing.judged_elsewhere(kind pricing.data_type_registry, places tid[]) RETURNS pricing.due_pair[]
    LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.judged_elsewhere(pricing.data_type_registry,tid[]) TO pricing_worker;

-- Stores actions as revisions that a later call of their provider has replaced, or a person (call 0), with a reason.
CREATE FUNCTION pricing.keep_actions(were pricing.corporate_actions[], until timestamp with time zone, by_call bigint,
    by_whom text DEFAULT NULL::text, why text DEFAULT NULL::text) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.keep_actions(pricing.corporate_actions[], timestamp with time zone, bigint, text,
    text) TO pricing_worker;

-- Refuses to change the class or symbol of an instrument that is watched, held or priced: its pairs would be left
-- without an instrument.
TRIGGER FUNCTION pricing.keep_class() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Refuses to send a stored key to another host than the one it was given for.
TRIGGER FUNCTION pricing.keep_key_at_host() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Trigger: keeps changed rows, matched by their identity (first argument), under the key that reads look them up by
-- (second argument).
TRIGGER FUNCTION pricing.keep_revision() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Stores values that a call has changed or removed as revisions, and records the change.
CREATE FUNCTION pricing.keep_revisions(were pricing.price_history[], until timestamp with time zone, by_call bigint)
    RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.keep_revisions(pricing.price_history[], timestamp with time zone, bigint) TO
    pricing_worker;

-- The source's spelling of a price if it differs from the amount with this many decimals; NULL = it does not.
CREATE FUNCTION pricing.kept_text(source_text text, amount bigint, scale smallint) RETURNS text LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.kept_text(text,bigint,smallint) TO pricing_reader, pricing_worker;

-- A provider's keys and the units that each may be charged now; exact only under the lock of provider_state.
CREATE FUNCTION pricing.key_allowances(wanted_provider text, now_ timestamp with time zone) RETURNS TABLE(key_name text,
    is_active boolean, is_usable boolean, units_left bigint, units_limit integer, is_after_refusal boolean,
    is_nearly_used_up boolean, blocked_until timestamp with time zone, blocked_reason text) LANGUAGE plpgsql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.key_allowances(text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Of these keys of a provider (NULL = all), the one with the most units left, at least as many as needed; no row =
-- none.
CREATE FUNCTION pricing.key_to_ask(wanted_provider text, keys text[], needed integer, last_call timestamp with time
    zone, at timestamp with time zone) RETURNS TABLE(key_name text, units_left bigint) LANGUAGE sql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.key_to_ask(text, text[], integer, timestamp with time zone, timestamp with time zone)
    TO pricing_reader, pricing_worker;

-- What distinguishes a restated bar from a corrected one, for each symbol and span: basis, splits, and when stored
-- values were recorded.
CREATE FUNCTION pricing.known_basis(wanted_type text, symbols text[], first_times timestamp with time zone[], last_times
    timestamp with time zone[]) RETURNS TABLE(symbol text, adjustment text, split_days date[], split_ratios numeric[],
    newest_recorded timestamp with time zone, earlier_recorded timestamp with time zone, same_times timestamp with time
    zone[], same_recorded timestamp with time zone[]) LANGUAGE plpgsql STABLE SET search_path=pg_temp,
    plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.known_basis(text, text[], timestamp with time zone[], timestamp with time zone[]) TO
    pricing_reader, pricing_worker;

-- Currencies that an exchange rate may name: the three-letter codes of providers/currencies.py (a test compares them).
CREATE FUNCTION pricing.known_currencies() RETURNS text[] LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.known_currencies() TO pricing_reader, pricing_worker;

-- What stops a provider, taken from the given stops if it is there, so that explaining many pairs checks each provider
-- once.
CREATE FUNCTION pricing.known_stop(wanted_provider text, stops pricing.provider_stop[]) RETURNS pricing.provider_stop
    LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.known_stop(text,pricing.provider_stop[]) TO pricing_reader, pricing_worker;

-- The time zones among these names that this server knows.
CREATE FUNCTION pricing.known_time_zones(names text[]) RETURNS text[] LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.known_time_zones(text[]) TO pricing_reader, pricing_worker;

-- What an answer is judged by, for each symbol and span: scale, currency, basis, bounds, neighbouring and stored
-- values, and what other providers say.
CREATE FUNCTION pricing.known_values(wanted_type text, from_provider text, symbols text[], first_times timestamp with
    time zone[], last_times timestamp with time zone[], is_latest boolean) RETURNS TABLE(symbol text, scale smallint,
    currency text, adjustment text, lowest numeric, highest numeric, jumps_are_trusted boolean, newest_at timestamp with
    time zone, newest_amount bigint, newest_scale smallint, earlier_at timestamp with time zone, earlier_amount bigint,
    earlier_scale smallint, later_at timestamp with time zone, later_amount bigint, later_scale smallint, kin_at
    timestamp with time zone, kin_amount bigint, kin_scale smallint, same_times timestamp with time zone[], same_amounts
    bigint[], same_scales smallint[], other_times timestamp with time zone[], other_values numeric[], other_providers
    text[]) LANGUAGE plpgsql STABLE SET search_path=pg_temp, plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.known_values(text, text, text[], timestamp with time zone[], timestamp with time
    zone[], boolean) TO pricing_reader, pricing_worker;

-- How many drains are at work and not about to end.
CREATE FUNCTION pricing.lasting_drains() RETURNS integer LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.lasting_drains() TO pricing_reader, pricing_worker;

-- Duties that have not run for ten minutes beyond their interval: when they last did (NULL = never), and why they fail,
-- if so.
CREATE FUNCTION pricing.late_duties(started timestamp with time zone) RETURNS TABLE(duty text, since timestamp with time
    zone, last_error text) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.late_duties(timestamp with time zone) TO pricing_reader, pricing_worker;

-- Parts without a sign of life for too long, and sensors that fail, in the form of pricing.health().
CREATE FUNCTION pricing.late_signs(now_ timestamp with time zone, started timestamp with time zone) RETURNS TABLE(part
    text, is_late boolean, since timestamp with time zone, says text) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.late_signs(timestamp with time zone, timestamp with time zone) TO pricing_reader,
    pricing_worker;

-- Data types with late pairs in all samples of the last ten minutes, and a row without a type if more than 5 % of all
-- watched pairs were late.
CREATE FUNCTION pricing.late_types(started timestamp with time zone) RETURNS TABLE(data_type text, watched bigint, late
    bigint) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.late_types(timestamp with time zone) TO pricing_reader, pricing_worker;

-- Learns from a daily value's first appearance how long after the close to look for it.
TRIGGER FUNCTION pricing.learn_publish_lag() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Corrects the size estimate by a good call's bytes, one part in ten after the first, and counts answers of more than
-- twice their estimate.
CREATE FUNCTION pricing.learn_size(call pricing.collector_call_log, now_ timestamp with time zone) RETURNS void LANGUAGE
    plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.learn_size(pricing.collector_call_log,timestamp with time zone) TO pricing_worker;

-- Ends what a product's previous provider listed: its coming slots have vanished, its options and categories are
-- unlisted, and its days are requested again.
CREATE FUNCTION pricing.leave_previous_provider(answered text[], from_provider text, from_call bigint, now_ timestamp
    with time zone) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.leave_previous_provider(text[], text, bigint, timestamp with time zone) TO
    pricing_worker;

-- How many of a provider's used bytes will have left the quota in 1, 2, ... 721 hours.
CREATE FUNCTION pricing.leaving_bytes(wanted_provider text, now_ timestamp with time zone) RETURNS bigint[] LANGUAGE sql
    STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.leaving_bytes(text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- The part of a price left after a day's dividends and capital gains, 1 if unknown, and why in lacks: no_close, no_rate
-- or not_below_close.
CREATE FUNCTION pricing.left_by_payments(wanted_type text, wanted_class text, wanted_symbol text, day date, as_of
    timestamp with time zone, moved pricing.price_revisions[], OUT kept numeric, OUT lacks jsonb) RETURNS record
    LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.left_by_payments(text, text, text, date, timestamp with time zone,
    pricing.price_revisions[]) TO pricing_reader, pricing_worker;

-- How many instruments a backfill of the whole type, or of these symbols, leaves out, by reason.
CREATE FUNCTION pricing.left_out(wanted_type text, only_symbols text[] DEFAULT NULL::text[]) RETURNS jsonb LANGUAGE sql
    STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.left_out(text,text[]) TO pricing_reader, pricing_worker;

-- The values quarantined with this one: consecutive, of one pair, provider, state and level, with no believed value
-- between them.
CREATE FUNCTION pricing.level_of(wanted bigint) RETURNS bigint[] LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.level_of(bigint) TO pricing_reader, pricing_worker;

-- Makes the next check of a data type start from the beginning if a due pair was skipped; returns how many types.
CREATE FUNCTION pricing.lift_marks() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.lift_marks() TO pricing_worker;

-- The limit that blocks a provider now, how much of it is used, and when the next unit is free; NULL = none.
CREATE FUNCTION pricing.limit_in_force(wanted_provider text, OUT sentence text, OUT next_at timestamp with time zone)
    RETURNS record LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.limit_in_force(text) TO pricing_reader, pricing_worker;

-- The time after which calls count against the limit now.
CREATE FUNCTION pricing.limit_start(wanted pricing.provider_limits, now_ timestamp with time zone) RETURNS timestamp
    with time zone LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.limit_start(pricing.provider_limits, timestamp with time zone) TO pricing_reader,
    pricing_worker;

-- How far back a window of this many seconds is counted: five milliseconds longer.
CREATE FUNCTION pricing.limit_window(seconds integer) RETURNS interval LANGUAGE plpgsql IMMUTABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.limit_window(integer) TO pricing_reader, pricing_worker;

-- The limits that providers, or one, have shown to be lower than written: a sentence about each, and the command that
-- corrects it.
CREATE FUNCTION pricing.limits_shown(only_provider text DEFAULT NULL::text) RETURNS TABLE(provider text, key_name text,
    name text, units integer, shown_units integer, shown_at timestamp with time zone, sentence text, correction text)
    LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.limits_shown(text) TO pricing_reader, pricing_worker;

-- The first day on which a pair can have values, set by a person, or the first value if the fortnight before was
-- requested without result; NULL = unknown.
CREATE FUNCTION pricing.listed_from(wanted_type text, wanted_symbol text) RETURNS date LANGUAGE plpgsql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.listed_from(text,text) TO pricing_reader, pricing_worker;

-- Replaces the corrections of trading days that come with the pipeline; those of people stay.
CREATE FUNCTION pricing.load_corrections(given jsonb) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.load_corrections(jsonb) TO pricing_worker;

-- Stores the exchanges of domain/exchanges.toml, their symbols' endings and their calendars, also for instruments
-- without one.
CREATE FUNCTION pricing.load_exchanges(given jsonb) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.load_exchanges(jsonb) TO pricing_worker;

-- Lets only one session of a user begin new pairs until the transaction ends.
CREATE FUNCTION pricing.lock_allowance(user_id pricing.user_name) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.lock_allowance(pricing.user_name) TO pricing_worker;

-- Locks histories that may change their basis: first and last day of each, whether most of it is this provider's, and
-- whether all of it was requested.
CREATE FUNCTION pricing.lock_basis(wanted_type text, from_provider text, symbols text[]) RETURNS TABLE(symbol text,
    first_day date, last_day date, is_own boolean, is_asked boolean) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.lock_basis(text,text,text[]) TO pricing_worker;

-- Locks a call's row until the transaction ends, so that what is stored for it can be settled.
CREATE FUNCTION pricing.lock_call(locked bigint) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.lock_call(bigint) TO pricing_worker;

-- Locks a month against other exports until the transaction ends, and returns when it was exported and when it moved.
CREATE FUNCTION pricing.lock_export(wanted_type text, wanted_month date) RETURNS TABLE(exported_at timestamp with time
    zone, moved_at timestamp with time zone) LANGUAGE sql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.lock_export(text,date) TO pricing_worker;

-- The fence: locks the tasks that a claim still owns, of one call or of all, until the transaction ends, and returns
-- their ids; waits at most a second.
CREATE FUNCTION pricing.lock_tasks(ids bigint[], token uuid, of_call bigint DEFAULT NULL::bigint) RETURNS bigint[]
    LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off,
    lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.lock_tasks(bigint[],uuid,bigint) TO pricing_worker;

-- How many days a task of a pair may span so that each of its providers can fetch it in one call; NULL = any number, or
-- no provider.
CREATE FUNCTION pricing.longest_window(wanted_type text, wanted_symbol text, wanted_fetcher text) RETURNS SETOF integer
    LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.longest_window(text,text,text) TO pricing_reader, pricing_worker;

-- Makes the next staleness check judge the pairs of a data type, or of one symbol, unless they back off or are queued.
CREATE FUNCTION pricing.look_again(wanted_type text, only_symbol text DEFAULT NULL::text) RETURNS void LANGUAGE sql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.look_again(text,text) TO pricing_worker;

-- Logs changes of streamed pairs since the last look, deletes old events, starts streaming opened pairs, and returns
-- where the log begins and ends.
CREATE FUNCTION pricing.look_for_streams(opened_types text[], opened_symbols text[], OUT head_position bigint, OUT
    kept_from bigint) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.look_for_streams(text[],text[]) TO pricing_worker;

-- Whether this has the form of an ISIN or a FIGI.
CREATE FUNCTION pricing.looks_like_identifier(given text) RETURNS boolean LANGUAGE sql IMMUTABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.looks_like_identifier(text) TO pricing_reader, pricing_worker;

-- Allows another probe after a probe's worker was lost: at once, or when the lease is over if the row is locked.
CREATE FUNCTION pricing.lose_probe(wanted_provider text, lost bigint) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.lose_probe(text,bigint) TO pricing_worker;

-- Recreates dropped leaves of finished tasks, for the owner at an upgrade.
CREATE FUNCTION pricing.make_leaves() RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.make_leaves() TO pricing_worker;

-- Gives a new data type its view, its history if it has prices, and a route.
TRIGGER FUNCTION pricing.make_storage() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp;

-- Makes the view of a data type: its latest prices, its current documents, or when its pairs were confirmed.
CREATE FUNCTION pricing.make_view(contents text, view_name text, data_type text) RETURNS void LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.make_view(text,text,text) TO pricing_worker;

-- When a calendar's last session ended, and when the next begins or the current one began; NULL = sessions are not
-- known.
CREATE FUNCTION pricing.market_at(wanted_calendar text, at timestamp with time zone, OUT closed_at timestamp with time
    zone, OUT opens_at timestamp with time zone) RETURNS record LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.market_at(text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Whether one such task fits a provider's empty quota.
CREATE FUNCTION pricing.may_fit(wanted_provider text, priority integer, bytes bigint) RETURNS boolean LANGUAGE plpgsql
    STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.may_fit(text,integer,bigint) TO pricing_reader, pricing_worker;

-- Whether an open breaker lets a probe through early: 45 s after the last one failed, while a viewer waits.
CREATE FUNCTION pricing.may_probe_early(state pricing.provider_state, now_ timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.may_probe_early(pricing.provider_state, timestamp with time zone) TO pricing_reader,
    pricing_worker;

-- Bytes that a provider sent in the last 24 and 168 hours, and the lower rate in bytes an hour; NULL = less than a day
-- was measured.
CREATE FUNCTION pricing.measured_rate(wanted_provider text, now_ timestamp with time zone, OUT day_bytes bigint, OUT
    week_bytes bigint, OUT per_hour double precision) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.measured_rate(text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Stores the actions of one call, with revisions where their provider corrects a day; what a person has removed stays
-- removed; returns how many rows changed.
CREATE FUNCTION pricing.merge_actions(wanted_type text, from_provider text, from_call bigint, actions jsonb,
    reported_symbols text[], reported_since date[], gains_reported text[] DEFAULT '{}'::text[]) RETURNS integer LANGUAGE
    plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.merge_actions(text,text,bigint,jsonb,text[],date[],text[]) TO pricing_worker;

-- Stores the bars of one symbol, given in the order of their days, as merge_prices does; returns how many were added
-- and revised.
CREATE FUNCTION pricing.merge_bars(wanted_type text, from_provider text, from_call bigint, wanted_symbol text,
    named_currency text, basis text, times timestamp with time zone[], amounts bigint[], open_amounts bigint[],
    high_amounts bigint[], low_amounts bigint[], scales smallint[], volumes numeric[], texts text[], qualities text[],
    OUT added bigint, OUT revised bigint) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp,
    plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.merge_bars(text, text, bigint, text, text, text, timestamp with time zone[], bigint[],
    bigint[], bigint[], bigint[], smallint[], numeric[], text[], text[]) TO pricing_worker;

-- Stores the list of commodities, and marks those missing from a complete list as vanished.
CREATE FUNCTION pricing.merge_commodities(from_call bigint, is_whole boolean, ids bigint[], names text[], codes text[],
    slugs text[], kinds text[], available boolean[], OUT added bigint, OUT revised bigint, OUT vanished bigint) RETURNS
    record LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.merge_commodities(bigint, boolean, bigint[], text[], text[], text[], text[],
    boolean[]) TO pricing_worker;

-- Stores one call's prices of some terminals, keeps old values as revisions, and returns for each terminal how many
-- were added and revised, and whether all were older than the stored ones.
CREATE FUNCTION pricing.merge_commodity_prices(from_provider text, from_call bigint, terminals text[], terminal_names
    text[], terminal_codes text[], whole boolean[], symbols text[], commodity_ids bigint[], qualities text[], names
    text[], codes text[], slugs text[], buys numeric[], sells numeric[], stocks bigint[], demands bigint[], versions
    text[], stamps timestamp with time zone[]) RETURNS TABLE(symbol text, added bigint, revised bigint, is_stale_source
    boolean) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.merge_commodity_prices(text, bigint, text[], text[], text[], boolean[], text[],
    bigint[], text[], text[], text[], text[], numeric[], numeric[], bigint[], bigint[], text[], timestamp with time
    zone[]) TO pricing_worker;

-- Stores one call's documents, keeps changed bodies as revisions, withdraws what a complete answer omits, and returns
-- for each symbol how many were added and revised.
CREATE FUNCTION pricing.merge_documents(wanted_type text, from_provider text, from_call bigint, answered text[], whole
    text[], symbols text[], periods date[], bodies jsonb[]) RETURNS TABLE(symbol text, added bigint, revised bigint)
    LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.merge_documents(text, text, bigint, text[], text[], text[], date[], jsonb[]) TO
    pricing_worker;

-- Merges one instrument into another of its class with everything stored, watched, held and set; where both have
-- something, the target's counts.
CREATE FUNCTION pricing.merge_instruments(of_class text, old_symbol text, new_symbol text) RETURNS TABLE(rows_of text,
    moved bigint, dropped bigint) LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=2s;
GRANT EXECUTE ON FUNCTION pricing.merge_instruments(text,text,text) TO pricing_worker;

-- Stores categories, places and prices of slots that are stored already, and returns the changed slots.
CREATE FUNCTION pricing.merge_offers(from_provider text, from_call bigint, now_ timestamp with time zone, days jsonb,
    slots jsonb, offers jsonb) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.merge_offers(text, bigint, timestamp with time zone, jsonb, jsonb, jsonb) TO
    pricing_worker;

-- Stores the categories that products list, marks those no longer listed, and returns the changed products.
CREATE FUNCTION pricing.merge_pax_categories(from_provider text, from_call bigint, now_ timestamp with time zone,
    categories jsonb) RETURNS text[] LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.merge_pax_categories(text,bigint,timestamp with time zone,jsonb) TO pricing_worker;

-- Stores one call's values in history and, for latest prices, in latest_prices, keeps old values as revisions, and
-- returns each symbol's outcome.
CREATE FUNCTION pricing.merge_prices(wanted_type text, from_provider text, from_call bigint, is_latest boolean, symbols
    text[], times timestamp with time zone[], amounts bigint[], open_amounts bigint[], high_amounts bigint[],
    low_amounts bigint[], scales smallint[], currencies text[], volumes numeric[], texts text[], adjustments text[],
    qualities text[] DEFAULT NULL::text[]) RETURNS TABLE(symbol text, added bigint, revised bigint, outcome text)
    LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.merge_prices(text, text, bigint, boolean, text[], timestamp with time zone[],
    bigint[], bigint[], bigint[], bigint[], smallint[], text[], numeric[], text[], text[], text[]) TO pricing_worker;

-- Stores the options that products list, marks those no longer listed, and returns the changed products.
CREATE FUNCTION pricing.merge_product_options(from_provider text, from_call bigint, now_ timestamp with time zone,
    options jsonb) RETURNS text[] LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.merge_product_options(text,bigint,timestamp with time zone,jsonb) TO pricing_worker;

-- Stores products from one call with their options and categories, keeps old values as revisions, and returns for each
-- symbol whether it is new or changed.
CREATE FUNCTION pricing.merge_products(wanted_type text, from_provider text, from_call bigint, answered text[], products
    jsonb, options jsonb, categories jsonb) RETURNS TABLE(symbol text, added bigint, revised bigint) LANGUAGE plpgsql
    SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.merge_products(text,text,bigint,text[],jsonb,jsonb,jsonb) TO pricing_worker;

-- Stores one call's slots of complete local days, keeps old values as revisions, marks missing ones as vanished, and
-- returns added and changed slots for each symbol.
CREATE FUNCTION pricing.merge_slots(wanted_type text, from_provider text, from_call bigint, days jsonb, slots jsonb,
    offers jsonb) RETURNS TABLE(symbol text, added bigint, revised bigint) LANGUAGE plpgsql SET search_path=pg_temp,
    plan_cache_mode=force_generic_plan, enable_seqscan=off, enable_mergejoin=off;
GRANT EXECUTE ON FUNCTION pricing.merge_slots(text,text,bigint,jsonb,jsonb,jsonb) TO pricing_worker;

-- Stores the list of terminals, which become instruments, and marks terminals missing from a complete list as vanished.
CREATE FUNCTION pricing.merge_terminals(from_call bigint, is_whole boolean, symbols text[], names text[], codes text[],
    systems text[], planets text[], moons text[], places text[], available boolean[], stamps timestamp with time zone[],
    OUT added bigint, OUT revised bigint, OUT vanished bigint) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.merge_terminals(bigint, boolean, text[], text[], text[], text[], text[], text[],
    text[], boolean[], timestamp with time zone[]) TO pricing_worker;

-- Which of these pairs a read finds missing or stale and not queued, without unknown, paused and refused ones.
CREATE FUNCTION pricing.missing_prices(INOUT data_types text[], INOUT symbols text[]) RETURNS record LANGUAGE plpgsql
    SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.missing_prices(text[],text[]) TO pricing_worker;

-- A pair's sessions without a value between two days, numbered among all its sessions, and why each has none.
CREATE FUNCTION pricing.missing_sessions(wanted_type text, wanted_symbol text, from_day date, to_day date) RETURNS
    TABLE(session date, nth bigint, kind text, detail text) LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.missing_sessions(text,text,date,date) TO pricing_reader, pricing_worker;

-- The fewest spans of days that a backfill must request: sessions without a final value, answer or task, each span
-- within what one call may ask.
CREATE FUNCTION pricing.missing_windows(wanted_type text, from_day date, to_day date, only_symbols text[] DEFAULT
    NULL::text[]) RETURNS TABLE(symbol text, first_day date, last_day date) LANGUAGE plpgsql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.missing_windows(text,date,date,text[]) TO pricing_reader, pricing_worker;

-- How often values of some months of a type were ever added, changed or taken out, except by a move to a file.
CREATE FUNCTION pricing.month_changes(wanted_type text, first_month date, last_month date) RETURNS TABLE(month date,
    changes bigint) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.month_changes(text,date,date) TO pricing_reader, pricing_worker;

-- All of a month's values of a type in the database, believed ones (until infinity) and revisions, by symbol and time.
CREATE FUNCTION pricing.month_versions(wanted_type text, wanted_month date) RETURNS SETOF pricing.price_revisions
    LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.month_versions(text,date) TO pricing_reader, pricing_worker;

-- Exported months older than their type keeps, and what keeps a month in the database: being_fetched, quarantined (a
-- person has to decide), or not_thinned.
CREATE FUNCTION pricing.months_to_move(only_type text DEFAULT NULL::text) RETURNS TABLE(data_type text, month date,
    versions bigint, keeps text) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.months_to_move(text) TO pricing_reader, pricing_worker;

-- How many TTLs old a price may get at most before its pair is queued, because TTLs are stretched.
CREATE FUNCTION pricing.most_stretched() RETURNS double precision LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.most_stretched() TO pricing_reader, pricing_worker;

-- The due pairs with the most viewers, as many as their providers' quotas have room for; NULL = none.
CREATE FUNCTION pricing.most_wanted(wanted_type text, provider text, room bigint, wanted text[], at_most integer,
    queued_until timestamp with time zone) RETURNS text[] LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.most_wanted(text, text, bigint, text[], integer, timestamp with time zone) TO
    pricing_worker;

-- Moves actions to the nearby day that their provider now names, with revisions; returns how many.
CREATE FUNCTION pricing.move_actions(wanted_class text, from_provider text, from_call bigint, actions jsonb,
    reported_symbols text[], reported_since date[]) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.move_actions(text,text,bigint,jsonb,text[],date[]) TO pricing_worker;

-- After the clock was set back, counts earlier calls against limits, quota and breaker for as long as before.
CREATE FUNCTION pricing.move_calls(now_ timestamp with time zone, step interval) RETURNS void LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.move_calls(timestamp with time zone,interval) TO pricing_worker;

-- After the clock was set back, moves drains by the step, and uncovers days that are still to come.
CREATE FUNCTION pricing.move_days(now_ timestamp with time zone, step interval) RETURNS void LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.move_days(timestamp with time zone,interval) TO pricing_worker;

-- Judges the pairs at these locked places of demand, decides and writes when each is due again, and returns the stale
-- ones with their viewers.
CREATE FUNCTION pricing.move_due(kind pricing.data_type_registry, now_ timestamp with time zone, places tid[], OUT
    symbols text[], OUT viewers integer[]) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.move_due(pricing.data_type_registry,timestamp with time zone,tid[]) TO pricing_worker;

-- Deletes the values of a month that the caller has compared with its file in this transaction, except the thirty
-- newest of each pair; returns how many.
CREATE FUNCTION pricing.move_month(wanted_type text, wanted_month date, verified bigint) RETURNS bigint LANGUAGE plpgsql
    SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.move_month(text,date,bigint) TO pricing_worker;

-- Moves the rows of one symbol to another, drops those whose key exists there in any of the tables, and counts both.
CREATE FUNCTION pricing.move_rows(from_tables text[], key text[], of_class text, old_symbol text, new_symbol text)
    RETURNS TABLE(rows_of text, moved bigint, dropped bigint) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.move_rows(text[],text[],text,text,text) TO pricing_worker;

-- After the clock was set back, moves all times that work waits for back by the step, or to now.
CREATE FUNCTION pricing.move_times(now_ timestamp with time zone, step interval) RETURNS void LANGUAGE plpgsql SET
    search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.move_times(timestamp with time zone,interval) TO pricing_worker;

-- Moved values as believed at a time (NULL = now), unless stored ones had replaced them by then.
CREATE FUNCTION pricing.moved_as_of(wanted_type text, wanted_symbol text, since timestamp with time zone, before
    timestamp with time zone, as_of timestamp with time zone, moved pricing.price_revisions[]) RETURNS SETOF
    pricing.price_revisions LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.moved_as_of(text, text, timestamp with time zone, timestamp with time zone, timestamp
    with time zone, pricing.price_revisions[]) TO pricing_reader, pricing_worker;

-- Days between two days for which a read needs a pair's moved values.
CREATE FUNCTION pricing.moved_spans(wanted_type text, wanted_symbol text, first_day date, last_day date, as_of timestamp
    with time zone, adjust text) RETURNS TABLE(first_day date, last_day date) LANGUAGE sql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.moved_spans(text, text, date, date, timestamp with time zone, text) TO pricing_reader,
    pricing_worker;

-- Adds options and categories that only slots have named so far, corrects names and ages of such categories, and lists
-- options again that have slots.
CREATE FUNCTION pricing.name_by_slots(from_provider text, from_call bigint, now_ timestamp with time zone, slots jsonb,
    offers jsonb) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.name_by_slots(text,bigint,timestamp with time zone,jsonb,jsonb) TO pricing_worker;

-- A symbol as somebody typed it, quoted if it cannot be one.
CREATE FUNCTION pricing.name_for_people(symbol text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.name_for_people(text) TO pricing_reader, pricing_worker;

-- What each provider is asked for at TTLs: watched or held pairs, units and bytes a minute while markets trade; bytes
-- an hour over the next week for what is watched and for the rest; and whether all sizes are measured.
CREATE FUNCTION pricing.needs() RETURNS TABLE(provider text, pairs bigint, units double precision, bytes double
    precision, watched_bytes double precision, background_bytes double precision, is_measured boolean) LANGUAGE plpgsql
    STABLE SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.needs() TO pricing_reader, pricing_worker;

-- The oldest acceptable time of an up-to-date source's newest value when it was asked; NULL = no session is known.
CREATE FUNCTION pricing.newest_expected(kind pricing.data_type_registry, wanted_symbol text, asked_at timestamp with
    time zone, ttl_minutes integer) RETURNS timestamp with time zone LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.newest_expected(pricing.data_type_registry, text, timestamp with time zone, integer)
    TO pricing_reader, pricing_worker;

-- The beginning of the next day in a time zone.
CREATE FUNCTION pricing.next_day(now_ timestamp with time zone, zone text) RETURNS timestamp with time zone LANGUAGE sql
    IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.next_day(timestamp with time zone,text) TO pricing_reader, pricing_worker;

-- The factor after this many seconds: it at most doubles in an hour, shrinks at once, and ignores changes of two
-- percent or less.
CREATE FUNCTION pricing.next_factor(before double precision, wanted double precision, elapsed double precision) RETURNS
    double precision LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.next_factor(double precision, double precision, double precision) TO pricing_reader,
    pricing_worker;

-- The part number of one more payment of a day.
CREATE FUNCTION pricing.next_part(wanted_class text, wanted_symbol text, day date, wanted_kind text) RETURNS smallint
    LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.next_part(text,text,date,text) TO pricing_reader, pricing_worker;

-- When an open breaker's next probe is made, sooner while a viewer waits (see may_probe_early).
CREATE FUNCTION pricing.next_probe_at(state pricing.provider_state) RETURNS timestamp with time zone LANGUAGE sql STABLE
    SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.next_probe_at(pricing.provider_state) TO pricing_reader, pricing_worker;

-- Locks the next quarantined value to ask a provider about, or the named one, or says why not.
CREATE FUNCTION pricing.next_to_ask(wanted_provider text, only_value bigint, OUT chosen pricing.quarantined_values, OUT
    refusal text) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.next_to_ask(text,bigint) TO pricing_worker;

-- When a value newer than the confirmed one should exist: a TTL later while the market is open, or when the next daily
-- value is published.
CREATE FUNCTION pricing.next_value_at(kind pricing.data_type_registry, wanted_symbol text, confirmed_at timestamp with
    time zone, ttl interval) RETURNS TABLE(at timestamp with time zone) LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.next_value_at(pricing.data_type_registry, text, timestamp with time zone, interval) TO
    pricing_reader, pricing_worker;

-- Stores which trading days an answer for these days lacked, so that they are requested again: those of the last 30
-- days, and those between the first and the last stored value.
CREATE FUNCTION pricing.note_absent_days(wanted_type text, wanted_symbol text, from_day date, to_day date) RETURNS void
    LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_absent_days(text,text,date,date) TO pricing_worker;

-- Records what rules have found, and ends alerts not seen for five minutes, unless their rule failed.
CREATE FUNCTION pricing.note_alerts(failed text[], seen jsonb) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_alerts(text[],jsonb) TO pricing_worker;

-- Records that a type's history has changed at these times.
CREATE FUNCTION pricing.note_changes(changed_type text, times timestamp with time zone[]) RETURNS void LANGUAGE sql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_changes(text,timestamp with time zone[]) TO pricing_worker;

-- Records that a claim has opened calls of a provider, the newest as its breaker's probe if it is one, and where the
-- next claim begins.
CREATE FUNCTION pricing.note_claim(wanted_provider text, allowed pricing.call_allowance, newest_call bigint) RETURNS
    void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_claim(text,pricing.call_allowance,bigint) TO pricing_worker;

-- Records everything of one kind that fails now, such as sensors; what is not named works again.
CREATE FUNCTION pricing.note_dagster_failures(failing jsonb, of_kind text DEFAULT 'tick'::text) RETURNS void LANGUAGE
    plpgsql SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.note_dagster_failures(jsonb,text) TO pricing_worker;

-- Records how the newest run of each name ended (reason NULL = it succeeded); waits at most a second for a locked row.
CREATE FUNCTION pricing.note_dagster_runs(runs jsonb) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp,
    lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.note_dagster_runs(jsonb) TO pricing_worker;

-- Records how a duty failed and until when it waits; skips a locked row.
CREATE FUNCTION pricing.note_duty(name text, failed_at timestamp with time zone, error text, until timestamp with time
    zone) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_duty(text, timestamp with time zone, text, timestamp with time zone) TO
    pricing_worker;

-- Records that a month's file has been written, and with how many digits.
CREATE FUNCTION pricing.note_export(wanted_type text, wanted_month date, in_file bigint, changes bigint, bytes bigint,
    digest text, price_whole integer, price_decimals integer, volume_whole integer, volume_decimals integer) RETURNS
    void LANGUAGE sql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_export(text, date, bigint, bigint, bigint, text, integer, integer, integer,
    integer) TO pricing_worker;

-- Records a failed attempt to reach a recipient: the third in a row opens its breaker for a minute, each failed probe
-- for twice as long, up to 16 minutes.
CREATE FUNCTION pricing.note_failing(of_type text, to_recipient text, message text, is_given_up boolean, opens_breaker
    boolean, retry_after interval) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_failing(text,text,text,boolean,boolean,interval) TO pricing_worker;

-- After the clock was set forward, or the pipeline was off, delays for a while what cannot be undone.
CREATE FUNCTION pricing.note_gap(now_ timestamp with time zone, known timestamp with time zone) RETURNS void LANGUAGE
    plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_gap(timestamp with time zone,timestamp with time zone) TO pricing_worker;

-- Records that an instrument's quarantined values were judged again with all actions known then.
CREATE FUNCTION pricing.note_judged(wanted_class text, wanted_symbol text, until timestamp with time zone) RETURNS void
    LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_judged(text,text,timestamp with time zone) TO pricing_worker;

-- Records how many latest values of a type have changed.
CREATE FUNCTION pricing.note_latest_changes(changed_type text, changes bigint) RETURNS void LANGUAGE sql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_latest_changes(text,bigint) TO pricing_worker;

-- Records that a part of the pipeline has started its work, or finished it in this many seconds; skips a locked row.
CREATE FUNCTION pricing.note_life(of_part text, took double precision DEFAULT NULL::double precision) RETURNS void
    LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=500ms;
GRANT EXECUTE ON FUNCTION pricing.note_life(text,double precision) TO pricing_worker;

-- Records sessions between two days with bars quarantined as closed_day, so that workers release these.
CREATE FUNCTION pricing.note_opened_days(wanted_calendar text, from_day date, to_day date, why text) RETURNS void
    LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_opened_days(text,date,date,text) TO pricing_worker;

-- Stores what another provider says about quarantined values, by symbol, or why it has none; ignores a call that a
-- later one has overtaken.
CREATE FUNCTION pricing.note_opinions(from_call bigint, asked_symbols text[], times timestamp with time zone[], amounts
    numeric[], currencies text[], adjustments text[], failures text[]) RETURNS void LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_opinions(bigint, text[], timestamp with time zone[], numeric[], text[], text[],
    text[]) TO pricing_worker;

-- Begins or prolongs an outage after trouble that others may share, or ends it after an answer.
CREATE FUNCTION pricing.note_outage(call pricing.collector_call_log, now_ timestamp with time zone) RETURNS void
    LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_outage(pricing.collector_call_log,timestamp with time zone) TO pricing_worker;

-- Records what one call says about stored days, and which of its bars are not final or have become final.
CREATE FUNCTION pricing.note_overlap(wanted_type text, from_provider text, from_call bigint, restated jsonb, symbols
    text[], times timestamp with time zone[]) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_overlap(text, text, bigint, jsonb, text[], timestamp with time zone[]) TO
    pricing_worker;

-- Trigger: signals, before tasks are added or reordered, that the first task of the next claim may be a different one.
TRIGGER FUNCTION pricing.note_queue_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp;

-- Counts the reader of pairs whose prices are missing or stale as a viewer until the read is served, and makes them
-- due; returns those pairs.
CREATE FUNCTION pricing.note_reads(INOUT data_types text[], INOUT symbols text[]) RETURNS record LANGUAGE plpgsql SET
    search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.note_reads(text[],text[]) TO pricing_worker;

-- Records how much has changed of what all types of a fetcher share, such as slots.
CREATE FUNCTION pricing.note_shared_changes(wanted_symbol text, of_fetcher text, changes bigint) RETURNS void LANGUAGE
    sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_shared_changes(text,text,bigint) TO pricing_worker;

-- Records which days an answer listed, and, if they begin today at the product, confirms its pairs and those of every
-- slot type that asks for no more days.
CREATE FUNCTION pricing.note_slot_windows(wanted_type text, from_provider text, from_call bigint, now_ timestamp with
    time zone, days jsonb) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_slot_windows(text,text,bigint,timestamp with time zone,jsonb) TO pricing_worker;

-- Records a start of the pipeline or a step of the clock, after which each part gets time to begin, but only once while
-- it keeps restarting without working.
CREATE FUNCTION pricing.note_start() RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_start() TO pricing_worker;

-- Records that the clock was set back and by how much to move times, and moves those of the duties so that they go on.
CREATE FUNCTION pricing.note_step(now_ timestamp with time zone, known timestamp with time zone, step interval) RETURNS
    void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_step(timestamp with time zone, timestamp with time zone, interval) TO
    pricing_worker;

-- Logs, after the given position, each new price of the streamed pairs and each change of freshness or its reason; the
-- caller has locked the head.
CREATE FUNCTION pricing.note_stream_events(head_position bigint, now_ timestamp with time zone) RETURNS bigint LANGUAGE
    plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.note_stream_events(bigint,timestamp with time zone) TO pricing_worker;

-- Stores by how much a provider's TTLs are stretched now, from the previous factor and what is needed and can be
-- sustained; returns whether it is less than before.
CREATE FUNCTION pricing.note_stretch(known pricing.ttl_stretches, wanted_provider text, watched double precision,
    background double precision, sustained double precision, projected_end timestamp with time zone, now_ timestamp with
    time zone) RETURNS boolean LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_stretch(pricing.ttl_stretches, text, double precision, double precision, double
    precision, timestamp with time zone, timestamp with time zone) TO pricing_worker;

-- Records that these tokens were just used.
CREATE FUNCTION pricing.note_token_uses(used bigint[]) RETURNS void LANGUAGE sql SECURITY DEFINER SET
    search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.note_token_uses(bigint[]) TO pricing_worker;

-- Records that pairs were viewed, at most every ten minutes for each; skips all if another session has locked one of
-- them.
CREATE FUNCTION pricing.note_views(data_types text[], symbols text[]) RETURNS void LANGUAGE plpgsql SET
    search_path=pg_temp, lock_timeout=100ms;
GRANT EXECUTE ON FUNCTION pricing.note_views(text[],text[]) TO pricing_worker;

-- Stores the calendars of the quotes watched at each provider with a limit of a calendar day, so that claims need not
-- find them; returns how many changed.
CREATE FUNCTION pricing.note_watched_calendars() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_watched_calendars() TO pricing_worker;

-- Numbers new changes, one process at a time; returns how many types and months have new versions.
CREATE FUNCTION pricing.number_changes() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.number_changes() TO pricing_worker;

-- Who a slot is for and what it costs, as believed at a time (NULL = now).
CREATE FUNCTION pricing.offers_as_of(wanted_slot bigint, as_of timestamp with time zone) RETURNS TABLE(category_key
    bigint, minimum integer, maximum integer, remaining integer, is_primary boolean, final_price bigint, original_price
    bigint, discount bigint, currency text, scale smallint) LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.offers_as_of(bigint,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Stops all calls to a provider for 60 s, doubling to 10 min with each failed probe; does nothing if another session
-- was quicker.
CREATE FUNCTION pricing.open_breaker(wanted_provider text, reason text, failed_probe bigint DEFAULT NULL::bigint)
    RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.open_breaker(text,text,bigint) TO pricing_worker;

-- Logs a call's next request as open, charged like its first; only under the lock of provider_state.
CREATE FUNCTION pricing.open_page(call pricing.collector_call_log, bytes bigint, now_ timestamp with time zone) RETURNS
    bigint LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.open_page(pricing.collector_call_log, bigint, timestamp with time zone) TO
    pricing_worker;

-- Providers to be asked about quarantined values now.
CREATE FUNCTION pricing.opinions_due() RETURNS TABLE(provider text) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.opinions_due() TO pricing_worker;

-- The options of a product, as believed at a time (NULL = now).
CREATE FUNCTION pricing.options_as_of(wanted_symbol text, as_of timestamp with time zone) RETURNS SETOF
    pricing.product_options LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.options_as_of(text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Whether each task of a failed call had failed before while the provider answered others of the data type, so that the
-- fault is its own.
CREATE FUNCTION pricing.others_were_answered(ids bigint[]) RETURNS boolean LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.others_were_answered(bigint[]) TO pricing_reader, pricing_worker;

-- When a day's next unit is free after more were used than its trading hours have released; NULL = not before they
-- release more.
CREATE FUNCTION pricing.overdrawn_at(hours tstzmultirange, until timestamp with time zone, units bigint, used bigint,
    last_at timestamp with time zone) RETURNS timestamp with time zone LANGUAGE plpgsql IMMUTABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.overdrawn_at(tstzmultirange, timestamp with time zone, bigint, bigint, timestamp with
    time zone) TO pricing_reader, pricing_worker;

-- Which of the products already have an answer from a later call.
CREATE FUNCTION pricing.overtaken_products(symbols text[], from_call bigint) RETURNS text[] LANGUAGE sql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.overtaken_products(text[],bigint) TO pricing_reader, pricing_worker;

-- The columns of a user's table for a data type, which part of a price fills each (NULL = none), and whether it is
-- required; no rows for a view.
CREATE FUNCTION pricing.own_columns(kind pricing.data_type_registry) RETURNS TABLE(name text, source text, is_needed
    boolean) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.own_columns(pricing.data_type_registry) TO pricing_reader, pricing_worker;

-- Makes a pair's own TTL take effect at the next staleness check.
TRIGGER FUNCTION pricing.own_ttl_changed() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- The pairs with their own TTL, each once, wherever it is stored: in a user's table, with the price, or in
-- confirmed_pairs.
CREATE FUNCTION pricing.own_ttls(only_types text[] DEFAULT NULL::text[], only_symbols text[] DEFAULT NULL::text[])
    RETURNS TABLE(data_type text, symbol text, ttl_minutes integer) LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.own_ttls(text[],text[]) TO pricing_reader, pricing_worker;

-- The name of a data type's view, unless its row names another table.
CREATE FUNCTION pricing.own_view(contents text, data_type text) RETURNS text LANGUAGE sql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.own_view(text,text) TO pricing_reader, pricing_worker;

-- When a key may use one more unit of a calendar day's limit than by now, to the minute.
CREATE FUNCTION pricing.paced_at(wanted pricing.provider_limits, key text, units bigint, now_ timestamp with time zone)
    RETURNS timestamp with time zone LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.paced_at(pricing.provider_limits, text, bigint, timestamp with time zone) TO
    pricing_reader, pricing_worker;

-- Units a minute that a limit allows while watched pairs trade; NULL = trading hours are unknown.
CREATE FUNCTION pricing.paced_rate(wanted pricing.provider_limits, units bigint, now_ timestamp with time zone) RETURNS
    double precision LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.paced_rate(pricing.provider_limits, bigint, timestamp with time zone) TO
    pricing_reader, pricing_worker;

-- The share of a day's units, 0.1 to 1, that may be used by a time of day, given the day's trading hours.
CREATE FUNCTION pricing.paced_share(hours tstzmultirange, since timestamp with time zone, until timestamp with time
    zone, at timestamp with time zone) RETURNS double precision LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.paced_share(tstzmultirange, timestamp with time zone, timestamp with time zone,
    timestamp with time zone) TO pricing_reader, pricing_worker;

-- How many units of a limit a key may have used by now: those of a calendar day come with the trading hours.
CREATE FUNCTION pricing.paced_units(wanted pricing.provider_limits, key text, units bigint, now_ timestamp with time
    zone) RETURNS bigint LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.paced_units(pricing.provider_limits, text, bigint, timestamp with time zone) TO
    pricing_reader, pricing_worker;

-- Why a call's next request may not be made now, when to ask again, and when it is too late; NULL = it may be made.
CREATE FUNCTION pricing.page_obstacle(call pricing.collector_call_log, state pricing.provider_state, ids bigint[],
    first_bytes bigint, page_bytes bigint, most_requests integer, until timestamp with time zone, now_ timestamp with
    time zone, OUT refusal text, OUT next_at timestamp with time zone, OUT again_at timestamp with time zone) RETURNS
    record LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.page_obstacle(pricing.collector_call_log, pricing.provider_state, bigint[], bigint,
    bigint, integer, timestamp with time zone, timestamp with time zone) TO pricing_worker;

-- The TTL of one pair in minutes, wherever it is stored; queries over many pairs join own_ttls and call ttl_of.
CREATE FUNCTION pricing.pair_ttl(wanted_type text, wanted_symbol text, is_watched boolean DEFAULT true) RETURNS integer
    LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.pair_ttl(text,text,boolean) TO pricing_reader, pricing_worker;

-- Who wants the pairs at these places of demand: viewers, or else whether somebody holds them, and whether they are
-- paused.
CREATE FUNCTION pricing.pairs_at(wanted_type text, wanted_class text, places tid[]) RETURNS TABLE(place tid, symbol
    text, is_owed boolean, viewers integer, is_paused boolean, is_held boolean) LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.pairs_at(text,text,tid[]) TO pricing_reader, pricing_worker;

-- Which of these pairs the user already watches or holds.
CREATE FUNCTION pricing.pairs_of_user(kind text, user_id text, data_types text[], symbols text[]) RETURNS
    TABLE(data_type text, symbol text) LANGUAGE plpgsql STABLE SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.pairs_of_user(text,text,text[],text[]) TO pricing_reader, pricing_worker;

-- Pairs of a data type that back off because of a provider's trouble that others may share: the kind, the first
-- failure, and the last request.
CREATE FUNCTION pricing.pairs_waiting_for(wanted_provider text, wanted_type text) RETURNS TABLE(symbol text,
    failure_kind text, failing_since timestamp with time zone, asked_at timestamp with time zone) LANGUAGE plpgsql
    STABLE SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.pairs_waiting_for(text,text) TO pricing_reader, pricing_worker;

-- Records that pairs were skipped because another session has locked them, or because finding those took too long.
CREATE FUNCTION pricing.pass_over(from_source text, data_type text, symbols text[]) RETURNS void LANGUAGE sql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.pass_over(text,text,text[]) TO pricing_worker;

-- How long after this many unfinished calls within a week the next may make pages: 5 min, doubling to a day; NULL = at
-- once.
CREATE FUNCTION pricing.pause_after(tries bigint) RETURNS interval LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.pause_after(bigint) TO pricing_reader, pricing_worker;

-- Pauses instruments, which cancels waiting tasks, or resumes them, which makes watched pairs due at once; returns the
-- instruments that exist, and which changed.
CREATE FUNCTION pricing.pause_instruments(symbols text[], paused boolean, only_class text DEFAULT NULL::text) RETURNS
    TABLE(asset_class text, symbol text, changed boolean) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.pause_instruments(text[],boolean,text) TO pricing_worker;

-- What is wrong with a payload by its type's fields; NULL = nothing.
CREATE FUNCTION pricing.payload_fault(fields jsonb, payload jsonb) RETURNS text LANGUAGE sql IMMUTABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.payload_fault(jsonb,jsonb) TO pricing_reader, pricing_worker;

-- For quotes the believed daily bars of the same UTC days, for daily bars the believed quotes, with the ratios of
-- splits around them.
CREATE FUNCTION pricing.peers(wanted_type text, symbols text[], first_times timestamp with time zone[], last_times
    timestamp with time zone[]) RETURNS TABLE(peer_symbol text, peer_at timestamp with time zone, peer_value numeric,
    peer_low numeric, peer_high numeric, peer_currency text, peer_type text, peer_is_bar boolean, peer_splits double
    precision[]) LANGUAGE plpgsql STABLE SET search_path=pg_temp, plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.peers(text, text[], timestamp with time zone[], timestamp with time zone[]) TO
    pricing_reader, pricing_worker;

-- Locks and returns the tasks of a claim, most urgent first: one for a probe, and in every tenth claim a backfill
-- first.
CREATE FUNCTION pricing.pick_for_claim(wanted_provider text, allowed pricing.call_allowance) RETURNS
    pricing.picked_task[] LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.pick_for_claim(text,pricing.call_allowance) TO pricing_worker;

-- The picked tasks, with more if the provider has a list of latest prices, the calls are full, and the last task asks
-- for such a price.
CREATE FUNCTION pricing.pick_for_list(wanted_provider text, allowed pricing.call_allowance, picked
    pricing.picked_task[]) RETURNS pricing.picked_task[] LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.pick_for_list(text,pricing.call_allowance,pricing.picked_task[]) TO pricing_worker;

-- Locks and returns the task that probes a provider: tried longest ago, a viewer's first, of the data type that failed
-- longest ago.
CREATE FUNCTION pricing.pick_probe(wanted_provider text, allowed pricing.call_allowance) RETURNS pricing.picked_task[]
    LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.pick_probe(text,pricing.call_allowance) TO pricing_worker;

-- Locks and returns the most urgent pending tasks of a provider, after a place in the claim's order (urgency =
-- -priority), that could be called alone now.
CREATE FUNCTION pricing.pick_tasks(wanted_provider text, allowed pricing.call_allowance, at_most integer, after_urgency
    integer, after_cadence integer, after_id bigint) RETURNS pricing.picked_task[] LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.pick_tasks(text, pricing.call_allowance, integer, integer, integer, bigint) TO
    pricing_worker;

-- Places a product's slots without an offset by its zone, from today on, as revisions; returns how many.
CREATE FUNCTION pricing.place_slots(wanted_symbol text, from_call bigint, now_ timestamp with time zone) RETURNS integer
    LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.place_slots(text,bigint,timestamp with time zone) TO pricing_worker;

-- The asset class that a symbol in capital letters obviously has: fx, crypto, fund or equity; NULL = not obvious.
CREATE FUNCTION pricing.plain_class(given text) RETURNS text LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.plain_class(text) TO pricing_reader, pricing_worker;

-- Queues one task for each instrument and gap that is neither covered nor queued; counts these, those already queued,
-- and the instruments left out.
CREATE FUNCTION pricing.plan_backfill(wanted_type text, from_day date, to_day date, only_symbols text[] DEFAULT
    NULL::text[], run text DEFAULT NULL::text, OUT backfill_id uuid, OUT tasks integer, OUT left_out jsonb) RETURNS
    record LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.plan_backfill(text,date,date,text[],text) TO pricing_worker;

-- The caps of one user.
CREATE FUNCTION pricing.present_caps() RETURNS pricing.user_caps LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.present_caps() TO pricing_reader, pricing_worker;

-- The newest known price of a symbol in each of its data types, with times and freshness; queues what is missing or
-- stale, and never waits.
CREATE FUNCTION pricing.price(wanted_symbol text) RETURNS TABLE(data_type text, symbol text, price numeric, currency
    text, observed_at timestamp with time zone, fetched_at timestamp with time zone, fresh boolean, provider text,
    provider_active boolean, frozen_since timestamp with time zone) LANGUAGE plpgsql SECURITY DEFINER SET
    search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.price(text) TO pricing_client, pricing_reader, pricing_worker;

-- A pair's values between two UTC days, both included, oldest first, with their lineage, as believed at a time (NULL =
-- now); those of files are in moved.
CREATE FUNCTION pricing.prices_as_of(wanted_type text, wanted_symbol text, first_day date, last_day date, as_of
    timestamp with time zone DEFAULT NULL::timestamp with time zone, moved pricing.price_revisions[] DEFAULT
    NULL::pricing.price_revisions[]) RETURNS TABLE(observed_at timestamp with time zone, amount bigint, open_amount
    bigint, high_amount bigint, low_amount bigint, scale smallint, currency text, volume numeric, adjustment text,
    provider text, call_id bigint, recorded_at timestamp with time zone, quality text) LANGUAGE plpgsql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.prices_as_of(text, text, date, date, timestamp with time zone,
    pricing.price_revisions[]) TO pricing_reader, pricing_worker;

-- Prices of pairs, or of symbols in every data type of prices, in the form of the HTTP API, and which of them a read
-- must request; writes nothing.
CREATE FUNCTION pricing.prices_to_read(symbols text[], data_types text[], OUT prices json, OUT missing json, OUT known
    bigint[], OUT stale_types text[], OUT stale_symbols text[], OUT unseen_types text[], OUT unseen_symbols text[])
    RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp, plan_cache_mode=force_generic_plan,
    enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.prices_to_read(text[],text[]) TO pricing_reader, pricing_worker;

-- Requests one task or pair that a viewer waits for ahead of its pause, the one requested longest ago (by chance among
-- equals), unless one is about to be requested.
CREATE FUNCTION pricing.probe_outage(down pricing.outages) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.probe_outage(pricing.outages) TO pricing_worker;

-- How many sessions that each queue as much as one must fit into a quota together, so that one need not look at the
-- others.
CREATE FUNCTION pricing.producers_beside_each_other() RETURNS integer LANGUAGE plpgsql IMMUTABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.producers_beside_each_other() TO pricing_reader, pricing_worker;

-- The local day of a product at a time (NULL = now), or the UTC day if its zone is unknown.
CREATE FUNCTION pricing.product_day(wanted_symbol text, at timestamp with time zone DEFAULT NULL::timestamp with time
    zone) RETURNS date LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.product_day(text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Makes tasks pending whose pause is over.
CREATE FUNCTION pricing.promote_tasks() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.promote_tasks() TO pricing_worker;

-- Why a provider may not be asked for a call's next request now, apart from its limits, and when that ends; NULL = it
-- may.
CREATE FUNCTION pricing.provider_obstacle(call pricing.collector_call_log, state pricing.provider_state, now_ timestamp
    with time zone, OUT refusal text, OUT next_at timestamp with time zone) RETURNS record LANGUAGE plpgsql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.provider_obstacle(pricing.collector_call_log, pricing.provider_state, timestamp with
    time zone) TO pricing_reader, pricing_worker;

-- Forgets refusals for the pairs routed to a changed provider, ends their back-off, and reroutes waiting tasks.
TRIGGER FUNCTION pricing.provider_switched() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- How much of a provider is used, exact only under the lock of its state: calls in flight of all workers, with one for
-- a call that waits for a page (except the named one), and bytes as in bytes_used.
CREATE FUNCTION pricing.provider_use(state pricing.provider_state, now_ timestamp with time zone, own_call bigint
    DEFAULT NULL::bigint) RETURNS TABLE(calls integer, bytes bigint) LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.provider_use(pricing.provider_state, timestamp with time zone, bigint) TO
    pricing_reader, pricing_worker;

-- Deletes what is past its retention, and skips what is in use; returns how many rows outside leaves.
CREATE FUNCTION pricing.prune() RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.prune() TO pricing_worker;

-- Deletes calls after 35 days, 50,000 of each provider at a time; past_calls keeps who made the answered ones; returns
-- how many.
CREATE FUNCTION pricing.prune_calls() RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp,
    lock_timeout=100ms, enable_seqscan=off, enable_hashjoin=off;
GRANT EXECUTE ON FUNCTION pricing.prune_calls() TO pricing_worker;

-- Deletes tasks that finished more than 14 days ago from a leaf in which others may be finishing now.
CREATE FUNCTION pricing.prune_leaf(leaf text, now_ timestamp with time zone) RETURNS void LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.prune_leaf(text,timestamp with time zone) TO pricing_worker;

-- Deletes decided values after 90 days, undecided ones after 400 or beyond 1,000 of a quoted pair, and bodies after 90
-- days or beyond 100 MB of a provider; returns how many values.
CREATE FUNCTION pricing.prune_quarantine() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.prune_quarantine() TO pricing_worker;

-- How long after the close a pair's daily value should be there: as learned, or as usual.
CREATE FUNCTION pricing.publish_lag(wanted_type text, wanted_symbol text, fetcher text) RETURNS TABLE(lag interval)
    LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.publish_lag(text,text,text) TO pricing_reader, pricing_worker;

-- Stores one call's values that are not believed, and its body if one of them is new; returns how many are new.
CREATE FUNCTION pricing.quarantine(wanted_type text, from_provider text, from_call bigint, doubted jsonb, packed bytea,
    body_size integer, status_code integer) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.quarantine(text,text,bigint,jsonb,bytea,integer,integer) TO pricing_worker;

-- Quarantines again what a recognized change of face value released, when a person removes it; returns how many.
CREATE FUNCTION pricing.quarantine_face_value(change pricing.corporate_actions) RETURNS integer LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.quarantine_face_value(pricing.corporate_actions) TO pricing_worker;

-- A provider's live tasks other than backfills, counted up to a limit.
CREATE FUNCTION pricing.queue_depth(wanted_provider text, at_most integer) RETURNS integer LANGUAGE sql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.queue_depth(text,integer) TO pricing_reader, pricing_worker;

-- Queues a side effect of an active or inactive type; refuses a payload that does not fit or exceeds 64 kB, and a time
-- more than a year ahead.
CREATE FUNCTION pricing.queue_operation(kind pricing.operation_types, payload jsonb, due_at timestamp with time zone,
    priority integer) RETURNS bigint LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.queue_operation(pricing.operation_types, jsonb, timestamp with time zone, integer) TO
    pricing_worker;

-- The bytes that may still be queued for a provider at this priority beside what waits; NULL = this many more bytes
-- fit.
CREATE FUNCTION pricing.queue_room(wanted_provider text, least_priority integer, more_bytes bigint) RETURNS bigint
    LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.queue_room(text,integer,bigint) TO pricing_worker;

-- Queues stale pairs whose demand is locked: at the one provider of all of them, or (NULL) each at its own, as far as
-- quotas have room; returns how many tasks are new.
CREATE FUNCTION pricing.queue_stale(kind pricing.data_type_registry, symbols text[], viewers integer[], provider text,
    est_bytes bigint) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.queue_stale(pricing.data_type_registry, text[], integer[], text, bigint) TO
    pricing_worker;

-- When a recipient's present quiet hours end; NULL = it has none now.
CREATE FUNCTION pricing.quiet_end(who pricing.recipients, now_ timestamp with time zone) RETURNS timestamp with time
    zone LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.quiet_end(pricing.recipients, timestamp with time zone) TO pricing_reader,
    pricing_worker;

-- The share of a quota that work of this priority may use: backfills 75 %, schedules 90 %, the rest 95 %.
CREATE FUNCTION pricing.quota_for(quota bigint, priority integer) RETURNS bigint LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.quota_for(bigint,integer) TO pricing_reader, pricing_worker;

-- When each active provider's quota reaches the steps of backfills, schedules and viewers without stretching, by the
-- larger of what is wanted and measured (basis); outlook: ends, lasts or unknown.
CREATE FUNCTION pricing.quota_forecasts(only_providers text[] DEFAULT NULL::text[]) RETURNS TABLE(provider text,
    quota_bytes bigint, used_bytes bigint, day_bytes bigint, week_bytes bigint, pairs bigint, watched_bytes double
    precision, background_bytes double precision, basis text, bytes_an_hour double precision, outlook text,
    backfills_stop_at timestamp with time zone, schedules_stop_at timestamp with time zone, ends_at timestamp with time
    zone, sustained_bytes double precision) LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.quota_forecasts(text[]) TO pricing_reader, pricing_worker;

-- Raises live tasks to a higher priority; skips locked ones.
CREATE FUNCTION pricing.raise_priorities(ids bigint[], priorities integer[]) RETURNS void LANGUAGE plpgsql SET
    search_path=pg_temp, enable_seqscan=off, enable_nestloop=off, jit=off, lock_timeout=100ms;
GRANT EXECUTE ON FUNCTION pricing.raise_priorities(bigint[],integer[]) TO pricing_worker;

-- Raises waiting tasks to the number of their viewers.
CREATE FUNCTION pricing.raise_tasks(data_types text[], symbols text[]) RETURNS void LANGUAGE sql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.raise_tasks(text[],text[]) TO pricing_worker;

-- The stored exchange rate of a day, as believed at a time (NULL = now), from the pair or its inverse; NULL = none.
-- Moved rates are in moved.
CREATE FUNCTION pricing.rate_of_day(from_currency text, to_currency text, day date, as_of timestamp with time zone
    DEFAULT NULL::timestamp with time zone, moved pricing.price_revisions[] DEFAULT '{}'::pricing.price_revisions[])
    RETURNS numeric LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.rate_of_day(text, text, date, timestamp with time zone, pricing.price_revisions[]) TO
    pricing_reader, pricing_worker;

-- The rates of some days by source, in columns without an order, as believed at a time (NULL = now), and whether some
-- have moved to files; those are in moved.
CREATE FUNCTION pricing.rates_between(from_currency text, to_currency text, of_days boolean, first_day date, last_day
    date, as_of timestamp with time zone, moved pricing.price_revisions[]) RETURNS TABLE(data_type text, symbol text,
    has_moved boolean, is_inverse boolean, times bytea, amounts bytea, scales bytea) LANGUAGE plpgsql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.rates_between(text, text, boolean, date, date, timestamp with time zone,
    pricing.price_revisions[]) TO pricing_reader, pricing_worker;

-- When used bytes reach a step of a quota at this hourly rate, to the hour; NULL = never, because what is used now has
-- left after 721 hours.
CREATE FUNCTION pricing.reached_at(leaving bigint[], used bigint, per_hour double precision, step bigint, now_ timestamp
    with time zone) RETURNS timestamp with time zone LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.reached_at(bigint[], bigint, double precision, bigint, timestamp with time zone) TO
    pricing_reader, pricing_worker;

-- Values of some pairs from files, as revisions; a value that is still believed has no end.
CREATE FUNCTION pricing.read_moved(found jsonb) RETURNS pricing.price_revisions[] LANGUAGE sql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.read_moved(jsonb) TO pricing_reader, pricing_worker;

-- The two sides of an obvious pair, in capital letters: EUR/USD, EURUSD, EUR.USD, EURUSD=X, BTC-USD; NULL = not a pair.
CREATE FUNCTION pricing.read_pair(given text, OUT base text, OUT quote text) RETURNS record LANGUAGE plpgsql IMMUTABLE
    SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.read_pair(text) TO pricing_reader, pricing_worker;

-- The complete JSON answer to a read of pairs or symbols; requests what is missing or stale within the user's caps
-- (NULL = as a worker); NULL if only_type is not an active data type of prices.
CREATE FUNCTION pricing.read_prices(symbols text[], data_types text[], only_type text, user_id text) RETURNS text
    LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.read_prices(text[],text[],text,text) TO pricing_worker;

-- The canonical spelling of a share from any spelling in capital letters that our table of exchanges knows, with
-- doubts; or why it has none, with a proposal.
CREATE FUNCTION pricing.read_share(given text, OUT symbol text, OUT doubt text, OUT fault text, OUT proposal text)
    RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.read_share(text) TO pricing_reader, pricing_worker;

-- The canonical spelling of a symbol of an asset class, known or not, with doubts; or why there is none, with a
-- proposal.
CREATE FUNCTION pricing.read_symbol(asset_class text, given text, OUT symbol text, OUT doubt text, OUT fault text, OUT
    other_class text, OUT proposal text) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.read_symbol(text,text) TO pricing_reader, pricing_worker;

-- Recent warnings by source and subject: minimum number, last time and last message.
CREATE FUNCTION pricing.recent_warnings(back interval) RETURNS TABLE(source text, subject text, times bigint, last_at
    timestamp with time zone, sqlstate text, message text) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.recent_warnings(interval) TO pricing_reader, pricing_worker;

-- Makes pairs due whose own tables, TTLs, stretches or pauses changed unnoticed; returns how many are due earlier.
CREATE FUNCTION pricing.reconcile_demand() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.reconcile_demand() TO pricing_worker;

-- Takes back operations whose worker has been silent for five minutes, except the caller's own; returns how many.
CREATE FUNCTION pricing.recover_operations(known bigint[] DEFAULT '{}'::bigint[]) RETURNS integer LANGUAGE plpgsql SET
    search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.recover_operations(bigint[]) TO pricing_worker;

-- Takes tasks back from workers whose lease ran out, or buries those without an attempt left; returns how many.
CREATE FUNCTION pricing.recover_tasks() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.recover_tasks() TO pricing_worker;

-- Requests again bars that were stored before their day was over, trading days that answers lacked, and restated
-- histories; returns how many.
CREATE FUNCTION pricing.refetch_history() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.refetch_history() TO pricing_worker;

-- Plans a backfill of all days of a pair since its first, covered or not; returns 1, or 0 with a warning.
CREATE FUNCTION pricing.refetch_whole(wanted_type text, wanted_symbol text, from_day date) RETURNS integer LANGUAGE
    plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.refetch_whole(text,text,date) TO pricing_worker;

-- What refetch_history has to request, with provider and bytes, and what prevents it: retired, no_history, paused or
-- no_provider.
CREATE FUNCTION pricing.refetches() RETURNS TABLE(data_type text, symbol text, from_day date, to_day date, is_history
    boolean, since timestamp with time zone, provider text, est_bytes bigint, waits_for text) LANGUAGE plpgsql STABLE
    SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.refetches() TO pricing_reader, pricing_worker;

-- Wanted symbols that a provider refuses, by data type; is_fault if enough are suddenly refused that the provider must
-- be wrong.
CREATE FUNCTION pricing.refused_symbols() RETURNS TABLE(provider text, data_type text, refused bigint, vanished bigint,
    is_fault boolean, example text, reason text) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.refused_symbols() TO pricing_reader, pricing_worker;

-- Records which keys a worker has, and adds rows for new ones; returns how many are new.
CREATE FUNCTION pricing.register_keys(wanted_provider text, names text[]) RETURNS integer LANGUAGE plpgsql SECURITY
    DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.register_keys(text,text[]) TO pricing_worker;

-- Counts the change, so that the sensor reloads the code location.
TRIGGER FUNCTION pricing.registry_changed() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Closes holdings, so that pairs that nobody else wants are no longer fetched; returns how many were open.
CREATE FUNCTION pricing.release(user_id text, data_types text[], symbols text[]) RETURNS integer LANGUAGE plpgsql SET
    search_path=pg_temp, lock_timeout=2s;
GRANT EXECUTE ON FUNCTION pricing.release(text,text[],text[]) TO pricing_worker;

-- Says that the session's user no longer holds these pairs; returns how many holdings ended.
CREATE FUNCTION pricing.release(data_types text[], symbols text[]) RETURNS integer LANGUAGE sql SECURITY DEFINER SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.release(text[],text[]) TO pricing_client, pricing_worker;

-- Removes the split or spin-off of a day, or its payments of one kind, and refuses the provider's next report of it;
-- returns removed or unknown.
CREATE FUNCTION pricing.remove_action(wanted_class text, wanted_symbol text, day date, wanted_kind text, by_whom text,
    why text DEFAULT NULL::text, of_currency text DEFAULT NULL::text) RETURNS text LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.remove_action(text,text,date,text,text,text,text) TO pricing_worker;

-- Deletes a stored key and deactivates its name; false = none is stored.
CREATE FUNCTION pricing.remove_credential(wanted_provider text, wanted_key text) RETURNS boolean LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.remove_credential(text,text) TO pricing_worker;

-- Removes instruments without history and retires the others, ends their subscriptions, holdings and tasks, and counts
-- the users concerned.
CREATE FUNCTION pricing.remove_instruments(symbols text[], only_class text DEFAULT NULL::text) RETURNS TABLE(asset_class
    text, symbol text, outcome text, viewers bigint, holders bigint) LANGUAGE plpgsql SECURITY DEFINER SET
    search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.remove_instruments(text[],text) TO pricing_worker;

-- Makes pairs due again that wait for a task that does not exist: all pairs, or those in the lists.
CREATE FUNCTION pricing.repair_demand(data_types text[] DEFAULT NULL::text[], symbols text[] DEFAULT NULL::text[])
    RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.repair_demand(text[],text[]) TO pricing_worker;

-- Asks workers to serve pairs once this transaction commits, without a lock that anybody waits for.
CREATE FUNCTION pricing.request_pairs(wanted_kind text, data_types text[], symbols text[], user_id text DEFAULT
    NULL::text) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.request_pairs(text,text[],text[],text) TO pricing_worker;

-- Queues, for a worker's read, the pairs that are missing or stale, as for one viewer, and refuses what names no active
-- pairs; returns the number queued.
CREATE FUNCTION pricing.request_prices(data_types text[], symbols text[]) RETURNS integer LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.request_prices(text[],text[]) TO pricing_worker;

-- Asks workers to serve a client's read within its user's caps; a notice says what was left out.
CREATE FUNCTION pricing.request_reads(user_id text, data_types text[], symbols text[]) RETURNS void LANGUAGE plpgsql SET
    search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.request_reads(text,text[],text[]) TO pricing_worker;

-- Does what note_views does, by request.
CREATE FUNCTION pricing.request_views(data_types text[], symbols text[]) RETURNS void LANGUAGE sql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.request_views(text[],text[]) TO pricing_worker;

-- Refuses a read of days with moved values if the caller did not supply these.
CREATE FUNCTION pricing.require_moved(wanted_type text, wanted_symbol text, first_day date, last_day date, moved
    pricing.price_revisions[]) RETURNS void LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.require_moved(text, text, date, date, pricing.price_revisions[]) TO pricing_reader,
    pricing_worker;

-- Refuses a total return between two days if payments between them cannot be counted, and lists these.
CREATE FUNCTION pricing.require_payments(wanted_symbol text, first_day date, last_day date, lacks jsonb) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.require_payments(text,date,date,jsonb) TO pricing_reader, pricing_worker;

-- Refuses a read replica before anything is half done.
CREATE FUNCTION pricing.require_primary() RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.require_primary() TO pricing_worker;

-- Gives a data type's waiting tasks to the provider that their route names now, with a note in their history; returns
-- how many.
CREATE FUNCTION pricing.reroute_tasks(wanted_type text, symbols text[] DEFAULT NULL::text[]) RETURNS integer LANGUAGE
    plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.reroute_tasks(text,text[]) TO pricing_worker;

-- Gives waiting tasks to the provider that their route names now; returns how many.
CREATE FUNCTION pricing.reroute_waiting() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.reroute_waiting() TO pricing_worker;

-- Marks dead tasks as resolved: of removed instruments, or followed by a success or the same failure; returns how many.
CREATE FUNCTION pricing.resolve_tasks() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.resolve_tasks() TO pricing_worker;

-- Cancels the tasks of data types that were retired or deleted, except for locked ones; returns how many.
CREATE FUNCTION pricing.retire_tasks() RETURNS integer LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.retire_tasks() TO pricing_worker;

-- Queues dead operations again with all attempts and the same idempotency key, and closes their recipients' breakers;
-- returns their ids.
CREATE FUNCTION pricing.retry_operations(ids bigint[]) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp,
    lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.retry_operations(bigint[]) TO pricing_worker;

-- Queues dead tasks again by hand, by their current route, ends their pairs' back-off, and returns each outcome.
CREATE FUNCTION pricing.retry_tasks(wanted bigint[]) RETURNS TABLE(task_id bigint, outcome text, live_id bigint)
    LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.retry_tasks(bigint[]) TO pricing_worker;

-- Returns a stopping worker's operations, due at once and without counting the attempt; returns the ids that the claim
-- still owned.
CREATE FUNCTION pricing.return_operations(ids bigint[], token uuid) RETURNS bigint[] LANGUAGE plpgsql SET
    search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.return_operations(bigint[],uuid) TO pricing_worker;

-- Returns claimed tasks to the queue without costing an attempt, at once or after a pause; a locked task returns when
-- its lease ends; returns how many.
CREATE FUNCTION pricing.return_tasks(ids bigint[], token uuid, kind text DEFAULT 'worker_stopped'::text, message text
    DEFAULT 'returned by its worker'::text, pause interval DEFAULT NULL::interval) RETURNS integer LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.return_tasks(bigint[],uuid,text,text,interval) TO pricing_worker;

-- Makes everything due that has failed since an outage began, because the provider answers again; returns how many
-- pairs and tasks.
CREATE FUNCTION pricing.return_waiting(over pricing.outages) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.return_waiting(pricing.outages) TO pricing_worker;

-- Does merge_bars's work where bars of these days are stored: keeps changed values as revisions, and adds new ones.
CREATE FUNCTION pricing.revise_bars(wanted_type text, from_provider text, from_call bigint, wanted_symbol text,
    named_currency text, basis text, times timestamp with time zone[], amounts bigint[], open_amounts bigint[],
    high_amounts bigint[], low_amounts bigint[], scales smallint[], volumes numeric[], texts text[], qualities text[],
    OUT added bigint, OUT revised bigint) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp, enable_nestloop=off;
GRANT EXECUTE ON FUNCTION pricing.revise_bars(text, text, bigint, text, text, text, timestamp with time zone[],
    bigint[], bigint[], bigint[], bigint[], smallint[], numeric[], text[], text[]) TO pricing_worker;

-- Former rows of a table between two keys or beginnings of keys, both included, that were believed at a time.
CREATE FUNCTION pricing.revisions_as_of(wanted_kind text, first_key text[], last_key text[], as_of timestamp with time
    zone) RETURNS SETOF jsonb LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.revisions_as_of(text, text[], text[], timestamp with time zone) TO pricing_reader,
    pricing_worker;

-- Queues locked dead tasks again by their current route, the last of several for the same work; returns these, NULL =
-- none.
CREATE FUNCTION pricing.revive_tasks(wanted bigint[]) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.revive_tasks(bigint[]) TO pricing_worker;

-- How many more pairs a user's reads may have fetched now, given this many that already wait.
CREATE FUNCTION pricing.room_for_reads(user_id text, waiting bigint) RETURNS bigint LANGUAGE plpgsql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.room_for_reads(text,bigint) TO pricing_reader, pricing_worker;

-- The provider to ask for a pair, by the symbol's rules and then the type's, first one that is not in trouble and has
-- not refused it, with why earlier ones were skipped; NULL = no active provider serves it.
CREATE FUNCTION pricing.route(wanted_type text, wanted_symbol text, OUT provider text, OUT passed_over jsonb) RETURNS
    record LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.route(text,text) TO pricing_reader, pricing_worker;

-- Ends the back-off of the pairs of a changed rule, and reroutes their waiting tasks.
TRIGGER FUNCTION pricing.route_changed() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Pairs of active data types, each once, with the provider to ask (NULL = none) and the bytes of the answer.
CREATE FUNCTION pricing.routed_pairs(data_types text[], symbols text[], priorities integer[], window_starts date[],
    window_ends date[]) RETURNS TABLE(data_type text, symbol text, window_start date, window_end date, priority integer,
    cadence_minutes integer, provider text, est_bytes bigint) LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.routed_pairs(text[],text[],integer[],date[],date[]) TO pricing_reader, pricing_worker;

-- Runs overdue duties, one process at a time, and returns the names of those that succeeded.
CREATE FUNCTION pricing.run_duties() RETURNS text[] LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.run_duties() TO pricing_worker;

-- The local days that an answer lists in full, except those that a later call has listed already.
CREATE FUNCTION pricing.said_days(from_call bigint, days jsonb) RETURNS TABLE(symbol text, day date) LANGUAGE sql
    STABLE;
GRANT EXECUTE ON FUNCTION pricing.said_days(bigint,jsonb) TO pricing_reader, pricing_worker;

-- The slots of an answer, numbered; offsets from UTC are in seconds.
CREATE FUNCTION pricing.said_slots(slots jsonb) RETURNS TABLE(n integer, symbol text, option_id text, slot_id text,
    local_start timestamp without time zone, local_end timestamp without time zone, utc_offset integer, end_utc_offset
    integer, bookable_until timestamp with time zone, status text, remaining integer, capacity integer, currency text,
    scale smallint) LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.said_slots(jsonb) TO pricing_reader, pricing_worker;

-- Whether two sources report the same action of a day, however they spell it.
CREATE FUNCTION pricing.same_action(one pricing.corporate_actions, other pricing.corporate_actions) RETURNS boolean
    LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.same_action(pricing.corporate_actions, pricing.corporate_actions) TO pricing_reader,
    pricing_worker;

-- Compares by value: 12.30 is 12.300.
CREATE FUNCTION pricing.same_amount(a bigint, a_scale smallint, b bigint, b_scale smallint) RETURNS boolean LANGUAGE sql
    IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.same_amount(bigint,smallint,bigint,smallint) TO pricing_reader, pricing_worker;

-- Whether a value equals the stored one in all parts.
CREATE FUNCTION pricing.same_bar(old pricing.price_history, amount bigint, open_amount bigint, high_amount bigint,
    low_amount bigint, scale smallint, volume numeric, currency text, quality text) RETURNS boolean LANGUAGE sql
    IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.same_bar(pricing.price_history, bigint, bigint, bigint, bigint, smallint, numeric,
    text, text) TO pricing_reader, pricing_worker;

-- Whether a part of a bar equals the stored one; a dropped part counts as equal.
CREATE FUNCTION pricing.same_part(old bigint, old_scale smallint, given bigint, given_scale smallint, quality text)
    RETURNS boolean LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.same_part(bigint,smallint,bigint,smallint,text) TO pricing_reader, pricing_worker;

-- Records how each watched type serves its viewers now; returns how many types.
CREATE FUNCTION pricing.sample_freshness() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.sample_freshness() TO pricing_worker;

-- Reserves units for the most urgent task that has waited a minute for more than are left, during two of every five
-- minutes; otherwise cheaper tasks would use each unit that comes free.
CREATE FUNCTION pricing.save_units(wanted_provider text, allowed pricing.call_allowance) RETURNS pricing.call_allowance
    LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.save_units(text,pricing.call_allowance) TO pricing_reader, pricing_worker;

-- A sentence that says why a pair is doubtful or refused; NULL = it is neither.
CREATE FUNCTION pricing.say_answer(answer pricing.pair_answer) RETURNS text LANGUAGE sql IMMUTABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.say_answer(pricing.pair_answer) TO pricing_reader, pricing_worker;

-- A proposal of judge_symbols as a question; NULL = none.
CREATE FUNCTION pricing.say_meant(proposal text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.say_meant(text) TO pricing_reader, pricing_worker;

-- Slots from before a type had this schedule, or while it was retired, are not owed.
TRIGGER FUNCTION pricing.schedule_changed() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- How many instruments of a data type a schedule may queue now at each provider (at most 500), and if none, why and
-- whether that is trouble.
CREATE FUNCTION pricing.schedule_rooms(wanted_type text) RETURNS TABLE(provider text, room integer, reason text,
    is_trouble boolean) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.schedule_rooms(text) TO pricing_worker;

-- The most instruments of a data type that a schedule may queue now at one provider, and why some or all of its
-- providers can take none.
CREATE FUNCTION pricing.schedule_stop(wanted_type text, OUT room integer, OUT reason text, OUT is_trouble boolean)
    RETURNS record LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.schedule_stop(text) TO pricing_worker;

-- The next provider of a pair's routes that serves a value, other than its sender; NULL = none.
CREATE FUNCTION pricing.second_provider(wanted_type text, wanted_symbol text, besides text) RETURNS text LANGUAGE
    plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.second_provider(text,text,text) TO pricing_reader, pricing_worker;

-- Serves requests of one kind: adds demand, queues what is missing or stale, records views, skips locked pairs; returns
-- the number queued.
CREATE FUNCTION pricing.serve_pairs(kind text, data_types text[], symbols text[]) RETURNS integer LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.serve_pairs(text,text[],text[]) TO pricing_worker;

-- Serves at most this many client requests, reads within their user's caps, and skips those that another session is
-- serving; returns the number queued.
CREATE FUNCTION pricing.serve_requests(at_most integer DEFAULT 5000) RETURNS integer LANGUAGE plpgsql SET
    search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.serve_requests(integer) TO pricing_worker;

-- Sessions between two days that had ended by a time and have no final value of a pair.
CREATE FUNCTION pricing.sessions_to_ask(wanted_type text, wanted_symbol text, wanted_calendar text, from_day date,
    to_day date, at timestamp with time zone) RETURNS SETOF date LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.sessions_to_ask(text, text, text, date, date, timestamp with time zone) TO
    pricing_reader, pricing_worker;

-- Sets a product's time zone by hand (NULL undoes it) and moves its coming slots; returns how many, NULL if there is no
-- such product.
CREATE FUNCTION pricing.set_product_zone(wanted_symbol text, zone text) RETURNS integer LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.set_product_zone(text,text) TO pricing_worker;

-- Closes a call and its open page, and books its wire bytes, once; false when it was closed before. What the call says
-- about its provider counts if its claim still owned a task (is_owned).
CREATE FUNCTION pricing.settle_call(settled bigint, result text, status integer, bytes bigint, message text DEFAULT
    NULL::text, kind text DEFAULT NULL::text, is_owned boolean DEFAULT false, stated_left integer DEFAULT NULL::integer,
    shown_units integer DEFAULT NULL::integer, shown_seconds integer DEFAULT NULL::integer, without_length boolean
    DEFAULT false) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp, lock_timeout=500ms;
GRANT EXECUTE ON FUNCTION pricing.settle_call(bigint, text, integer, bigint, text, text, boolean, integer, integer,
    integer, boolean) TO pricing_worker;

-- Closes a call's open pages and books their estimate, so that none outlasts its call.
CREATE FUNCTION pricing.settle_pages(of_call bigint) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.settle_pages(bigint) TO pricing_worker;

-- Stores a call's latest prices, all believed, finishes its tasks and settles it; returns how many were added and
-- revised, no row if the claim has lost a task.
CREATE FUNCTION pricing.settle_prices(ids bigint[], token uuid, http_status integer, wire_bytes bigint, stated_left
    integer, shown_units integer, shown_seconds integer, without_length boolean, wanted_type text, from_provider text,
    from_call bigint, symbols text[], times timestamp with time zone[], amounts bigint[], open_amounts bigint[],
    high_amounts bigint[], low_amounts bigint[], scales smallint[], currencies text[], volumes numeric[], texts text[],
    adjustments text[]) RETURNS TABLE(added bigint, revised bigint) LANGUAGE plpgsql SET search_path=pg_temp,
    plan_cache_mode=force_generic_plan, lock_timeout=500ms;
GRANT EXECUTE ON FUNCTION pricing.settle_prices(bigint[], uuid, integer, bigint, integer, integer, integer, boolean,
    text, text, bigint, text[], timestamp with time zone[], bigint[], bigint[], bigint[], bigint[], smallint[], text[],
    numeric[], text[], text[]) TO pricing_worker;

-- Closes a call for which no connection could be made, as a fault of its provider, and gives its units back; false when
-- it was closed before.
CREATE FUNCTION pricing.settle_unsent(unsent bigint, message text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET
    search_path=pg_temp, lock_timeout=500ms;
GRANT EXECUTE ON FUNCTION pricing.settle_unsent(bigint,text) TO pricing_worker;

-- Which of these pairs the room suffices for when everything due at a provider is served by the number of viewers; NULL
-- = none.
CREATE FUNCTION pricing.share_of(wanted_provider text, room bigint, wanted_type text, symbols text[], viewers integer[])
    RETURNS text[] LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.share_of(text,bigint,text,text[],integer[]) TO pricing_worker;

-- What stops each provider that several of these pairs get their price from or wait for, so that each provider is
-- checked once.
CREATE FUNCTION pricing.shared_stops(data_types text[], symbols text[], providers text[]) RETURNS
    pricing.provider_stop[] LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.shared_stops(text[],text[],text[]) TO pricing_reader, pricing_worker;

-- A search word, unchanged; refuses more than 200 characters, which would be compared with every row.
CREATE FUNCTION pricing.short_word(word text) RETURNS text LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.short_word(text) TO pricing_reader, pricing_worker;

-- Makes each symbol's newest value its latest price unless a newer one is stored, records it for price alerts, and
-- returns these symbols.
CREATE FUNCTION pricing.show_latest(given pricing.price_history[], confirmed_at timestamp with time zone) RETURNS text[]
    LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.show_latest(pricing.price_history[],timestamp with time zone) TO pricing_worker;

-- Makes the newest released value its pair's latest price if no other is newer, and returns its id; NULL = it is not.
CREATE FUNCTION pricing.show_released(wanted_type text, wanted_symbol text, ids bigint[]) RETURNS bigint LANGUAGE
    plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.show_released(text,text,bigint[]) TO pricing_worker;

-- Units that a limit allows a key, as its provider has shown within a day; NULL = no lower than written.
CREATE FUNCTION pricing.shown_units(wanted pricing.provider_limits, key text, now_ timestamp with time zone) RETURNS
    integer LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.shown_units(pricing.provider_limits, text, timestamp with time zone) TO
    pricing_reader, pricing_worker;

-- Local days of a product: when their slots were last confirmed, and whether that is within the TTL of the most
-- frequent data type that covers them.
CREATE FUNCTION pricing.slot_days(wanted_symbol text, first_day date, last_day date) RETURNS TABLE(day date, fetched_at
    timestamp with time zone, fresh boolean, data_type text) LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.slot_days(text,date,date) TO pricing_reader, pricing_worker;

-- The data types that a read of a product's slots up to a day requests: the product's, and the widest stale one of
-- slots that is not wider than needed.
CREATE FUNCTION pricing.slot_types_to_request(wanted_symbol text, last_day date) RETURNS text[] LANGUAGE sql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.slot_types_to_request(text,date) TO pricing_reader, pricing_worker;

-- The slots of a product on local days, as believed at a time (NULL = now).
CREATE FUNCTION pricing.slots_as_of(wanted_symbol text, first_day date, last_day date, as_of timestamp with time zone)
    RETURNS SETOF pricing.slots LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.slots_as_of(text, date, date, timestamp with time zone) TO pricing_reader,
    pricing_worker;

-- The slots of a product on local days, a row per category: exact prices, places, and whether this many people can be
-- booked.
CREATE FUNCTION pricing.slots_to_read(wanted_symbol text, first_day date, last_day date, pax integer, only_currency
    text, only_sellable boolean, as_of timestamp with time zone) RETURNS TABLE(local_day date, option_id text,
    option_name text, slot_id text, local_start timestamp without time zone, local_end timestamp without time zone,
    starts_at timestamp with time zone, ends_at timestamp with time zone, utc_offset interval, time_zone text, status
    text, remaining integer, capacity integer, sellable boolean, category_id text, category text, is_primary boolean,
    minimum integer, maximum integer, pax_remaining integer, final numeric, original numeric, discount numeric, currency
    text, provider text, recorded_at timestamp with time zone) LANGUAGE plpgsql STABLE SET search_path=pg_temp,
    plan_cache_mode=force_generic_plan, enable_seqscan=off, enable_mergejoin=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.slots_to_read(text, date, date, integer, text, boolean, timestamp with time zone) TO
    pricing_reader, pricing_worker;

-- A name as it is written in a URL: Medical Supplies is medical-supplies.
CREATE FUNCTION pricing.slug_of(name text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.slug_of(text) TO pricing_reader, pricing_worker;

-- Where rates between two currencies of the past may be stored, and in which currency. For one day the first place
-- counts: a bar before a quote, then the pair itself before its inverse.
CREATE FUNCTION pricing.sources_of_rates(from_currency text, to_currency text) RETURNS TABLE(place bigint, data_type
    text, symbol text, currency text, is_inverse boolean, is_quote boolean) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.sources_of_rates(text,text) TO pricing_reader, pricing_worker;

-- Ends the waiting tasks of instruments that nobody has ever priced and that a provider does not know, as their claimed
-- tasks end: one trial is enough.
CREATE FUNCTION pricing.spare_calls(ids bigint[], entry jsonb, message text) RETURNS void LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.spare_calls(bigint[],jsonb,text) TO pricing_worker;

-- A symbol as its instruments are spelled, in any class.
CREATE FUNCTION pricing.spelled(symbol text) RETURNS text LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.spelled(text) TO pricing_reader, pricing_worker;

-- Symbols as judge_symbols spells them; those that it refuses as they were given.
CREATE FUNCTION pricing.spelled(data_types text[], symbols text[]) RETURNS text[] LANGUAGE plpgsql STABLE SET
    search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.spelled(text[],text[]) TO pricing_reader, pricing_worker;

-- Symbols as their instruments are spelled, in any class, each once; with data types, each pair once.
CREATE FUNCTION pricing.spelled_once(INOUT symbols text[], INOUT data_types text[]) RETURNS record LANGUAGE plpgsql
    STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.spelled_once(text[],text[]) TO pricing_reader, pricing_worker;

-- Ends the back-off of an instrument's pairs, because a provider may know the new spelling.
TRIGGER FUNCTION pricing.spelling_changed() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- All spellings of a share that our tables can produce from the canonical one: each name of its exchange, and each sign
-- before its class.
CREATE FUNCTION pricing.spellings_of(symbol text) RETURNS text[] LANGUAGE plpgsql STABLE SET search_path=pg_temp,
    enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.spellings_of(text) TO pricing_reader, pricing_worker;

-- How much of a user's allowance the reads of the last minute, and this many more pairs, use.
CREATE FUNCTION pricing.spent_by_reads(user_id text, pairs bigint) RETURNS interval LANGUAGE sql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.spent_by_reads(text,bigint) TO pricing_reader, pricing_worker;

-- When a pair that was confirmed at a time is due again: by its instrument's calendar if its type follows calendars,
-- otherwise by the TTL.
CREATE FUNCTION pricing.stale_at(kind pricing.data_type_registry, symbol text, stamp timestamp with time zone,
    ttl_minutes integer) RETURNS TABLE(at timestamp with time zone) LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.stale_at(pricing.data_type_registry, text, timestamp with time zone, integer) TO
    pricing_reader, pricing_worker;

-- Since when a pair is stale, from the given time if nobody ever answered for it; NULL = it is fresh.
CREATE FUNCTION pricing.stale_since(wanted_type text, wanted_symbol text, at_least timestamp with time zone) RETURNS
    timestamp with time zone LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.stale_since(text,text,timestamp with time zone) TO pricing_worker;

-- Providers that may be called and completed nothing for ten minutes while watched pairs were due: how many tasks wait,
-- and since when.
CREATE FUNCTION pricing.stalled_providers(started timestamp with time zone DEFAULT '-infinity'::timestamp with time
    zone) RETURNS TABLE(provider text, tasks bigint, since timestamp with time zone) LANGUAGE sql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.stalled_providers(timestamp with time zone) TO pricing_reader, pricing_worker;

-- Midnight UTC of a day.
CREATE FUNCTION pricing.start_of(day date) RETURNS timestamp with time zone LANGUAGE sql IMMUTABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.start_of(date) TO pricing_reader, pricing_worker;

-- Why a provider may not be asked for anything now: provider_off, no_client, breaker_open, key_refused, throttled or
-- rate_limited, with a sentence, the end, and the used share of its quota.
CREATE FUNCTION pricing.stop_of(wanted_provider text) RETURNS pricing.provider_stop LANGUAGE plpgsql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.stop_of(text) TO pricing_reader, pricing_worker;

-- Cancels waiting tasks of paused instruments, or of one; returns how many.
CREATE FUNCTION pricing.stop_paused(only_class text DEFAULT NULL::text, only_symbol text DEFAULT NULL::text) RETURNS
    integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.stop_paused(text,text) TO pricing_worker;

-- Cancels those of the tasks that wait again because their instrument was paused while they ran; returns how many.
CREATE FUNCTION pricing.stop_paused_tasks(ids bigint[]) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp,
    plan_cache_mode=force_generic_plan, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.stop_paused_tasks(bigint[]) TO pricing_worker;

-- Cancels those of the tasks that still wait, keeps the reason, and returns how many.
CREATE FUNCTION pricing.stop_tasks(ids bigint[], kind text, message text) RETURNS integer LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.stop_tasks(bigint[],text,text) TO pricing_worker;

-- Stores a sealed key, new or as a replacement, and activates its name; true = it replaced one.
CREATE FUNCTION pricing.store_credential(wanted_provider text, wanted_key text, version bigint, master_key_id text,
    nonce_of_key bytea, key_wrapped bytea, nonce_of_secret bytea, secret_sealed bytea) RETURNS boolean LANGUAGE plpgsql
    SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.store_credential(text,text,bigint,text,bytea,bytea,bytea,bytea) TO pricing_worker;

-- Stores the days on which the second source disagrees with a calendar, unless bars or corrections decide them; returns
-- how many.
CREATE FUNCTION pricing.store_disagreements(wanted_calendar text, days date[], are_open boolean[], reasons text[])
    RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.store_disagreements(text,date[],boolean[],text[]) TO pricing_worker;

-- Writes the sessions of FX (Monday to Friday, from 17:00 in New York the day before) or of 24/7; returns how many.
CREATE FUNCTION pricing.store_own_sessions(wanted_calendar text, from_day date, to_day date) RETURNS integer LANGUAGE
    sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.store_own_sessions(text,date,date) TO pricing_worker;

-- Stores quarantined values in the history exactly as sent, with their provider and call; of several for one time the
-- last one.
CREATE FUNCTION pricing.store_released(ids bigint[]) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.store_released(bigint[]) TO pricing_worker;

-- Moves one call's values into history and old ones into price_revisions; returns the rows added and revised, and
-- whether another session changed some meanwhile.
CREATE FUNCTION pricing.store_rows(wanted_type text, from_call bigint, given pricing.price_history[], OUT stored_at
    timestamp with time zone, OUT added text[], OUT revised text[], OUT is_overtaken boolean) RETURNS record LANGUAGE
    plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.store_rows(text,bigint,pricing.price_history[]) TO pricing_worker;

-- Replaces a calendar's sessions between two days by corrected ones, and warns if they end within a fortnight; returns
-- how many.
CREATE FUNCTION pricing.store_sessions(wanted_calendar text, from_day date, to_day date, days date[], opens timestamp
    with time zone[], closes timestamp with time zone[]) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.store_sessions(text, date, date, date[], timestamp with time zone[], timestamp with
    time zone[]) TO pricing_worker;

-- Limits the symbols in a fetcher's calls after a refusal of a call for too many, for a day or until a person writes
-- its batch size.
CREATE FUNCTION pricing.store_shown_batch(refused bigint, most integer) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
    SET search_path=pg_temp, lock_timeout=500ms;
GRANT EXECUTE ON FUNCTION pricing.store_shown_batch(bigint,integer) TO pricing_worker;

-- Stores a lower limit that a provider has shown for a key in this many seconds (86400 = also a calendar day; NULL =
-- its longest window up to an hour); a later, higher one replaces it.
CREATE FUNCTION pricing.store_shown_limit(wanted_provider text, wanted_key text, shown integer, seconds integer, now_
    timestamp with time zone) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.store_shown_limit(text, text, integer, integer, timestamp with time zone) TO
    pricing_worker;

-- The streamed pairs whose price differs from the last event, or whose freshness is due for judgement, with what
-- judging needs.
CREATE FUNCTION pricing.streams_to_judge(now_ timestamp with time zone, at_most interval) RETURNS TABLE(told
    pricing.streamed_pairs, price pricing.latest_prices, ttl interval, is_by_ttl boolean, is_source_old boolean,
    is_first boolean, is_judged boolean, is_new_price boolean) LANGUAGE plpgsql STABLE SET search_path=pg_temp,
    plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.streams_to_judge(timestamp with time zone,interval) TO pricing_reader, pricing_worker;

-- By how much to stretch TTLs, given the bytes an hour that watched pairs and the background need at their TTLs, and
-- that can be sustained in all.
CREATE FUNCTION pricing.stretch_factors(watched double precision, background double precision, sustained double
    precision, OUT watched_factor double precision, OUT background_factor double precision) RETURNS record LANGUAGE
    plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.stretch_factors(double precision, double precision, double precision) TO
    pricing_reader, pricing_worker;

-- By how much a pair's TTL is stretched now, while watched and while not: the least over its route's providers that are
-- not in trouble and have not refused it (no symbol = one without rules).
CREATE FUNCTION pricing.stretch_of(wanted_type text, wanted_symbol text, now_ timestamp with time zone) RETURNS double
    precision[] LANGUAGE plpgsql STABLE SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.stretch_of(text,text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Computes by how much TTLs are stretched, of providers that have used a twentieth of their quota; returns how many
-- pairs a smaller stretch makes due.
CREATE FUNCTION pricing.stretch_ttls() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.stretch_ttls() TO pricing_worker;

-- By how much TTLs are stretched at a time; a factor that was not updated for long counts as none.
CREATE FUNCTION pricing.stretches_in_force(now_ timestamp with time zone) RETURNS SETOF pricing.ttl_stretches LANGUAGE
    sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.stretches_in_force(timestamp with time zone) TO pricing_reader, pricing_worker;

-- The most bytes an hour that keep used bytes below a target at the end of each of the next 30 days.
CREATE FUNCTION pricing.sustained_rate(leaving bigint[], used bigint, target bigint) RETURNS double precision LANGUAGE
    sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.sustained_rate(bigint[],bigint,bigint) TO pricing_reader, pricing_worker;

-- The instruments of some data types that the given symbols mean, canonically spelled; refuses a symbol that no type
-- has.
CREATE FUNCTION pricing.symbols_by_type(data_types text[], symbols text[]) RETURNS TABLE(data_type text, symbol text)
    LANGUAGE plpgsql STABLE SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.symbols_by_type(text[],text[]) TO pricing_reader, pricing_worker;

-- Takes this many alerts' new prices in the order in which they were stored, at most 200 of one, and skips locked
-- alerts.
CREATE FUNCTION pricing.take_price_events(most integer) RETURNS TABLE(price_alert_id bigint, recipient text, user_id
    text, is_told boolean, data_type text, condition text, threshold numeric, hysteresis numeric, hysteresis_in text,
    told_at timestamp with time zone, is_beyond boolean, seen_at timestamp with time zone, reference numeric,
    reference_at timestamp with time zone, split_days date[], split_new numeric[], split_old numeric[], symbol text,
    price numeric, currency text, observed_at timestamp with time zone, provider text, call_id bigint) LANGUAGE plpgsql
    SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.take_price_events(integer) TO pricing_worker;

-- The bytes of room that a producer may fill: all for one session at a time, a sixteenth for each other; NULL = enough
-- for sixteen.
CREATE FUNCTION pricing.take_room(wanted_provider text, least_priority integer, more_bytes bigint) RETURNS bigint
    LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.take_room(text,integer,bigint) TO pricing_worker;

-- Takes the alerts whose pair has been stale for too long, and resets those whose pair is fresh again.
CREATE FUNCTION pricing.take_stale_pairs() RETURNS TABLE(price_alert_id bigint, recipient text, user_id text, data_type
    text, symbol text, lasts interval, since timestamp with time zone, sentence text, price numeric, currency text,
    observed_at timestamp with time zone, provider text, call_id bigint) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.take_stale_pairs() TO pricing_worker;

-- Takes the turn at some work until the transaction ends; false, without waiting, if another session has it.
CREATE FUNCTION pricing.take_turn(wanted text) RETURNS boolean LANGUAGE plpgsql SET search_path=pg_temp,
    lock_timeout=100ms;
GRANT EXECUTE ON FUNCTION pricing.take_turn(text) TO pricing_worker;

-- Symbols without an instrument that are another instrument's spelling at some provider, so that two would get one
-- answer; warns of them.
CREATE FUNCTION pricing.taken_symbols(data_types text[], symbols text[]) RETURNS text[] LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.taken_symbols(text[],text[]) TO pricing_worker;

-- Whether a category can take this many people, by its units, bounds and places left (NULL = no bound).
CREATE FUNCTION pricing.takes(pax integer, pax_count integer, minimum integer, maximum integer, remaining integer)
    RETURNS boolean LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.takes(integer,integer,integer,integer,integer) TO pricing_reader, pricing_worker;

-- The upper bounds in seconds of task_times.buckets; add more only at the end.
CREATE FUNCTION pricing.task_time_bounds() RETURNS double precision[] LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.task_time_bounds() TO pricing_reader, pricing_worker;

-- Probes providers in an outage about once a minute while viewers wait, and makes everything due once they answer;
-- returns how many pairs and tasks.
CREATE FUNCTION pricing.tend_outages() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.tend_outages() TO pricing_worker;

-- What a terminal (symbol, code or name) trades, with the columns of pricing.commodity: the live version first, then by
-- name.
CREATE FUNCTION pricing.terminal(wanted text, as_of timestamp with time zone DEFAULT NULL::timestamp with time zone)
    RETURNS TABLE(commodity text, slug text, quality text, buy numeric, sell numeric, stock bigint, demand bigint,
    game_version text, is_of_other_version boolean, modified_at timestamp with time zone, recorded_at timestamp with
    time zone, provider text) LANGUAGE sql STABLE SECURITY DEFINER SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.terminal(text, timestamp with time zone) TO pricing_client, pricing_reader,
    pricing_worker;

-- The symbol of the terminal with this symbol, code or name, preferably a listed one; NULL = unknown.
CREATE FUNCTION pricing.terminal_of(word text) RETURNS text LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.terminal_of(text) TO pricing_reader, pricing_worker;

-- Thins quotes older than their type's thin_after_days to the last one of every thin_to_minutes, up to this many rows;
-- returns how many were deleted.
CREATE FUNCTION pricing.thin_history(at_most integer DEFAULT 20000) RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
    SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.thin_history(integer) TO pricing_worker;

-- Stops all workers' calls with a key for as long as the provider asked (at most 1 h), or for a growing pause; returns
-- how long until one of the provider's keys is free.
CREATE FUNCTION pricing.throttle(wanted_provider text, wanted_key text, pause interval, reason text) RETURNS interval
    LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.throttle(text,text,interval,text) TO pricing_worker;

-- Prices of one commodity or at one terminal (NULL = all), as believed at a time (NULL = now), those of the version
-- that was live then first.
CREATE FUNCTION pricing.traded_prices(only_commodity bigint, only_terminal text, as_of timestamp with time zone) RETURNS
    TABLE(commodity text, slug text, symbol text, terminal text, code text, system text, place text, is_available
    boolean, quality text, buy numeric, sell numeric, stock bigint, demand bigint, game_version text,
    is_of_other_version boolean, modified_at timestamp with time zone, recorded_at timestamp with time zone, provider
    text) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.traded_prices(bigint,text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- How much each market trades in the following week: sessions an hour, and the share of the time with new prices.
CREATE FUNCTION pricing.trading_ahead(now_ timestamp with time zone) RETURNS TABLE(calendar text, sessions numeric,
    share numeric) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.trading_ahead(timestamp with time zone) TO pricing_reader, pricing_worker;

-- When, between two times, the quotes watched at a provider can change: in their sessions, or always where these are
-- unknown.
CREATE FUNCTION pricing.trading_hours(wanted_provider text, since timestamp with time zone, until timestamp with time
    zone) RETURNS tstzmultirange LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.trading_hours(text, timestamp with time zone, timestamp with time zone) TO
    pricing_reader, pricing_worker;

-- The TTL in minutes of a watched pair whose row of latest_prices was read: looked up only if it is stored elsewhere.
CREATE FUNCTION pricing.ttl_beside(kind pricing.data_type_registry, symbol text, stored_minutes integer) RETURNS integer
    LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.ttl_beside(pricing.data_type_registry,text,integer) TO pricing_reader, pricing_worker;

-- Makes a new TTL or staleness function take effect at the next staleness check, and restarts what is wanted of a
-- revived type.
TRIGGER FUNCTION pricing.ttl_changed() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- A pair's TTL in minutes: its own, otherwise its type's, or the background TTL while it is only held.
CREATE FUNCTION pricing.ttl_of(kind pricing.data_type_registry, own_minutes integer, is_watched boolean DEFAULT true)
    RETURNS integer LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.ttl_of(pricing.data_type_registry,integer,boolean) TO pricing_reader, pricing_worker;

-- The active data type with the freshest prices of an asset class; NULL = none.
CREATE FUNCTION pricing.type_for(asset_class text) RETURNS text LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.type_for(text) TO pricing_reader, pricing_worker;

-- Cancels the queued tasks of a data type that is retired or deleted.
TRIGGER FUNCTION pricing.type_retired() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Other data types with the same values of the same instruments, perhaps of other providers; NULL = none.
CREATE FUNCTION pricing.types_alike(wanted_type text) RETURNS text[] LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.types_alike(text) TO pricing_reader, pricing_worker;

-- The smallest amount with this many decimals, 0 to 18.
CREATE FUNCTION pricing.unit_of(scale smallint) RETURNS numeric LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.unit_of(smallint) TO pricing_reader, pricing_worker;

-- Units a minute that a provider's keys allow while watched pairs trade; NULL = no known limit.
CREATE FUNCTION pricing.units_a_minute(wanted_provider text, now_ timestamp with time zone) RETURNS double precision
    LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.units_a_minute(text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Units that a provider may be charged now, over all its active keys that are not blocked.
CREATE FUNCTION pricing.units_available(wanted_provider text, now_ timestamp with time zone) RETURNS bigint LANGUAGE
    plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.units_available(text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Units that a key may be charged in a limit's window: the lower of written and shown.
CREATE FUNCTION pricing.units_in_force(wanted pricing.provider_limits, key text, now_ timestamp with time zone) RETURNS
    integer LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.units_in_force(pricing.provider_limits, text, timestamp with time zone) TO
    pricing_reader, pricing_worker;

-- The units that a call may be charged now (units_left) and until a time if nobody else uses any (units), with the
-- tightest limit and when it is renewed.
CREATE FUNCTION pricing.units_within_reach(call pricing.collector_call_log, until timestamp with time zone, now_
    timestamp with time zone, OUT name text, OUT units bigint, OUT units_left bigint, OUT renewed_at timestamp with time
    zone) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.units_within_reach(pricing.collector_call_log, timestamp with time zone, timestamp
    with time zone) TO pricing_reader, pricing_worker;

-- Units that a limit allows a key, as written.
CREATE FUNCTION pricing.units_written(wanted pricing.provider_limits, key text) RETURNS integer LANGUAGE plpgsql STABLE
    SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.units_written(pricing.provider_limits,text) TO pricing_reader, pricing_worker;

-- Marks products as no longer listed by their provider, unless a later call lists them.
CREATE FUNCTION pricing.unlist_products(refused text[], from_provider text, from_call bigint) RETURNS void LANGUAGE
    plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.unlist_products(text[],text,bigint) TO pricing_worker;

-- Which of these pairs have a task but no recorded reader, so that their tasks would be cancelled when the last viewer
-- leaves.
CREATE FUNCTION pricing.unnoted_reads(INOUT data_types text[], INOUT symbols text[]) RETURNS record LANGUAGE sql STABLE
    SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.unnoted_reads(text[],text[]) TO pricing_reader, pricing_worker;

-- Which of these pairs had no view recorded in the last ten minutes.
CREATE FUNCTION pricing.unnoted_views(data_types text[], symbols text[]) RETURNS TABLE(data_type text, symbol text)
    LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.unnoted_views(text[],text[]) TO pricing_worker;

-- How many pairs are due and not queued because their provider's quota has no room for all.
CREATE FUNCTION pricing.unqueued_pairs() RETURNS TABLE(provider text, data_type text, pairs bigint) LANGUAGE plpgsql
    STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.unqueued_pairs() TO pricing_reader, pricing_worker;

-- Steps of raw prices between two days that look like an unreported split, with their ratio.
CREATE FUNCTION pricing.unreported_splits(wanted_type text, wanted_symbol text, first_day date, last_day date) RETURNS
    TABLE(ex_on date, new_shares integer, old_shares integer) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.unreported_splits(text,text,date,date) TO pricing_reader, pricing_worker;

-- Ends subscriptions when a viewer leaves, and records the views (at_once or by request); returns how many ended.
CREATE FUNCTION pricing.unsubscribe(user_id text, data_types text[], symbols text[], at_once boolean DEFAULT true)
    RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off, plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.unsubscribe(text,text[],text[],boolean) TO pricing_worker;

-- Says that the session's user has left these pairs; returns how many subscriptions ended.
CREATE FUNCTION pricing.unsubscribe(data_types text[], symbols text[]) RETURNS integer LANGUAGE sql SECURITY DEFINER SET
    search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.unsubscribe(text[],text[]) TO pricing_client, pricing_worker;

-- The most requests and units that unfinished calls for any of these symbols used within a week, how many made pages
-- (tries), when the next may (again_at), and this call's own units (own).
CREATE FUNCTION pricing.used_in_vain(call pricing.collector_call_log, now_ timestamp with time zone, OUT requests
    bigint, OUT units bigint, OUT tries bigint, OUT again_at timestamp with time zone, OUT own bigint) RETURNS record
    LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.used_in_vain(pricing.collector_call_log, timestamp with time zone) TO pricing_reader,
    pricing_worker;

-- The units that a key has used since a time, and when it used the last.
CREATE FUNCTION pricing.used_since(wanted_provider text, key text, since timestamp with time zone, OUT units bigint, OUT
    last_at timestamp with time zone) RETURNS record LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.used_since(text,text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- How long after the close to look for a daily value before anything was learned.
CREATE FUNCTION pricing.usual_publish_lag(fetcher text) RETURNS interval LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.usual_publish_lag(text) TO pricing_reader, pricing_worker;

-- The first day of the UTC month of a time.
CREATE FUNCTION pricing.utc_month(at timestamp with time zone) RETURNS date LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.utc_month(timestamp with time zone) TO pricing_reader, pricing_worker;

-- What all reports say about a pair: stale (to be fetched), unjudged (its staleness function fails, and it was fetched
-- within its TTL), source_old (confirmed, but nothing as new as there should be) or fresh.
CREATE FUNCTION pricing.verdict_on(wanted_type text, wanted_symbol text) RETURNS text LANGUAGE plpgsql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.verdict_on(text,text) TO pricing_reader, pricing_worker;

-- Records that a provider had values of these symbols, and their currency; skips locked rows, which the next answer
-- fills.
CREATE FUNCTION pricing.verify_instruments(wanted_type text, symbols text[], currencies text[]) RETURNS void LANGUAGE
    sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.verify_instruments(text,text[],text[]) TO pricing_worker;

-- The numbers in a version of the game, for sorting: 4.10 comes after 4.9.
CREATE FUNCTION pricing.version_numbers(version text) RETURNS integer[] LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.version_numbers(text) TO pricing_reader, pricing_worker;

-- How many histories and bars wait to be requested again, and for what: a reason of refetches, or room in a quota.
CREATE FUNCTION pricing.waiting_refetches() RETURNS TABLE(provider text, data_type text, waits_for text, histories
    bigint, bars bigint) LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.waiting_refetches() TO pricing_reader, pricing_worker;

-- Scheduled types with a provider that can take no more: the last served slot, how many instruments it has still to
-- queue, and why.
CREATE FUNCTION pricing.waiting_schedules() RETURNS TABLE(data_type text, slot timestamp with time zone, instruments
    bigint, reason text) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.waiting_schedules() TO pricing_worker;

-- Wakes idle drains once this transaction commits, unless the server's notification queue is half full or in use.
CREATE FUNCTION pricing.wake_workers() RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.wake_workers() TO pricing_worker;

-- Queues what walks could not queue, at most 500 at a time; the rest waits a minute; returns the number queued.
CREATE FUNCTION pricing.walk_requested() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.walk_requested() TO pricing_worker;

-- Queues the next 500 instruments of a walk, by key, or as many as a provider of the type can take; returns the number
-- queued.
CREATE FUNCTION pricing.walk_schedule(wanted_type text) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.walk_schedule(text) TO pricing_worker;

-- Continues every walk by one chunk; returns the number queued.
CREATE FUNCTION pricing.walk_schedules() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.walk_schedules() TO pricing_worker;

-- Whether a scheduled type's walk has not reached a symbol yet, or could not queue it.
CREATE FUNCTION pricing.walk_waits(wanted_type text, wanted_symbol text) RETURNS boolean LANGUAGE sql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.walk_waits(text,text) TO pricing_reader, pricing_worker;

-- How many drains have work, up to the allowed number: one for every ten calls that would be in flight over the next 15
-- s.
CREATE FUNCTION pricing.wanted_drains(most integer) RETURNS integer LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.wanted_drains(integer) TO pricing_reader, pricing_worker;

-- Since when drains have had work, with_background also held or scheduled work; NULL = none.
CREATE FUNCTION pricing.wanted_since(now_ timestamp with time zone, started timestamp with time zone, with_background
    boolean) RETURNS timestamp with time zone LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.wanted_since(timestamp with time zone, timestamp with time zone, boolean) TO
    pricing_reader, pricing_worker;

-- Records trouble that stopped nothing else, in the table and as a notice, which is counted even after a rollback.
CREATE FUNCTION pricing.warn(from_source text, about text, message text, state text) RETURNS void LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.warn(text,text,text,text) TO pricing_worker;

-- Warns of prices that never change under newer times, which one answer cannot tell from a quiet market; returns how
-- many.
CREATE FUNCTION pricing.warn_frozen() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.warn_frozen() TO pricing_worker;

-- Warns, once an hour, of rows with a TTL that is not positive in a user's own table, which count as rows without one.
CREATE FUNCTION pricing.warn_ttls(wanted_type text, own_table text, symbol_column text) RETURNS void LANGUAGE plpgsql
    SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.warn_ttls(text,text,text) TO pricing_worker;

-- Records which providers are in such trouble that others should be asked; returns for how many that changed.
CREATE FUNCTION pricing.watch_providers() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.watch_providers() TO pricing_worker;

-- The calendars of the quotes watched at a provider: as stored within two minutes, otherwise computed.
CREATE FUNCTION pricing.watched_calendars_of(wanted_provider text) RETURNS SETOF text LANGUAGE plpgsql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.watched_calendars_of(text) TO pricing_reader, pricing_worker;

-- The state of each watched pair of these (or all active) data types: paused, late, due, refused, source_old or fresh,
-- and whether its price was outdated when its first viewer came.
CREATE FUNCTION pricing.watched_pairs(only_types text[] DEFAULT NULL::text[]) RETURNS TABLE(data_type text, symbol text,
    state text, owed_since timestamp with time zone, fetched_at timestamp with time zone, is_outdated boolean) LANGUAGE
    plpgsql STABLE SET search_path=pg_temp, enable_nestloop=off;
GRANT EXECUTE ON FUNCTION pricing.watched_pairs(text[]) TO pricing_reader, pricing_worker;

-- Makes days sessions if two instruments of a calendar, or two providers, have quarantined bars of them; returns how
-- many.
CREATE FUNCTION pricing.weigh_closed_days(wanted_type text, symbols text[]) RETURNS integer LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.weigh_closed_days(text,text[]) TO pricing_worker;

-- Why a pair's price is as old as it is, in the form of the HTTP API.
CREATE FUNCTION pricing.why_as_json(data_type text, symbol text, stops pricing.provider_stop[]) RETURNS json LANGUAGE
    plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_as_json(text,text,pricing.provider_stop[]) TO pricing_reader, pricing_worker;

-- Why a pair backs off, by its last dead task: a fault of its symbol, or trouble, which makes it late; a state and a
-- sentence.
CREATE FUNCTION pricing.why_backing_off(pair pricing.demand, dead pricing.api_call_queue_dead, stops
    pricing.provider_stop[], OUT state text, OUT sentence text) RETURNS record LANGUAGE plpgsql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_backing_off(pricing.demand, pricing.api_call_queue_dead, pricing.provider_stop[])
    TO pricing_reader, pricing_worker;

-- Why a fresh pair is as old as it is: its TTL, market, source or staleness function.
CREATE FUNCTION pricing.why_judged_fresh(kind pricing.data_type_registry, thing pricing.instruments, price
    pricing.latest_prices, pair pricing.demand, fetched_at timestamp with time zone, ttl interval, verdict text, OUT
    state text, OUT sentence text, OUT since timestamp with time zone, OUT next_at timestamp with time zone) RETURNS
    record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_judged_fresh(pricing.data_type_registry, pricing.instruments,
    pricing.latest_prices, pricing.demand, timestamp with time zone, interval, text) TO pricing_reader, pricing_worker;

-- Why no worker can ask a provider: the sandbox does not imitate it, or its client cannot be made; NULL = some worker
-- can, or none is at work.
CREATE FUNCTION pricing.why_no_client(wanted_provider text) RETURNS text LANGUAGE plpgsql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_no_client(text) TO pricing_reader, pricing_worker;

-- Why no key of a provider can be used now: key_refused or throttled, with a sentence and the end; NULL = one can.
CREATE FUNCTION pricing.why_no_key(wanted_provider text, OUT state text, OUT sentence text, OUT next_at timestamp with
    time zone) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_no_key(text) TO pricing_reader, pricing_worker;

-- Why a pair, or a symbol without a data type, can have no prices: a state and a sentence.
CREATE FUNCTION pricing.why_no_prices(symbol text, wanted_type text, OUT state text, OUT sentence text) RETURNS record
    LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_no_prices(text,text) TO pricing_reader, pricing_worker;

-- Why a provider has no unit left now: which limit is used up, or that others use the key, and when the next unit is
-- free, if known.
CREATE FUNCTION pricing.why_no_units(wanted_provider text, OUT sentence text, OUT next_at timestamp with time zone)
    RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_no_units(text) TO pricing_reader, pricing_worker;

-- A sentence about the quarantined value that came since the pair's last good answer; NULL = none.
CREATE FUNCTION pricing.why_not_believed(wanted_type text, wanted_symbol text, failure text, fetched_at timestamp with
    time zone, OUT sentence text, OUT since timestamp with time zone) RETURNS record LANGUAGE plpgsql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_not_believed(text, text, text, timestamp with time zone) TO pricing_reader,
    pricing_worker;

-- Why a provider may not be asked now for work of this priority and size: a state, a sentence and the end; NULL = it
-- may.
CREATE FUNCTION pricing.why_not_called(wanted_provider text, priority integer, needed bigint, OUT state text, OUT
    sentence text, OUT next_at timestamp with time zone) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_not_called(text,integer,bigint) TO pricing_reader, pricing_worker;

-- Why a stale pair has no task: unwanted, stretched, not reached by its schedule, without room, or left to the next
-- check.
CREATE FUNCTION pricing.why_not_queued(kind pricing.data_type_registry, thing pricing.instruments, pair pricing.demand,
    fetched_at timestamp with time zone, OUT state text, OUT sentence text, OUT since timestamp with time zone, OUT
    next_at timestamp with time zone) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_not_queued(pricing.data_type_registry, pricing.instruments, pricing.demand,
    timestamp with time zone) TO pricing_reader, pricing_worker;

-- Why a stale pair that only a schedule refreshes has no task: it is left out, not reached yet, or waits for the next
-- slot.
CREATE FUNCTION pricing.why_not_scheduled(kind pricing.data_type_registry, wanted_symbol text, wanted_provider text,
    needed bigint, fetched_at timestamp with time zone, OUT state text, OUT sentence text, OUT since timestamp with time
    zone, OUT next_at timestamp with time zone) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_not_scheduled(pricing.data_type_registry, text, text, bigint, timestamp with time
    zone) TO pricing_reader, pricing_worker;

-- Why a pair's price is as old as it is: a state of docs/operations.md, a sentence with what to do, since when, and
-- when that may change.
CREATE FUNCTION pricing.why_old(wanted_type text, wanted_symbol text, stops pricing.provider_stop[] DEFAULT
    '{}'::pricing.provider_stop[], OUT state text, OUT sentence text, OUT observed_at timestamp with time zone, OUT
    fetched_at timestamp with time zone, OUT since timestamp with time zone, OUT next_at timestamp with time zone)
    RETURNS record LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_old(text,text,pricing.provider_stop[]) TO pricing_reader, pricing_worker;

-- Why a live task has brought no price yet; queued only if a worker will take it in turn.
CREATE FUNCTION pricing.why_queued(task pricing.api_call_queue_live, stops pricing.provider_stop[], OUT state text, OUT
    sentence text, OUT since timestamp with time zone, OUT next_at timestamp with time zone) RETURNS record LANGUAGE
    plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_queued(pricing.api_call_queue_live, pricing.provider_stop[]) TO pricing_reader,
    pricing_worker;

-- One of the sentences that say why a price is old, with these words filled in.
CREATE FUNCTION pricing.why_sentence(said text, VARIADIC words text[] DEFAULT '{}'::text[]) RETURNS text LANGUAGE sql
    STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_sentence(text,text[]) TO pricing_reader, pricing_worker;

-- Why a stale pair has no newer value: its answer is not believed, its task is unfinished, it backs off, its market is
-- closed, or it has no task.
CREATE FUNCTION pricing.why_stale(kind pricing.data_type_registry, thing pricing.instruments, pair pricing.demand,
    fetched_at timestamp with time zone, ttl interval, stops pricing.provider_stop[], OUT state text, OUT sentence text,
    OUT since timestamp with time zone, OUT next_at timestamp with time zone) RETURNS record LANGUAGE plpgsql STABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_stale(pricing.data_type_registry, pricing.instruments, pricing.demand, timestamp
    with time zone, interval, pricing.provider_stop[]) TO pricing_reader, pricing_worker;

-- What keeps work of this priority and size from a provider, given its stop: quota_spent if the quota has no room,
-- otherwise the stop; NULL = nothing.
CREATE FUNCTION pricing.why_stopped(stop pricing.provider_stop, priority integer, needed bigint, OUT state text, OUT
    sentence text, OUT next_at timestamp with time zone) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_stopped(pricing.provider_stop,integer,bigint) TO pricing_reader, pricing_worker;

-- Why messages of a priority to a recipient wait: quiet (hours) or failing (open breaker); NULL = they may be sent.
CREATE FUNCTION pricing.why_waiting(of_type text, to_recipient text, with_priority integer, limit_seconds integer, now_
    timestamp with time zone) RETURNS text LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_waiting(text, text, integer, integer, timestamp with time zone) TO pricing_reader,
    pricing_worker;

-- Cancels live tasks, including claimed ones, whose finish is then refused; returns which were live.
CREATE FUNCTION pricing.withdraw(wanted bigint[], kind text, message text) RETURNS bigint[] LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.withdraw(bigint[],text,text) TO pricing_worker;

-- Withdraws payments that their provider omits from days that it reports again, as revisions; returns how many.
CREATE FUNCTION pricing.withdraw_payments(were pricing.corporate_actions[], until timestamp with time zone, by_call
    bigint) RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.withdraw_payments(pricing.corporate_actions[], timestamp with time zone, bigint) TO
    pricing_worker;

-- Splits latest prices to be queued into those that fit their providers' quotas, by priority, and the others.
CREATE FUNCTION pricing.within_quota(wanted_type text, symbols text[], priorities integer[], OUT fitting text[], OUT
    fitting_priorities integer[], OUT left_out text[]) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.within_quota(text,text[],integer[]) TO pricing_worker;

-- A message without its final full stop, to be part of a sentence.
CREATE FUNCTION pricing.without_full_stop(message text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.without_full_stop(text) TO pricing_reader, pricing_worker;

-- The rows of an answer without those of these products.
CREATE FUNCTION pricing.without_products(rows_ jsonb, symbols text[]) RETURNS jsonb LANGUAGE sql IMMUTABLE SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.without_products(jsonb,text[]) TO pricing_reader, pricing_worker;

-- Writes new and changed slots of an answer, marks those missing from a listed day as vanished, and returns the keys of
-- both.
CREATE FUNCTION pricing.write_slots(from_provider text, from_call bigint, now_ timestamp with time zone, days jsonb,
    slots jsonb, OUT added_slots bigint[], OUT changed_slots bigint[]) RETURNS record LANGUAGE plpgsql SET
    search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.write_slots(text,bigint,timestamp with time zone,jsonb,jsonb) TO pricing_worker;

-- The time zone of a product; NULL = unknown.
CREATE FUNCTION pricing.zone_of(product pricing.products) RETURNS text LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.zone_of(pricing.products) TO pricing_reader, pricing_worker;
