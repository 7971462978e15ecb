-- The database in one place: what `db upgrade` makes of an empty one. To be read, not run: columns and constraints
-- stand one to a line without commas, functions without bodies (pricing_pipeline/db/functions/ has them).
-- Written by `make pages`; a test compares it with a migrated database. What each data type adds is not here: its
-- table partition pricing.price_history_<data_type> and its view pricing.latest_price_<data_type>.

-- Everything of the price-refresh pipeline. Times are timestamptz; money is an integer with its scale. CREATE SCHEMA
-- pricing;
GRANT USAGE ON SCHEMA pricing TO pricing_client;
GRANT USAGE ON SCHEMA pricing TO pricing_reader;
GRANT USAGE ON SCHEMA pricing TO pricing_worker;
ALTER DEFAULT PRIVILEGES IN SCHEMA pricing GRANT EXECUTE ON FUNCTIONS TO pricing_worker;
ALTER DEFAULT PRIVILEGES IN SCHEMA pricing GRANT SELECT ON TABLES TO pricing_reader;
ALTER DEFAULT PRIVILEGES IN SCHEMA pricing GRANT SELECT ON TABLES TO pricing_worker;
ALTER DEFAULT PRIVILEGES IN SCHEMA pricing GRANT SELECT, USAGE ON SEQUENCES TO pricing_worker;
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;

-- What a breaker lets through: closed = all calls, open = none, half_open = one probe.
CREATE DOMAIN pricing.breaker_position AS text CONSTRAINT breaker_is_known CHECK ((VALUE = ANY (ARRAY['closed'::text, 'open'::text, 'half_open'::text])));

-- What became of a call: open = nothing yet, ok = answered, failed = not answered or refused, unknown = its worker was lost.
CREATE DOMAIN pricing.call_outcome AS text CONSTRAINT outcome_is_known CHECK ((VALUE = ANY (ARRAY['open'::text, 'ok'::text, 'failed'::text, 'unknown'::text])));

-- Who watches or holds something: 1 to 200 characters.
CREATE DOMAIN pricing.user_name AS text CONSTRAINT user_is_sane CHECK (((length(VALUE) >= 1) AND (length(VALUE) <= 200)));

-- 
CREATE SEQUENCE pricing.alert_silences_silence_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.alert_silences_silence_id_seq TO pricing_worker;

-- 
CREATE SEQUENCE pricing.alerts_alert_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.alerts_alert_id_seq TO pricing_worker;

-- 
CREATE SEQUENCE pricing.api_tokens_token_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.api_tokens_token_id_seq TO pricing_worker;

-- Numbers calls.
CREATE SEQUENCE pricing.call_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.call_id_seq TO pricing_worker;

-- Versions of rows of provider_credentials. None is used twice, so that no two ciphertexts are bound to the same.
CREATE SEQUENCE pricing.credential_version_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.credential_version_seq TO pricing_worker;

-- The versions of stored data.
CREATE SEQUENCE pricing.data_version_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.data_version_seq TO pricing_worker;

-- 
CREATE SEQUENCE pricing.etl_warnings_warning_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.etl_warnings_warning_id_seq TO pricing_worker;

-- Numbers side effects.
CREATE SEQUENCE pricing.operation_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.operation_id_seq TO pricing_worker;

-- 
CREATE SEQUENCE pricing.outages_outage_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.outages_outage_id_seq TO pricing_worker;

-- 
CREATE SEQUENCE pricing.pair_requests_request_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.pair_requests_request_id_seq TO pricing_worker;

-- 
CREATE SEQUENCE pricing.pax_categories_category_key_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.pax_categories_category_key_seq TO pricing_worker;

-- 
CREATE SEQUENCE pricing.price_alerts_price_alert_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.price_alerts_price_alert_id_seq TO pricing_worker;

-- 
CREATE SEQUENCE pricing.price_events_event_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.price_events_event_id_seq TO pricing_worker;

-- 
CREATE SEQUENCE pricing.quarantined_values_value_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.quarantined_values_value_id_seq TO pricing_worker;

-- 
CREATE SEQUENCE pricing.restatements_restatement_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.restatements_restatement_id_seq TO pricing_worker;

-- 
CREATE SEQUENCE pricing.slots_slot_key_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.slots_slot_key_seq TO pricing_worker;

-- Numbers tasks.
CREATE SEQUENCE pricing.task_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.task_id_seq TO pricing_worker;

-- 
CREATE SEQUENCE pricing.warnings_warning_id_seq;
GRANT SELECT, USAGE ON SEQUENCE pricing.warnings_warning_id_seq TO pricing_worker;

-- Trading days, recent ones or between stored ones, that an answer should have had a value of and had none, until a value comes.
CREATE TABLE pricing.absent_days (
    data_type text NOT NULL  -- What is missing.
    symbol text NOT NULL  -- Of what it is missing.
    day date NOT NULL  -- The trading day.
    asked integer NOT NULL DEFAULT 0  -- How often it was asked for again.
    ask_at timestamp with time zone NOT NULL  -- When it is asked for next, if no answer brings it before.
    CONSTRAINT absent_days_pkey PRIMARY KEY (data_type, symbol, day)
);
CREATE INDEX absent_days_due ON pricing.absent_days USING btree (ask_at);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.absent_days TO pricing_worker;
GRANT SELECT ON TABLE pricing.absent_days TO pricing_reader;

-- Who looks at what, kept alive by heartbeats; removed on leave or after 5 silent minutes.
CREATE TABLE pricing.active_subscriptions (
    user_id pricing.user_name NOT NULL  -- Who looks: the login of a session, or whom a worker names.
    data_type text NOT NULL  -- What is looked at.
    symbol text NOT NULL  -- What is looked at.
    subscribed_at timestamp with time zone NOT NULL DEFAULT pricing.clock()  -- Since when, without a pause of five minutes.
    last_seen_at timestamp with time zone NOT NULL DEFAULT pricing.clock()  -- The last heartbeat, stamped by the database. Nothing else changes it, but for the moment at which a clock that was set back is noticed.
    CONSTRAINT active_subscriptions_pkey PRIMARY KEY (user_id, data_type, symbol)
) WITH (fillfactor=70);
CREATE INDEX active_subscriptions_pair ON pricing.active_subscriptions USING btree (data_type, symbol);
ALTER TABLE pricing.active_subscriptions ENABLE ROW LEVEL SECURITY;
CREATE POLICY reader_sees_own ON pricing.active_subscriptions FOR SELECT TO pricing_reader USING (((user_id)::text = (SESSION_USER)::text));  -- A reader sees no rows of another login.
CREATE POLICY worker_serves_all ON pricing.active_subscriptions FOR ALL TO pricing_worker USING (true) WITH CHECK (true);  -- A worker acts for every user.
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.active_subscriptions TO pricing_worker;
GRANT SELECT ON TABLE pricing.active_subscriptions TO pricing_reader;

-- Which migrations the database has had.
CREATE TABLE pricing.alembic_version (
    version_num character varying(32) NOT NULL  -- The last migration that was run.
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
GRANT SELECT ON TABLE pricing.alembic_version TO pricing_worker;

-- Alerts that nobody is told of for a while.
CREATE TABLE pricing.alert_silences (
    silence_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- In the order in which they were made.
    rule text NOT NULL  -- Alerts of this rule.
    subject text  -- Only those about this; NULL = all.
    until timestamp with time zone NOT NULL  -- When the silence ends.
    silenced_by text NOT NULL  -- Who made it.
    because text  -- Why.
    created_at timestamp with time zone NOT NULL  -- When it was made.
    CONSTRAINT alert_silences_pkey PRIMARY KEY (silence_id)
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.alert_silences TO pricing_worker;
GRANT SELECT ON TABLE pricing.alert_silences TO pricing_reader;

-- Trouble that was found: what it is about, since when, who knows, and when it was over.
CREATE TABLE pricing.alerts (
    alert_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- In the order in which they were found.
    rule text NOT NULL  -- The rule that found it; docs/runbook.md has a section for each.
    subject text NOT NULL  -- What it is about: a provider, a data type.
    severity text NOT NULL  -- P0 = repeated each hour, P1 = each day, P2 = in a daily digest.
    says text NOT NULL  -- What was found, in words, as it was last seen.
    is_repeated boolean NOT NULL DEFAULT true  -- Whether recipients are told again while it lasts.
    since timestamp with time zone NOT NULL  -- When it was first seen.
    last_seen_at timestamp with time zone NOT NULL  -- When it was last seen.
    raised_at timestamp with time zone  -- When it had lasted as long as its rule asks; NULL = not yet.
    told_at timestamp with time zone  -- When recipients were last told.
    resolved_at timestamp with time zone  -- When it was over; NULL = it is not.
    end_told_at timestamp with time zone  -- When recipients were told that it was over.
    acknowledged_at timestamp with time zone  -- When somebody said that they look after it: it is not repeated.
    acknowledged_by text  -- Who said so.
    newest_at timestamp with time zone  -- When the newest event happened that it is about; NULL = its rule counts no events.
    told_newest_at timestamp with time zone  -- newest_at when recipients were last told: what is newer is told, too.
    message_ids bigint[] NOT NULL DEFAULT '{}'::bigint[]  -- The last fifty operations that told recipients of it or of its end.
    CONSTRAINT alerts_pkey PRIMARY KEY (alert_id)
    CONSTRAINT alert_severity_is_known CHECK ((severity = ANY (ARRAY['P0'::text, 'P1'::text, 'P2'::text])))
    CONSTRAINT rule_is_plain_name CHECK ((rule ~ '^[a-z][a-z0-9_]{0,47}$'::text))
) WITH (fillfactor=70);
CREATE INDEX alerts_resolved_at ON pricing.alerts USING btree (resolved_at) WHERE (resolved_at IS NOT NULL);
CREATE UNIQUE INDEX alerts_open ON pricing.alerts USING btree (rule, subject) WHERE (resolved_at IS NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.alerts TO pricing_worker;
GRANT SELECT ON TABLE pricing.alerts TO pricing_reader;

-- The fetch queue. A row is a task: fetch one symbol of one data type, now or for a span of days.
CREATE TABLE pricing.api_call_queue (
    id bigint NOT NULL DEFAULT nextval('pricing.task_id_seq'::regclass)  -- Rises with each task, over all states.
    data_type text NOT NULL  -- What is fetched.
    symbol text NOT NULL  -- What is fetched.
    window_start date NOT NULL DEFAULT '-infinity'::date  -- -infinity..infinity = the latest price; otherwise days to backfill, both included.
    window_end date NOT NULL DEFAULT 'infinity'::date  -- Last day, included; see window_start.
    provider text  -- Who is asked, by the route at the time of queueing; NULL only for what had no route.
    status text NOT NULL DEFAULT 'pending'::text  -- pending, processing, scheduled (waits until run_after), completed, failed or cancelled. docs/maintainers/state-machine.md draws it.
    priority integer NOT NULL DEFAULT 1  -- Distinct viewers (at least 1); 0 held; -1 scheduled; -2 backfill. Higher goes first.
    cadence_minutes integer NOT NULL DEFAULT 0  -- TTL of the type in minutes: among tasks of one priority the shorter goes first.
    est_bytes bigint NOT NULL DEFAULT 50000  -- Bytes on the wire that the answer is expected to take, reserved when it is claimed.
    enqueued_at timestamp with time zone NOT NULL DEFAULT pricing.clock()  -- When it was queued.
    run_after timestamp with time zone  -- Scheduled tasks only: not to be claimed before.
    attempt smallint NOT NULL DEFAULT 0  -- Counted at claim, so that a task which kills its worker still dies.
    max_attempts smallint NOT NULL DEFAULT 4  -- Claims after which a failure is final.
    claim_token uuid  -- Fresh with every claim; completing, failing and storing prices require it.
    claimed_at timestamp with time zone  -- When it was last claimed.
    lease_until timestamp with time zone  -- Until then the claim holds without a sign of life from its worker.
    worker text  -- Who claimed it last: host and process.
    call_id bigint  -- The call of its last claim, in collector_call_log.
    backfill_id uuid  -- The backfill that queued it; NULL for live work.
    errors jsonb NOT NULL DEFAULT '[]'::jsonb  -- Array of {at, attempt, kind, message}, oldest first.
    finished_at timestamp with time zone  -- When it was completed, failed or cancelled.
    failure_kind text  -- Why it is dead, in one word; docs/maintainers/state-machine.md lists them.
    ring smallint NOT NULL DEFAULT 0  -- Week of finishing modulo 8: the leaf of a completed task.
    resolved_at timestamp with time zone  -- Since when a dead task needs nobody any more: it was cancelled, or its work has succeeded since. It is kept 90 days longer.
) PARTITION BY LIST (status);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.api_call_queue TO pricing_worker;
GRANT SELECT ON TABLE pricing.api_call_queue TO pricing_reader;

-- Finished tasks: a ring of eight weeks, of which pruning empties the old ones.
CREATE TABLE pricing.api_call_queue_completed PARTITION OF pricing.api_call_queue FOR VALUES IN ('completed') PARTITION BY LIST (ring);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.api_call_queue_completed TO pricing_worker;
GRANT SELECT ON TABLE pricing.api_call_queue_completed TO pricing_reader;

-- Tasks finished in weeks whose number since 1970 is 0 modulo 8.
CREATE TABLE pricing.api_call_queue_completed_0 PARTITION OF pricing.api_call_queue_completed FOR VALUES IN ('0') (
    CONSTRAINT api_call_queue_completed_0_pkey PRIMARY KEY (id)
);
CREATE INDEX completed_0_backfill ON pricing.api_call_queue_completed_0 USING btree (backfill_id) WHERE (backfill_id IS NOT NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.api_call_queue_completed_0 TO pricing_worker;
GRANT SELECT ON TABLE pricing.api_call_queue_completed_0 TO pricing_reader;

-- Tasks finished in weeks whose number since 1970 is 1 modulo 8.
CREATE TABLE pricing.api_call_queue_completed_1 PARTITION OF pricing.api_call_queue_completed FOR VALUES IN ('1') (
    CONSTRAINT api_call_queue_completed_1_pkey PRIMARY KEY (id)
);
CREATE INDEX completed_1_backfill ON pricing.api_call_queue_completed_1 USING btree (backfill_id) WHERE (backfill_id IS NOT NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.api_call_queue_completed_1 TO pricing_worker;
GRANT SELECT ON TABLE pricing.api_call_queue_completed_1 TO pricing_reader;

-- Tasks finished in weeks whose number since 1970 is 2 modulo 8.
CREATE TABLE pricing.api_call_queue_completed_2 PARTITION OF pricing.api_call_queue_completed FOR VALUES IN ('2') (
    CONSTRAINT api_call_queue_completed_2_pkey PRIMARY KEY (id)
);
CREATE INDEX completed_2_backfill ON pricing.api_call_queue_completed_2 USING btree (backfill_id) WHERE (backfill_id IS NOT NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.api_call_queue_completed_2 TO pricing_worker;
GRANT SELECT ON TABLE pricing.api_call_queue_completed_2 TO pricing_reader;

-- Tasks finished in weeks whose number since 1970 is 3 modulo 8.
CREATE TABLE pricing.api_call_queue_completed_3 PARTITION OF pricing.api_call_queue_completed FOR VALUES IN ('3') (
    CONSTRAINT api_call_queue_completed_3_pkey PRIMARY KEY (id)
);
CREATE INDEX completed_3_backfill ON pricing.api_call_queue_completed_3 USING btree (backfill_id) WHERE (backfill_id IS NOT NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.api_call_queue_completed_3 TO pricing_worker;
GRANT SELECT ON TABLE pricing.api_call_queue_completed_3 TO pricing_reader;

-- Tasks finished in weeks whose number since 1970 is 4 modulo 8.
CREATE TABLE pricing.api_call_queue_completed_4 PARTITION OF pricing.api_call_queue_completed FOR VALUES IN ('4') (
    CONSTRAINT api_call_queue_completed_4_pkey PRIMARY KEY (id)
);
CREATE INDEX completed_4_backfill ON pricing.api_call_queue_completed_4 USING btree (backfill_id) WHERE (backfill_id IS NOT NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.api_call_queue_completed_4 TO pricing_worker;
GRANT SELECT ON TABLE pricing.api_call_queue_completed_4 TO pricing_reader;

-- Tasks finished in weeks whose number since 1970 is 5 modulo 8.
CREATE TABLE pricing.api_call_queue_completed_5 PARTITION OF pricing.api_call_queue_completed FOR VALUES IN ('5') (
    CONSTRAINT api_call_queue_completed_5_pkey PRIMARY KEY (id)
);
CREATE INDEX completed_5_backfill ON pricing.api_call_queue_completed_5 USING btree (backfill_id) WHERE (backfill_id IS NOT NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.api_call_queue_completed_5 TO pricing_worker;
GRANT SELECT ON TABLE pricing.api_call_queue_completed_5 TO pricing_reader;

-- Tasks finished in weeks whose number since 1970 is 6 modulo 8.
CREATE TABLE pricing.api_call_queue_completed_6 PARTITION OF pricing.api_call_queue_completed FOR VALUES IN ('6') (
    CONSTRAINT api_call_queue_completed_6_pkey PRIMARY KEY (id)
);
CREATE INDEX completed_6_backfill ON pricing.api_call_queue_completed_6 USING btree (backfill_id) WHERE (backfill_id IS NOT NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.api_call_queue_completed_6 TO pricing_worker;
GRANT SELECT ON TABLE pricing.api_call_queue_completed_6 TO pricing_reader;

-- Tasks finished in weeks whose number since 1970 is 7 modulo 8.
CREATE TABLE pricing.api_call_queue_completed_7 PARTITION OF pricing.api_call_queue_completed FOR VALUES IN ('7') (
    CONSTRAINT api_call_queue_completed_7_pkey PRIMARY KEY (id)
);
CREATE INDEX completed_7_backfill ON pricing.api_call_queue_completed_7 USING btree (backfill_id) WHERE (backfill_id IS NOT NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.api_call_queue_completed_7 TO pricing_worker;
GRANT SELECT ON TABLE pricing.api_call_queue_completed_7 TO pricing_reader;

-- Finished tasks of a week whose leaf is missing. Empty, unless somebody has dropped one.
CREATE TABLE pricing.api_call_queue_completed_rest PARTITION OF pricing.api_call_queue_completed DEFAULT (
    CONSTRAINT api_call_queue_completed_rest_pkey PRIMARY KEY (id)
);
CREATE INDEX completed_rest_backfill ON pricing.api_call_queue_completed_rest USING btree (backfill_id) WHERE (backfill_id IS NOT NULL);
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
CREATE TABLE pricing.api_call_queue_live PARTITION OF pricing.api_call_queue FOR VALUES IN ('pending', 'processing', 'scheduled') (
    CONSTRAINT api_call_queue_live_pkey PRIMARY KEY (id)
    CONSTRAINT live_task_is_unique UNIQUE (data_type, symbol, window_start, window_end)
    CONSTRAINT estimate_is_positive CHECK ((est_bytes > 0))
    CONSTRAINT status_has_its_columns CHECK ((((status = 'processing'::text) = (claim_token IS NOT NULL)) AND ((claim_token IS NULL) = (lease_until IS NULL)) AND ((status = 'scheduled'::text) = (run_after IS NOT NULL))))
) WITH (autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=500, fillfactor=40);
CREATE INDEX live_backfill ON pricing.api_call_queue_live USING btree (backfill_id) WHERE (backfill_id IS NOT NULL);
CREATE INDEX live_claim ON pricing.api_call_queue_live USING btree (provider, ((- priority)), cadence_minutes, id) WHERE (run_after IS NULL);
CREATE INDEX live_scheduled ON pricing.api_call_queue_live USING btree (run_after) WHERE (run_after IS NOT NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.api_call_queue_live TO pricing_worker;
GRANT SELECT ON TABLE pricing.api_call_queue_live TO pricing_reader;

-- Wire bytes per provider and UTC hour, of which the quota sums the last 720 and the one that is not over. An hour has as many rows as calls were ever settled at the same moment in it.
CREATE TABLE pricing.api_data_usage (
    provider text NOT NULL  -- Who was asked.
    hour timestamp with time zone NOT NULL  -- Beginning of the hour, UTC.
    calls bigint NOT NULL DEFAULT 0  -- Calls settled in the hour.
    units bigint NOT NULL DEFAULT 0  -- What they cost, in the provider's units.
    bytes bigint NOT NULL DEFAULT 0  -- Bytes on the wire; of calls whose worker was lost, their estimate.
    slot integer NOT NULL DEFAULT 0  -- Tells the rows of an hour apart. A call is booked in any row that nobody holds at that moment; only their sum means anything.
    CONSTRAINT api_data_usage_pkey PRIMARY KEY (provider, hour, slot)
) WITH (fillfactor=50);
GRANT SELECT ON TABLE pricing.api_data_usage TO pricing_reader;
GRANT SELECT ON TABLE pricing.api_data_usage TO pricing_worker;

-- Tokens of the HTTP API. The token itself is shown once, when it is made, and is stored nowhere.
CREATE TABLE pricing.api_tokens (
    token_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- Number of the token.
    name text NOT NULL  -- What people call it by.
    secret_hash bytea NOT NULL  -- SHA-256 of the token, which has 256 random bits.
    scopes text[] NOT NULL  -- What it allows: read (prices and history), watch (heartbeats and holdings), operate (the queue, the quarantine, backfills, alerts), admin (all of these, and settings).
    user_id text  -- The user that it acts for; NULL = an application that names the user in each request.
    created_at timestamp with time zone NOT NULL DEFAULT pricing.clock()  -- When it was made.
    last_used_at timestamp with time zone  -- When a request last came with it, to the minute.
    expires_at timestamp with time zone  -- When it ends by itself: requests with it are refused from then on. NULL = it lasts until it is removed.
    CONSTRAINT api_tokens_pkey PRIMARY KEY (token_id)
    CONSTRAINT api_tokens_name_key UNIQUE (name)
    CONSTRAINT api_tokens_secret_hash_key UNIQUE (secret_hash)
    CONSTRAINT token_is_hashed CHECK ((octet_length(secret_hash) = 32))
    CONSTRAINT token_name_is_sane CHECK ((name ~ '^[a-z0-9][a-z0-9_-]{0,47}$'::text))
    CONSTRAINT token_scopes_are_known CHECK (((cardinality(scopes) > 0) AND (scopes <@ ARRAY['read'::text, 'watch'::text, 'operate'::text, 'admin'::text])))
    CONSTRAINT user_is_sane CHECK (((length(user_id) >= 1) AND (length(user_id) <= 200)))
);
ALTER TABLE pricing.api_tokens ENABLE ROW LEVEL SECURITY;
CREATE POLICY reader_sees_own ON pricing.api_tokens FOR SELECT TO pricing_reader USING ((user_id = (SESSION_USER)::text));  -- A reader sees no rows of another login.
CREATE POLICY worker_serves_all ON pricing.api_tokens FOR ALL TO pricing_worker USING (true) WITH CHECK (true);  -- A worker acts for every user.
GRANT SELECT ON TABLE pricing.api_tokens TO pricing_worker;

-- Side effects: each is to happen once outside the database. A repeat has the same idempotency key.
CREATE TABLE pricing.async_operations (
    id bigint NOT NULL DEFAULT nextval('pricing.operation_id_seq'::regclass)  -- Rises with each operation, over all states.
    operation_type text NOT NULL  -- What is to happen.
    payload jsonb NOT NULL  -- What it needs to know.
    idempotency_key uuid NOT NULL DEFAULT gen_random_uuid()  -- Reaches the receiver, the same in every attempt.
    status text NOT NULL DEFAULT 'pending'::text  -- pending, processing, completed, failed or cancelled.
    due_at timestamp with time zone NOT NULL  -- Not claimed before.
    attempt smallint NOT NULL DEFAULT 0  -- Attempts begun; a retry by hand begins anew.
    max_attempts smallint NOT NULL  -- Attempts before it is dead, by its type when it was queued.
    claim_token uuid  -- Who does it now: only the claim with this token may finish it.
    claimed_at timestamp with time zone  -- When the last attempt began.
    lease_until timestamp with time zone  -- When the attempt counts as lost.
    worker text  -- Host and process of the last attempt.
    enqueued_at timestamp with time zone NOT NULL  -- When it was queued.
    finished_at timestamp with time zone  -- When it was completed, failed for good or was cancelled.
    errors jsonb NOT NULL DEFAULT '[]'::jsonb  -- All failed attempts: at, attempt, message.
    result jsonb  -- What the handler brought back, if anything.
    recipient text NOT NULL GENERATED ALWAYS AS ("left"(COALESCE((payload ->> 'recipient'::text), ''::text), 100)) STORED  -- The recipient that the payload names, who has a line of messages of its own; empty = it names none.
    priority smallint NOT NULL DEFAULT 2  -- Lower numbers are claimed first. 0 = P0, also in quiet hours and while the recipient fails; 1 = other alerts; 2 = the rest.
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
CREATE TABLE pricing.async_operations_live PARTITION OF pricing.async_operations FOR VALUES IN ('pending', 'processing') (
    CONSTRAINT async_operations_live_pkey PRIMARY KEY (id)
    CONSTRAINT operation_has_its_columns CHECK ((((status = 'processing'::text) = (claim_token IS NOT NULL)) AND ((claim_token IS NULL) = (lease_until IS NULL))))
) WITH (autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=500, fillfactor=40);
CREATE INDEX operations_claimed ON pricing.async_operations_live USING btree (lease_until) WHERE (status = 'processing'::text);
CREATE INDEX operations_due ON pricing.async_operations_live USING btree (operation_type, recipient, priority, due_at, id) WHERE (status = 'pending'::text);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.async_operations_live TO pricing_worker;

-- One row for each backfill someone asked for; its tasks carry its id.
CREATE TABLE pricing.backfills (
    backfill_id uuid NOT NULL DEFAULT gen_random_uuid()  -- Carried by its tasks.
    data_type text NOT NULL  -- What was asked for.
    window_start date NOT NULL  -- First day, included.
    window_end date NOT NULL  -- Last day, included.
    symbols text[]  -- Which instruments; NULL = all that a provider has confirmed.
    run_id text  -- Dagster's id of the run that asked.
    requested_at timestamp with time zone NOT NULL DEFAULT pricing.clock()  -- When it was planned.
    finished_at timestamp with time zone  -- When none of its tasks was open any more.
    tasks integer NOT NULL DEFAULT 0  -- How many tasks it waits for, those of earlier backfills of the same days included.
    cancelled_at timestamp with time zone  -- When a person cancelled it; NULL = nobody did.
    left_out jsonb NOT NULL DEFAULT '{}'::jsonb  -- How many of the instruments were left out, by reason: those of pricing.universe, or no_instrument for a name that is none.
    CONSTRAINT backfills_pkey PRIMARY KEY (backfill_id)
    CONSTRAINT backfill_window_is_upright CHECK ((window_start <= window_end))
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.backfills TO pricing_worker;
GRANT SELECT ON TABLE pricing.backfills TO pricing_reader;

-- Days on which a calendar of the library is wrong: special sessions, closed days, other hours. A person's row comes before one from evidence, and that before a shipped one.
CREATE TABLE pricing.calendar_corrections (
    calendar text NOT NULL  -- The calendar that is corrected.
    day date NOT NULL  -- The day, in the calendar's time zone.
    origin text NOT NULL  -- shipped = comes with the pipeline; operator = a person entered it; evidence = several instruments or providers have bars of this day.
    is_open boolean NOT NULL  -- Whether the exchange trades on that day.
    opens_at time without time zone  -- When trading begins, in the calendar's time zone; NULL = the usual hours.
    closes_at time without time zone  -- When trading ends, in the calendar's time zone; NULL = the usual hours.
    reason text NOT NULL  -- Why the day differs from the library.
    source text  -- Where this is published; NULL = no source was given.
    by_whom text  -- The person who entered it; NULL = nobody did.
    recorded_at timestamp with time zone NOT NULL DEFAULT pricing.clock()  -- When it was stored here.
    CONSTRAINT calendar_corrections_pkey PRIMARY KEY (calendar, day, origin)
    CONSTRAINT calendar_corrections_calendar_fkey FOREIGN KEY (calendar) REFERENCES pricing.calendars(calendar) ON DELETE CASCADE
    CONSTRAINT hours_are_of_an_open_day CHECK ((is_open OR (opens_at IS NULL)))
    CONSTRAINT hours_are_upright CHECK ((opens_at < closes_at))
    CONSTRAINT hours_are_whole CHECK (((opens_at IS NULL) = (closes_at IS NULL)))
    CONSTRAINT only_people_are_named CHECK (((origin = 'operator'::text) = (by_whom IS NOT NULL)))
    CONSTRAINT origin_is_known CHECK ((origin = ANY (ARRAY['shipped'::text, 'operator'::text, 'evidence'::text])))
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.calendar_corrections TO pricing_worker;
GRANT SELECT ON TABLE pricing.calendar_corrections TO pricing_reader;

-- Days about which the two sources of trading days disagree and no correction decides. The first source counts until bars prove it wrong.
CREATE TABLE pricing.calendar_disagreements (
    calendar text NOT NULL  -- The calendar.
    day date NOT NULL  -- The day, in the calendar's time zone.
    is_open boolean NOT NULL  -- Whether the exchange trades by the second source. The first one says the opposite.
    reason text NOT NULL  -- The name of the holiday in the second source, or that it knows no holiday.
    found_at timestamp with time zone NOT NULL DEFAULT pricing.clock()  -- When it was first seen.
    CONSTRAINT calendar_disagreements_pkey PRIMARY KEY (calendar, day)
    CONSTRAINT calendar_disagreements_calendar_fkey FOREIGN KEY (calendar) REFERENCES pricing.calendars(calendar) ON DELETE CASCADE
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.calendar_disagreements TO pricing_worker;
GRANT SELECT ON TABLE pricing.calendar_disagreements TO pricing_reader;

-- Which calendar an instrument gets if its exchange is not known: that of the rule with the longest matching ending, and among these of a rule for its currency. Without a matching rule it gets none.
CREATE TABLE pricing.calendar_rules (
    asset_class text NOT NULL  -- Instruments of this class.
    ending text NOT NULL DEFAULT ''::text  -- How their symbol ends, as providers mark an exchange; empty = any that marks none.
    currency text NOT NULL DEFAULT ''::text  -- Their currency; empty = any.
    calendar text NOT NULL  -- What they get.
    CONSTRAINT calendar_rules_pkey PRIMARY KEY (asset_class, ending, currency)
    CONSTRAINT calendar_rules_calendar_fkey FOREIGN KEY (calendar) REFERENCES pricing.calendars(calendar)
);
GRANT SELECT ON TABLE pricing.calendar_rules TO pricing_reader;
GRANT SELECT ON TABLE pricing.calendar_rules TO pricing_worker;

-- Each day on which a market trades, holidays left out, half days with their early close.
CREATE TABLE pricing.calendar_sessions (
    calendar text NOT NULL  -- Whose session.
    session date NOT NULL  -- Its day, in the exchange's own zone: the day that daily values carry.
    opens_at timestamp with time zone NOT NULL  -- When trading begins.
    closes_at timestamp with time zone NOT NULL  -- When trading ends.
    CONSTRAINT calendar_sessions_pkey PRIMARY KEY (calendar, session)
    CONSTRAINT calendar_sessions_calendar_fkey FOREIGN KEY (calendar) REFERENCES pricing.calendars(calendar) ON DELETE CASCADE
    CONSTRAINT session_is_upright CHECK ((opens_at < closes_at))
);
CREATE INDEX calendar_sessions_closing ON pricing.calendar_sessions USING btree (calendar, closes_at) INCLUDE (session, opens_at);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.calendar_sessions TO pricing_worker;
GRANT SELECT ON TABLE pricing.calendar_sessions TO pricing_reader;

-- Trading calendars, by the ISO 10383 code of their exchange. FX (the week of foreign exchange) and 24/7 are our own.
CREATE TABLE pricing.calendars (
    calendar text NOT NULL  -- Its name: what exchange-calendars knows it by.
    description text NOT NULL DEFAULT ''::text  -- For people.
    sessions_from date  -- First day whose sessions are known; NULL = none are yet.
    sessions_to date  -- Last day whose sessions are known. Beyond it only TTLs count.
    filled_at timestamp with time zone  -- When its sessions were last written.
    time_zone text  -- The time zone of its days and hours; NULL = not known, so that no hours can be corrected.
    known_to date  -- The last day whose holidays are announced, from domain/exchanges.toml; NULL = the library knows.
    failure text  -- Why the last attempt to work out its sessions failed; NULL = it succeeded.
    CONSTRAINT calendars_pkey PRIMARY KEY (calendar)
    CONSTRAINT calendar_is_plain_name CHECK ((calendar ~ '^[A-Z0-9][A-Z0-9/]{1,11}$'::text))
    CONSTRAINT known_span_is_upright CHECK ((((sessions_from IS NULL) = (sessions_to IS NULL)) AND (sessions_from <= sessions_to)))
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.calendars TO pricing_worker;
GRANT SELECT ON TABLE pricing.calendars TO pricing_reader;
GRANT SELECT ON TABLE pricing.calls TO pricing_reader;
GRANT SELECT ON TABLE pricing.calls TO pricing_worker;

-- Where the staleness check of a data type begins, so that it does not pass by a backlog each time. No row: at the beginning.
CREATE TABLE pricing.check_marks (
    data_type text NOT NULL  -- What is checked.
    queued_until timestamp with time zone NOT NULL  -- What fell due before was queued.
    CONSTRAINT check_marks_pkey PRIMARY KEY (data_type)
    CONSTRAINT check_marks_data_type_fkey FOREIGN KEY (data_type) REFERENCES pricing.data_type_registry(data_type) ON DELETE CASCADE
) WITH (fillfactor=50);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.check_marks TO pricing_worker;
GRANT SELECT ON TABLE pricing.check_marks TO pricing_reader;
GRANT SELECT ON TABLE pricing.chosen_routes TO pricing_reader;
GRANT SELECT ON TABLE pricing.chosen_routes TO pricing_worker;

-- Every call to a provider: committed before it is made, completed after. It is also the rate limit's memory and, while open, the quota's reservation.
CREATE TABLE pricing.collector_call_log (
    call_id bigint NOT NULL DEFAULT nextval('pricing.call_id_seq'::regclass)  -- Rises with each call; prices carry it.
    provider text NOT NULL  -- Who was asked.
    data_type text NOT NULL  -- What was asked for.
    symbols text[] NOT NULL  -- What was asked for, in the order of the request.
    window_start date NOT NULL  -- First day asked for; -infinity = the latest price.
    window_end date NOT NULL  -- Last day asked for, included; infinity = the latest price.
    units integer NOT NULL  -- What it costs, in the provider's units.
    reserved_bytes bigint NOT NULL  -- Bytes reserved in the quota until it is settled.
    run_id text  -- Dagster's id of the run that made it.
    worker text NOT NULL  -- Who made it: host and process.
    started_at timestamp with time zone NOT NULL  -- When it was claimed, before it was made.
    finished_at timestamp with time zone  -- When it was settled; NULL = open.
    outcome pricing.call_outcome NOT NULL DEFAULT 'open'::text  -- unknown = the worker was lost; the estimate was booked as used.
    http_status integer  -- Status of the answer; NULL = no answer, or none known.
    wire_bytes bigint  -- Headers and body as they were sent, compressed.
    error text  -- Why it brought nothing, without secrets.
    key_name text NOT NULL DEFAULT 'default'::text  -- The key that it was made with.
    failure_kind text  -- Why the call brought nothing, for the most of its symbols at least. pricing.is_provider_fault says which kinds the breaker counts. Empty when a lost worker was late to tell.
    moved_to timestamp with time zone  -- started_at on the clock as it is now, where that was set back since; -infinity = the call counts no more. NULL = it was not.
    is_unannounced boolean NOT NULL DEFAULT false  -- Its answer came without a Content-Length. Its bytes were counted as they arrived; `status` counts such calls.
    page_of bigint  -- The call of which this is a further request: its page. That call says what came of all. NULL = it is no page.
    CONSTRAINT collector_call_log_pkey PRIMARY KEY (call_id)
    CONSTRAINT open_calls_are_unfinished CHECK ((((outcome)::text = 'open'::text) = (finished_at IS NULL)))
) WITH (fillfactor=80);
CREATE INDEX collector_call_log_failed ON pricing.collector_call_log USING btree (provider, started_at) WHERE (failure_kind IS NOT NULL);
CREATE INDEX collector_call_log_moved ON pricing.collector_call_log USING btree (provider, moved_to) INCLUDE (units, key_name) WHERE (moved_to IS NOT NULL);
CREATE INDEX collector_call_log_open ON pricing.collector_call_log USING btree (provider) INCLUDE (reserved_bytes) WHERE (finished_at IS NULL);
CREATE INDEX collector_call_log_pages ON pricing.collector_call_log USING btree (page_of) WHERE (page_of IS NOT NULL);
CREATE INDEX collector_call_log_rate ON pricing.collector_call_log USING btree (provider, started_at) INCLUDE (units, key_name) WHERE (moved_to IS NULL);
CREATE INDEX collector_call_log_unannounced ON pricing.collector_call_log USING btree (provider, started_at) WHERE is_unannounced;
GRANT SELECT ON TABLE pricing.collector_call_log TO pricing_reader;
GRANT SELECT ON TABLE pricing.collector_call_log TO pricing_worker;

-- Goods of the game.
CREATE TABLE pricing.commodities (
    commodity_id bigint NOT NULL  -- The provider's number of it.
    name text NOT NULL  -- Its name, such as Quantanium.
    code text  -- Its short name, such as QUAN.
    slug text  -- Its name in addresses, such as medical-supplies.
    kind text  -- What kind of good it is, in the provider's word.
    is_available boolean NOT NULL DEFAULT true  -- Whether it is in the game now.
    recorded_at timestamp with time zone NOT NULL  -- When this row last changed here.
    vanished_at timestamp with time zone  -- Since when its provider lists it no more; NULL = it is listed, or known from prices only.
    call_id bigint NOT NULL  -- The call that brought the last change.
    CONSTRAINT commodities_pkey PRIMARY KEY (commodity_id)
);
CREATE INDEX commodities_by_slug ON pricing.commodities USING btree (slug);
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.commodities TO pricing_worker;
GRANT SELECT ON TABLE pricing.commodities TO pricing_reader;

-- What we believed before: the old row of every price that changed, from recorded_at until revised_at.
CREATE TABLE pricing.commodity_price_revisions (
    symbol text NOT NULL  -- The terminal.
    commodity_id bigint NOT NULL  -- The commodity.
    buy numeric  -- What a player paid.
    sell numeric  -- What a player got.
    stock bigint  -- How much a player could buy.
    demand bigint  -- How much a player could sell.
    game_version text  -- The version of the game that the price was of.
    modified_at timestamp with time zone  -- The source's time of the price.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believed it.
    provider text NOT NULL  -- Who had said so.
    call_id bigint NOT NULL  -- The call that had brought it.
    revised_at timestamp with time zone NOT NULL  -- Until when we believed it.
    revised_by bigint NOT NULL  -- The call that brought another price, or none.
    quality text NOT NULL DEFAULT ''::text  -- Of which quality; empty = the provider named none.
    CONSTRAINT commodity_price_revisions_pkey PRIMARY KEY (symbol, commodity_id, quality, revised_at)
    CONSTRAINT belief_lasts CHECK ((revised_at > recorded_at))
);
CREATE INDEX commodity_price_revisions_by_commodity ON pricing.commodity_price_revisions USING btree (commodity_id, revised_at);
GRANT INSERT, SELECT ON TABLE pricing.commodity_price_revisions TO pricing_worker;
GRANT SELECT ON TABLE pricing.commodity_price_revisions TO pricing_reader;

-- Current belief: what each terminal trades. Money is in units of the game, amounts are in SCU. Both prices NULL = not traded there any more.
CREATE TABLE pricing.commodity_prices (
    symbol text NOT NULL  -- The terminal.
    commodity_id bigint NOT NULL  -- The commodity.
    buy numeric  -- What a player pays for one SCU; NULL = the terminal sells none.
    sell numeric  -- What a player gets for one SCU; NULL = the terminal takes none.
    stock bigint  -- How much a player can buy; NULL = nobody has reported it.
    demand bigint  -- How much a player can sell; NULL = nobody has reported it.
    game_version text  -- The version of the game that the price is of; NULL = no version was known.
    modified_at timestamp with time zone  -- The source's time of the price; NULL = the source says never.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believe it.
    provider text NOT NULL  -- Who said so.
    call_id bigint NOT NULL  -- The call that brought it.
    quality text NOT NULL DEFAULT ''::text  -- Of which quality, in the provider's word; empty = it names none.
    CONSTRAINT commodity_prices_pkey PRIMARY KEY (symbol, commodity_id, quality)
    CONSTRAINT commodity_prices_commodity_id_fkey FOREIGN KEY (commodity_id) REFERENCES pricing.commodities(commodity_id)
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
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.commodity_prices TO pricing_worker;
GRANT SELECT ON TABLE pricing.commodity_prices TO pricing_reader;

-- When each pair of a data type without prices was last confirmed: what its staleness is judged by.
CREATE TABLE pricing.confirmed_pairs (
    data_type text NOT NULL  -- What was asked for.
    symbol text NOT NULL  -- About whom or what.
    fetched_at timestamp with time zone NOT NULL  -- When a provider last answered; advances with every valid answer.
    provider text NOT NULL  -- Who answered.
    call_id bigint NOT NULL  -- The call that was answered: collector_call_log has its run, time and bytes.
    cache_ttl_minutes integer  -- Overrides the registry's TTL for this pair; refreshes never touch it.
    CONSTRAINT confirmed_pairs_pkey PRIMARY KEY (data_type, symbol)
    CONSTRAINT confirmed_ttl_is_positive CHECK ((cache_ttl_minutes > 0))
) WITH (fillfactor=70);
CREATE TRIGGER own_ttl_changed AFTER UPDATE OF cache_ttl_minutes ON pricing.confirmed_pairs FOR EACH ROW WHEN ((old.cache_ttl_minutes IS DISTINCT FROM new.cache_ttl_minutes)) EXECUTE FUNCTION pricing.own_ttl_changed();
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.confirmed_pairs TO pricing_worker;
GRANT SELECT ON TABLE pricing.confirmed_pairs TO pricing_reader;

-- What a data type can consist of. Each has storage of its own.
CREATE TABLE pricing.contents (
    contents text NOT NULL  -- Its name.
    view_prefix text NOT NULL  -- The view of a data type has this before the name of the type.
    description text NOT NULL  -- For people.
    CONSTRAINT contents_pkey PRIMARY KEY (contents)
    CONSTRAINT contents_is_plain_name CHECK ((contents ~ '^[a-z][a-z0-9_]{0,30}$'::text))
);
GRANT SELECT ON TABLE pricing.contents TO pricing_reader;
GRANT SELECT ON TABLE pricing.contents TO pricing_worker;

-- Of which days providers have told all splits and dividends of an instrument. Of other days nothing is known, which is not the same as none.
CREATE TABLE pricing.corporate_action_pairs (
    asset_class text NOT NULL  -- With symbol: the instrument.
    symbol text NOT NULL  -- With asset_class: the instrument.
    covered datemultirange NOT NULL  -- The days of which they were told.
    fetched_at timestamp with time zone NOT NULL  -- When they were last told.
    provider text NOT NULL  -- Who told them last.
    call_id bigint NOT NULL  -- The call in which they were told last.
    gains_covered datemultirange NOT NULL DEFAULT '{}'::datemultirange  -- The days for which all capital gains are known. Not every provider reports them.
    CONSTRAINT corporate_action_pairs_pkey PRIMARY KEY (asset_class, symbol)
);
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.corporate_action_pairs TO pricing_worker;
GRANT SELECT ON TABLE pricing.corporate_action_pairs TO pricing_reader;

-- What we believed before, from recorded_at until revised_at.
CREATE TABLE pricing.corporate_action_revisions (
    asset_class text NOT NULL  -- As in corporate_actions.
    symbol text NOT NULL  -- As in corporate_actions.
    ex_on date NOT NULL  -- As in corporate_actions.
    kind text NOT NULL  -- As in corporate_actions.
    new_shares numeric  -- As in corporate_actions.
    old_shares numeric  -- As in corporate_actions.
    amount bigint  -- As in corporate_actions.
    scale smallint  -- As in corporate_actions.
    currency text  -- As in corporate_actions.
    provider text NOT NULL  -- Who had said so.
    call_id bigint NOT NULL  -- The call that had brought it.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believed it.
    revised_at timestamp with time zone NOT NULL  -- Until when we believed it.
    revised_by bigint NOT NULL  -- The call that brought another one; 0 = a person removed or replaced it.
    entered_by text  -- As in corporate_actions.
    reason text  -- As in corporate_actions.
    removed_by text  -- Who removed or replaced it by hand; its provider is not believed when it says the same again.
    removed_because text  -- Why, in that person's words.
    part smallint NOT NULL DEFAULT 1  -- As in corporate_actions.
    CONSTRAINT corporate_action_revisions_pkey PRIMARY KEY (asset_class, symbol, ex_on, kind, part, revised_at)
    CONSTRAINT because_is_short CHECK ((length(removed_because) <= 500))
);
GRANT INSERT, SELECT ON TABLE pricing.corporate_action_revisions TO pricing_worker;
GRANT SELECT ON TABLE pricing.corporate_action_revisions TO pricing_reader;

-- Splits, spin-offs, dividends and capital gains of instruments, as we believe them now. They never change stored prices; reads apply them.
CREATE TABLE pricing.corporate_actions (
    asset_class text NOT NULL  -- With symbol: the instrument.
    symbol text NOT NULL  -- With asset_class: the instrument.
    ex_on date NOT NULL  -- The first trading day without it: prices before this day are those that it adjusts.
    kind text NOT NULL  -- split; spin_off: divides prices like a split, and changes no volume; dividend; capital_gain: what a fund pays out of gains.
    new_shares numeric  -- Of a split or spin-off: so many new shares ...
    old_shares numeric  -- ... for so many old ones.
    amount bigint  -- Of a payment: cash for one share as it was on that day, before taxes, in units of 10^-scale of its currency.
    scale smallint  -- Decimals of amount.
    currency text  -- Of a payment: ISO 4217 or a coin (USDT), which may differ from that of the prices; NULL = that of the prices.
    provider text NOT NULL  -- Who said so; "by hand" is a person, named by entered_by.
    call_id bigint NOT NULL  -- The call that brought it; 0 = none, it was entered by hand.
    recorded_at timestamp with time zone NOT NULL  -- When we came to believe it.
    entered_by text  -- Who entered it by hand; NULL = a provider told it.
    reason text  -- Why so, in that person's words.
    judged_at timestamp with time zone  -- When quarantined values of the instrument were judged anew with it; NULL = a worker will.
    part smallint NOT NULL DEFAULT 1  -- Distinguishes payments of one kind on one day; the number means nothing else.
    CONSTRAINT corporate_actions_pkey PRIMARY KEY (asset_class, symbol, ex_on, kind, part)
    CONSTRAINT amount_is_positive CHECK ((amount > 0))
    CONSTRAINT kind_is_known CHECK ((kind = ANY (ARRAY['split'::text, 'spin_off'::text, 'dividend'::text, 'capital_gain'::text])))
    CONSTRAINT payment_has_amount CHECK (((kind = ANY (ARRAY['dividend'::text, 'capital_gain'::text])) = ((amount IS NOT NULL) AND (scale IS NOT NULL))))
    CONSTRAINT reason_is_short CHECK ((length(reason) <= 500))
    CONSTRAINT shares_are_positive CHECK (((new_shares > (0)::numeric) AND (old_shares > (0)::numeric) AND (new_shares < 'Infinity'::numeric) AND (old_shares < 'Infinity'::numeric)))
    CONSTRAINT split_has_shares CHECK (((kind = ANY (ARRAY['split'::text, 'spin_off'::text])) = ((new_shares IS NOT NULL) AND (old_shares IS NOT NULL))))
);
CREATE INDEX corporate_actions_unjudged ON pricing.corporate_actions USING btree (recorded_at) WHERE (judged_at IS NULL);
CREATE UNIQUE INDEX corporate_actions_one_ratio ON pricing.corporate_actions USING btree (asset_class, symbol, ex_on) WHERE (new_shares IS NOT NULL);
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.corporate_actions TO pricing_worker;
GRANT SELECT ON TABLE pricing.corporate_actions TO pricing_reader;
GRANT SELECT ON TABLE pricing.counted_calls TO pricing_reader;
GRANT SELECT ON TABLE pricing.counted_calls TO pricing_worker;

-- What fails in Dagster now. The sensor note_failures writes jobs whose last run failed, and sensors and schedules whose last tick failed. The daemon of `up` writes code locations that do not load, and sensors that have not worked since their code location was loaded.
CREATE TABLE pricing.dagster_failures (
    kind text NOT NULL  -- run = a job, or what a run without one materializes; tick = a sensor or schedule; location = a code location; sensor = a sensor that has not worked since its code location was loaded.
    name text NOT NULL  -- The job, sensor, schedule or code location; of a run that was started on assets, their names.
    run_id text  -- The run that failed; NULL for all others.
    reason text NOT NULL  -- The first line of the error, or what the sensor waits for.
    failed_at timestamp with time zone NOT NULL  -- When the run failed, or when something else was first seen to fail.
    CONSTRAINT dagster_failures_pkey PRIMARY KEY (kind, name)
    CONSTRAINT dagster_failure_kind_is_known CHECK ((kind = ANY (ARRAY['run'::text, 'tick'::text, 'location'::text, 'sensor'::text])))
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.dagster_failures TO pricing_worker;
GRANT SELECT ON TABLE pricing.dagster_failures TO pricing_reader;

-- Changes of stored data that have no number yet: a row for each call and month, added in the transaction that stores. pricing.number_changes moves them to data_versions.
CREATE TABLE pricing.data_changes (
    data_type text NOT NULL  -- Whose data changed.
    month date NOT NULL  -- First day of the UTC month of observed_at whose history changed; -infinity = what is latest changed.
    changes bigint NOT NULL  -- How many values were added, changed or taken out.
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.data_changes TO pricing_worker;
GRANT SELECT ON TABLE pricing.data_changes TO pricing_reader;

-- Providers, their address and their allowances.
CREATE TABLE pricing.data_collectors (
    provider text NOT NULL  -- Its name, as routes and calls have it.
    description text NOT NULL DEFAULT ''::text  -- For people.
    base_url text NOT NULL  -- Where it answers; the sandbox's address takes its place while the sandbox is on.
    is_active boolean NOT NULL DEFAULT true  -- False = it is not called; what it alone serves fails as misconfigured.
    max_in_flight integer NOT NULL DEFAULT 10  -- Calls of all workers together that may be under way at once.
    throttle_pause_seconds integer NOT NULL DEFAULT 5  -- First pause after a refusal for speed that names no time; doubles while refusals go on.
    quota_bytes bigint NOT NULL DEFAULT '21474836480'::bigint  -- Bytes allowed in any 720 hours (30 days of exactly 24 hours).
    request_delay_ms integer NOT NULL DEFAULT 0  -- Least time between two calls of all workers together; twice as long while the provider says that 5 units or fewer are left.
    CONSTRAINT data_collectors_pkey PRIMARY KEY (provider)
    CONSTRAINT delay_is_sane CHECK (((request_delay_ms >= 0) AND (request_delay_ms <= 3600000)))
    CONSTRAINT in_flight_is_sane CHECK (((max_in_flight >= 1) AND (max_in_flight <= 10)))
    CONSTRAINT pause_is_positive CHECK ((throttle_pause_seconds > 0))
    CONSTRAINT provider_is_plain_name CHECK ((provider ~ '^[a-z][a-z0-9_]{0,47}$'::text))
    CONSTRAINT quota_is_positive CHECK ((quota_bytes > 0))
);
CREATE TRIGGER add_provider_state AFTER INSERT ON pricing.data_collectors FOR EACH ROW EXECUTE FUNCTION pricing.add_provider_state();
CREATE TRIGGER provider_shown_anew AFTER UPDATE OF is_active, base_url ON pricing.data_collectors FOR EACH ROW WHEN (((old.is_active IS DISTINCT FROM new.is_active) OR (old.base_url IS DISTINCT FROM new.base_url))) EXECUTE FUNCTION pricing.registry_changed();
CREATE TRIGGER provider_switched AFTER UPDATE OF is_active, base_url, quota_bytes ON pricing.data_collectors FOR EACH ROW WHEN (((old.is_active IS DISTINCT FROM new.is_active) OR (old.base_url IS DISTINCT FROM new.base_url) OR (old.quota_bytes IS DISTINCT FROM new.quota_bytes))) EXECUTE FUNCTION pricing.provider_switched();
CREATE TRIGGER registry_changed AFTER INSERT OR DELETE ON pricing.data_collectors FOR EACH ROW EXECUTE FUNCTION pricing.registry_changed();
GRANT SELECT ON TABLE pricing.data_collectors TO pricing_reader;
GRANT SELECT ON TABLE pricing.data_collectors TO pricing_worker;

-- The single source of truth on data types. One INSERT adds a type: its storage, Dagster assets, freshness policy and refresh follow.
CREATE TABLE pricing.data_type_registry (
    data_type text NOT NULL  -- Its name; it cannot be changed.
    description text NOT NULL DEFAULT ''::text  -- For people.
    asset_class text NOT NULL DEFAULT 'equity'::text  -- The instruments this type applies to: those of the same asset_class.
    fetcher text NOT NULL  -- What is asked of a provider; provider_routing says which provider.
    default_ttl_minutes integer NOT NULL  -- How old a watched price may grow before it is due again.
    table_name text NOT NULL DEFAULT ''::text  -- View or table the staleness function judges; empty = the view latest_price_<data_type>, of a document type document_<data_type>, made by a trigger.
    symbol_column text NOT NULL DEFAULT 'symbol'::text  -- Column of table_name with the symbol, text.
    timestamp_column text NOT NULL DEFAULT 'fetched_at'::text  -- Column of table_name that staleness is judged by, timestamptz.
    staleness_function text NOT NULL DEFAULT ''::text  -- Function (timestamptz, integer) returning boolean in this schema; it gets the timestamp and the TTL in minutes.
    refresh_strategy text NOT NULL DEFAULT 'on-demand'::text  -- on-demand = while somebody watches; scheduled = by refresh_schedule too.
    refresh_schedule text  -- Cron expression of a scheduled type, in schedule_timezone: five fields of numbers, names, *, ranges, steps and lists.
    schedule_timezone text NOT NULL DEFAULT 'UTC'::text  -- Time zone of refresh_schedule.
    history_from date  -- First day a backfill may ask for; NULL = the type keeps no history to backfill.
    estimated_data_size_bytes bigint NOT NULL DEFAULT 50000  -- Bytes on the wire per symbol, reserved against the quota before a call.
    is_active boolean NOT NULL DEFAULT true  -- False = retired: not queued any more; its prices stay.
    created_at timestamp with time zone NOT NULL DEFAULT pricing.clock()  -- When it was added.
    background_ttl_minutes integer NOT NULL DEFAULT 1440  -- How old the price of a held pair may grow while nobody watches it.
    thin_after_days integer  -- Quotes older than so many days are thinned to one for every thin_to_minutes; NULL = all are kept for ever.
    thin_to_minutes integer NOT NULL DEFAULT 1440  -- Of each such span of a UTC day the last quote stays; it divides a day, which is the default.
    owner text  -- Who answers for it: an email address, or team:<name>; NULL = nobody in particular. Dagster shows it with the assets.
    contents text NOT NULL DEFAULT ''::text  -- What it consists of, by its fetcher; a trigger writes it.
    has_own_table boolean NOT NULL DEFAULT false  -- Whether table_name is a table or view that the user has made; a trigger writes it. Such a table is filled with what is fetched.
    days_ahead integer  -- For how many days of the product's calendar slots are asked for, 1 = today; only of the fetcher slots.
    keep_months integer  -- Months of history, beside the current one, that stay in the database; older ones leave it once their file is verified. NULL = all stay.
    CONSTRAINT data_type_registry_pkey PRIMARY KEY (data_type)
    CONSTRAINT contents_are_known FOREIGN KEY (contents) REFERENCES pricing.contents(contents)
    CONSTRAINT fetcher_is_known FOREIGN KEY (fetcher) REFERENCES pricing.fetchers(fetcher)
    CONSTRAINT asset_class_is_plain_name CHECK ((asset_class ~ '^[a-z][a-z0-9_]{0,47}$'::text))
    CONSTRAINT background_ttl_is_positive CHECK ((background_ttl_minutes > 0))
    CONSTRAINT data_type_is_plain_name CHECK ((data_type ~ '^[a-z][a-z0-9_]{0,47}$'::text))
    CONSTRAINT days_ahead_are_at_most_two_years CHECK (((days_ahead >= 1) AND (days_ahead <= 731)))
    CONSTRAINT estimate_is_positive CHECK ((estimated_data_size_bytes > 0))
    CONSTRAINT history_begins_within_reason CHECK (((history_from >= '1800-01-01'::date) AND (history_from <= '2999-12-31'::date)))
    CONSTRAINT keep_months_is_sane CHECK (((keep_months >= 3) AND (keep_months <= 1200)))
    CONSTRAINT months_are_thinned_before_they_leave CHECK ((thin_after_days < (keep_months * 28)))
    CONSTRAINT names_are_not_cut CHECK ((63 >= ALL (ARRAY[octet_length(table_name), octet_length(symbol_column), octet_length(timestamp_column), octet_length(staleness_function)])))
    CONSTRAINT only_prices_have_backfill CHECK (((contents = 'prices'::text) OR (history_from IS NULL)))
    CONSTRAINT only_quotes_are_thinned CHECK (((thin_after_days IS NULL) OR (fetcher = 'quote'::text)))
    CONSTRAINT owner_is_email_or_team CHECK ((owner ~ '^(team:[A-Za-z0-9_-]{1,100}|[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,24})$'::text))
    CONSTRAINT scheduled_types_have_a_schedule CHECK (((refresh_strategy = 'scheduled'::text) = (refresh_schedule IS NOT NULL)))
    CONSTRAINT slots_have_days_ahead CHECK (((fetcher = 'slots'::text) = (days_ahead IS NOT NULL)))
    CONSTRAINT strategy_is_known CHECK ((refresh_strategy = ANY (ARRAY['on-demand'::text, 'scheduled'::text])))
    CONSTRAINT thin_after_is_positive CHECK ((thin_after_days > 0))
    CONSTRAINT thinning_divides_a_day CHECK (((thin_to_minutes > 0) AND (thin_to_minutes <= 1440) AND ((1440 % thin_to_minutes) = 0)))
    CONSTRAINT ttl_is_positive CHECK ((default_ttl_minutes > 0))
);
CREATE TRIGGER apply_fetcher BEFORE INSERT OR UPDATE ON pricing.data_type_registry FOR EACH ROW EXECUTE FUNCTION pricing.apply_fetcher();
CREATE TRIGGER check_data_type BEFORE INSERT OR UPDATE ON pricing.data_type_registry FOR EACH ROW EXECUTE FUNCTION pricing.check_data_type();
CREATE TRIGGER drop_storage BEFORE DELETE ON pricing.data_type_registry FOR EACH ROW EXECUTE FUNCTION pricing.drop_storage();
CREATE TRIGGER fetcher_changed AFTER UPDATE OF fetcher ON pricing.data_type_registry FOR EACH ROW WHEN ((old.fetcher <> new.fetcher)) EXECUTE FUNCTION pricing.fetcher_changed();
CREATE TRIGGER make_storage AFTER INSERT ON pricing.data_type_registry FOR EACH ROW EXECUTE FUNCTION pricing.make_storage();
CREATE TRIGGER registry_changed AFTER INSERT OR DELETE OR UPDATE ON pricing.data_type_registry FOR EACH STATEMENT EXECUTE FUNCTION pricing.registry_changed();
CREATE TRIGGER schedule_added AFTER INSERT ON pricing.data_type_registry FOR EACH ROW EXECUTE FUNCTION pricing.schedule_changed();
CREATE TRIGGER schedule_changed AFTER UPDATE OF refresh_strategy, refresh_schedule, schedule_timezone, is_active ON pricing.data_type_registry FOR EACH ROW WHEN (((old.refresh_strategy IS DISTINCT FROM new.refresh_strategy) OR (old.refresh_schedule IS DISTINCT FROM new.refresh_schedule) OR (old.schedule_timezone IS DISTINCT FROM new.schedule_timezone) OR (old.is_active IS DISTINCT FROM new.is_active))) EXECUTE FUNCTION pricing.schedule_changed();
CREATE TRIGGER ttl_changed AFTER UPDATE OF default_ttl_minutes, background_ttl_minutes, staleness_function, table_name, symbol_column, timestamp_column, is_active ON pricing.data_type_registry FOR EACH ROW WHEN (((old.default_ttl_minutes IS DISTINCT FROM new.default_ttl_minutes) OR (old.background_ttl_minutes IS DISTINCT FROM new.background_ttl_minutes) OR (old.staleness_function IS DISTINCT FROM new.staleness_function) OR (old.table_name IS DISTINCT FROM new.table_name) OR (old.symbol_column IS DISTINCT FROM new.symbol_column) OR (old.timestamp_column IS DISTINCT FROM new.timestamp_column) OR (old.is_active IS DISTINCT FROM new.is_active))) EXECUTE FUNCTION pricing.ttl_changed();
CREATE TRIGGER type_deleted AFTER DELETE ON pricing.data_type_registry FOR EACH ROW EXECUTE FUNCTION pricing.type_retired();
CREATE TRIGGER type_retired AFTER UPDATE OF is_active ON pricing.data_type_registry FOR EACH ROW WHEN ((old.is_active AND (NOT new.is_active))) EXECUTE FUNCTION pricing.type_retired();
GRANT SELECT ON TABLE pricing.data_type_registry TO pricing_reader;
GRANT SELECT ON TABLE pricing.data_type_registry TO pricing_worker;

-- The version of the stored data of each type and month. Versions rise in the order of commits, over all rows.
CREATE TABLE pricing.data_versions (
    data_type text NOT NULL  -- Whose data it is.
    month date NOT NULL  -- As in data_changes.
    version bigint NOT NULL  -- Number of the last change. Dagster shows it as the data version.
    changes bigint NOT NULL  -- How many values were ever added, changed or taken out.
    CONSTRAINT data_versions_pkey PRIMARY KEY (data_type, month)
    CONSTRAINT data_versions_data_type_fkey FOREIGN KEY (data_type) REFERENCES pricing.data_type_registry(data_type) ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX data_versions_in_order ON pricing.data_versions USING btree (version);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.data_versions TO pricing_worker;
GRANT SELECT ON TABLE pricing.data_versions TO pricing_reader;

-- One row for each wanted (data_type, symbol), so that the staleness check costs what is due, not what is watched.
CREATE TABLE pricing.demand (
    data_type text NOT NULL  -- What is wanted.
    symbol text NOT NULL  -- What is wanted.
    due_at timestamp with time zone NOT NULL  -- When to look at the pair next. While a task for it is live, it is not looked at.
    became_due_at timestamp with time zone  -- A task for the pair is live, and owed since then; NULL = none is.
    failures integer NOT NULL DEFAULT 0  -- Dead tasks in a row.
    backoff_until timestamp with time zone  -- A pair whose task died backs off until then: up to 10 min after trouble, 1 h after a cancel by hand, 1 h doubling to 24 h after a fault of its symbol.
    last_failure text  -- Why the last task died.
    created_at timestamp with time zone NOT NULL DEFAULT pricing.clock()  -- Since when somebody wants it.
    read_at timestamp with time zone  -- A read has asked for the pair, last at this time, and is not served yet: it counts as a viewer. NULL = none waits.
    owed_since timestamp with time zone  -- Since when the pair is owed a price that trouble keeps away: a task for it died, by no fault of its symbol. NULL = no such trouble.
    is_background boolean NOT NULL DEFAULT false  -- The pair was judged last while nobody watched: due_at may be by the background TTL, and says nothing to a viewer.
    stretched_from timestamp with time zone  -- Since when the pair is due by its TTL, while it is queued later (due_at) because TTLs are stretched; NULL = it is not stretched. It counts as owed since then.
    CONSTRAINT demand_pkey PRIMARY KEY (data_type, symbol)
) WITH (fillfactor=70);
CREATE INDEX demand_due ON pricing.demand USING btree (data_type, due_at);
CREATE INDEX demand_owed ON pricing.demand USING btree (data_type, due_at) WHERE (owed_since IS NOT NULL);
CREATE INDEX demand_stretched ON pricing.demand USING btree (data_type) WHERE (stretched_from IS NOT NULL);
CREATE INDEX demand_watched ON pricing.demand USING btree (data_type) WHERE (NOT is_background);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.demand TO pricing_worker;
GRANT SELECT ON TABLE pricing.demand TO pricing_reader;

-- What we believed before: the old body of every document that changed, from recorded_at until revised_at.
CREATE TABLE pricing.document_revisions (
    data_type text NOT NULL  -- What kind of document it was.
    symbol text NOT NULL  -- Whom it was about.
    period date NOT NULL  -- The day the provider filed it under; -infinity = it was about no period.
    body jsonb  -- What we believed; NULL = the provider had withdrawn it.
    provider text NOT NULL  -- Who had said so.
    call_id bigint NOT NULL  -- The call that had brought it.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believed it.
    revised_at timestamp with time zone NOT NULL  -- Until when we believed it.
    revised_by bigint NOT NULL  -- The call that brought another body, or none.
    CONSTRAINT document_revisions_pkey PRIMARY KEY (data_type, symbol, period, revised_at)
);
GRANT INSERT, SELECT ON TABLE pricing.document_revisions TO pricing_worker;
GRANT SELECT ON TABLE pricing.document_revisions TO pricing_reader;

-- Current belief: one document for each pair and fiscal period. When a pair was last confirmed is in document_pairs.
CREATE TABLE pricing.documents (
    data_type text NOT NULL  -- What kind of document it is.
    symbol text NOT NULL  -- Whom it is about.
    period date NOT NULL DEFAULT '-infinity'::date  -- The day the provider files it under: of an earnings report, or the last of a fiscal year; -infinity = it is about no period.
    body jsonb  -- The answer as it was checked, with the provider's own names and digits; NULL = the provider has withdrawn it.
    provider text NOT NULL  -- Who said so.
    call_id bigint NOT NULL  -- The call that brought it.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believe it.
    CONSTRAINT documents_pkey PRIMARY KEY (data_type, symbol, period)
    CONSTRAINT body_is_an_object CHECK ((jsonb_typeof(body) = 'object'::text))
);
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.documents TO pricing_worker;
GRANT SELECT ON TABLE pricing.documents TO pricing_reader;

-- Workers that drain the queue. Alive = not finished and the lease not run out; run status says nothing about it.
CREATE TABLE pricing.drains (
    drain_id uuid NOT NULL DEFAULT gen_random_uuid()  -- Its name.
    run_id text  -- Dagster's id of the run that drains.
    worker text NOT NULL  -- Host and process.
    started_at timestamp with time zone NOT NULL  -- When it began.
    ends_at timestamp with time zone NOT NULL  -- When it hands over to a successor.
    lease_until timestamp with time zone NOT NULL  -- Alive until then without a sign of life.
    finished_at timestamp with time zone  -- When it ended in good order.
    requested_at timestamp with time zone  -- When its run was requested; NULL = not known.
    providers text[]  -- The providers that its worker asks; NULL = not known.
    CONSTRAINT drains_pkey PRIMARY KEY (drain_id)
);
CREATE INDEX drains_alive ON pricing.drains USING btree (lease_until) WHERE (finished_at IS NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.drains TO pricing_worker;
GRANT SELECT ON TABLE pricing.drains TO pricing_reader;

-- When each periodic duty last succeeded and last failed. The row of follow_clock tells when the database's clock was last looked at: a time in the future means that the clock was set back since.
CREATE TABLE pricing.duties (
    duty text NOT NULL  -- The function's name.
    last_success_at timestamp with time zone  -- NULL = never yet.
    last_failure_at timestamp with time zone  -- NULL = never yet.
    last_error text  -- Why it last failed, in the database's words.
    not_before timestamp with time zone  -- It is not run before: the clock was set forward, or the pipeline was off for days, and what it throws away cannot be brought back.
    CONSTRAINT duties_pkey PRIMARY KEY (duty)
);
GRANT SELECT ON TABLE pricing.duties TO pricing_reader;
GRANT SELECT ON TABLE pricing.duties TO pricing_worker;

-- Pairs without a price of which a provider has validly said that it has none. The row stays when a price comes, and says nothing then.
CREATE TABLE pricing.empty_answers (
    data_type text NOT NULL  -- What was asked for.
    symbol text NOT NULL  -- What was asked for.
    fetched_at timestamp with time zone NOT NULL  -- When a provider last said so.
    CONSTRAINT empty_answers_pkey PRIMARY KEY (data_type, symbol)
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.empty_answers TO pricing_worker;
GRANT SELECT ON TABLE pricing.empty_answers TO pricing_reader;

-- What went wrong in an ETL, which went on without it. Kept for 90 days.
CREATE TABLE pricing.etl_warnings (
    warning_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- Its number.
    etl text NOT NULL  -- Which ETL: commodities.
    run text NOT NULL  -- Which run of it.
    step text NOT NULL  -- What it was doing: game versions, terminals, commodities or prices.
    kind text NOT NULL  -- What kind of failure: as of tasks, or rejected_rows, refused (no call was allowed) and lock_lost.
    message text NOT NULL  -- What happened, and what to do.
    warned_at timestamp with time zone NOT NULL  -- When.
    CONSTRAINT etl_warnings_pkey PRIMARY KEY (warning_id)
);
CREATE INDEX etl_warnings_by_time ON pricing.etl_warnings USING btree (warned_at);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.etl_warnings TO pricing_worker;
GRANT SELECT ON TABLE pricing.etl_warnings TO pricing_reader;

-- How symbols of an exchange end, such as .L, :LSE or :XLON. If several exchanges share an ending, the currency must tell which is meant.
CREATE TABLE pricing.exchange_endings (
    ending text NOT NULL  -- The last part of a symbol, with its dot or colon.
    mic text NOT NULL  -- An exchange whose symbols end like this at some provider.
    CONSTRAINT exchange_endings_pkey PRIMARY KEY (ending, mic)
    CONSTRAINT exchange_endings_mic_fkey FOREIGN KEY (mic) REFERENCES pricing.exchanges(mic) ON DELETE CASCADE
);
GRANT SELECT ON TABLE pricing.exchange_endings TO pricing_reader;
GRANT SELECT ON TABLE pricing.exchange_endings TO pricing_worker;

-- Exchanges, from domain/exchanges.toml. Each upgrade writes them again.
CREATE TABLE pricing.exchanges (
    mic text NOT NULL  -- Its code by ISO 10383.
    name text NOT NULL  -- For people.
    calendar text  -- The calendar that it follows, alone or with others; NULL = not known.
    currency text  -- The currency of all its shares; NULL = they have several.
    minor_unit text  -- The code of the minor unit in which it quotes prices, such as GBX; NULL = whole units.
    CONSTRAINT exchanges_pkey PRIMARY KEY (mic)
    CONSTRAINT exchanges_calendar_fkey FOREIGN KEY (calendar) REFERENCES pricing.calendars(calendar)
    CONSTRAINT mic_is_code CHECK ((mic ~ '^[A-Z0-9]{4}$'::text))
);
GRANT SELECT ON TABLE pricing.exchanges TO pricing_reader;
GRANT SELECT ON TABLE pricing.exchanges TO pricing_worker;

-- Months of history that are a file outside the database.
CREATE TABLE pricing.exported_months (
    data_type text NOT NULL  -- Whose history.
    month date NOT NULL  -- First day of a UTC month of observed_at.
    versions bigint NOT NULL  -- Values in the file: those that are believed, and those that were.
    mark jsonb NOT NULL  -- What the database had of the month then, as pricing.month_marks tells it. Another one now = the export is due again.
    file_bytes bigint NOT NULL  -- Size of the file.
    sha256 text NOT NULL  -- Digest of the file.
    exported_at timestamp with time zone NOT NULL  -- When the file was written last.
    moved_at timestamp with time zone  -- Since when the values are in the file alone, but for the newest ones of each pair; NULL = all are in the database, too.
    coming jsonb NOT NULL DEFAULT '{}'::jsonb  -- Files that are about to take the place of this one, or were when their export ended: sizes by digest. Reads accept them, too.
    CONSTRAINT exported_months_pkey PRIMARY KEY (data_type, month)
    CONSTRAINT data_type_is_registered FOREIGN KEY (data_type) REFERENCES pricing.data_type_registry(data_type) ON DELETE CASCADE
    CONSTRAINT month_begins_on_its_first CHECK ((EXTRACT(day FROM month) = (1)::numeric))
);
GRANT SELECT ON TABLE pricing.exported_months TO pricing_reader;
GRANT SELECT ON TABLE pricing.exported_months TO pricing_worker;

-- Recipients whose last attempt failed. The next success deletes the row. After three failures in a row the breaker opens, and the messages of the recipient wait.
CREATE TABLE pricing.failing_recipients (
    operation_type text NOT NULL  -- The channel, or another operation type whose payload names the recipient.
    recipient text NOT NULL  -- The recipient that cannot be reached.
    since timestamp with time zone NOT NULL  -- When the first of these attempts failed.
    failed_at timestamp with time zone NOT NULL  -- When the last of them failed.
    failures integer NOT NULL DEFAULT 0  -- How many attempts have failed in a row.
    breaker_openings integer NOT NULL DEFAULT 0  -- How often the breaker has opened since the first failure. Each time it stays open twice as long, up to 16 minutes.
    breaker_until timestamp with time zone  -- Until then only P0 is attempted; NULL = the breaker has not opened.
    is_dead boolean NOT NULL DEFAULT false  -- Whether the recipient counts as unreachable: a message was given up, or three attempts failed.
    last_error text NOT NULL DEFAULT ''::text  -- Why the last attempt failed.
    CONSTRAINT failing_recipients_pkey PRIMARY KEY (operation_type, recipient)
) WITH (fillfactor=50);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.failing_recipients TO pricing_worker;

-- What a provider can be asked for. The registry names one for each data type.
CREATE TABLE pricing.fetchers (
    fetcher text NOT NULL  -- Its name.
    contents text NOT NULL  -- What the answers consist of.
    asset_classes text[]  -- The classes of instruments that have it; NULL = all.
    description text NOT NULL  -- For people.
    CONSTRAINT fetchers_pkey PRIMARY KEY (fetcher)
    CONSTRAINT fetchers_contents_fkey FOREIGN KEY (contents) REFERENCES pricing.contents(contents)
);
CREATE INDEX fetchers_by_contents ON pricing.fetchers USING btree (contents);
GRANT SELECT ON TABLE pricing.fetchers TO pricing_reader;
GRANT SELECT ON TABLE pricing.fetchers TO pricing_worker;

-- How each watched data type served its viewers, looked at every five minutes and kept for seven days: what plots are drawn from.
CREATE TABLE pricing.freshness_samples (
    data_type text NOT NULL  -- Of which pairs.
    at timestamp with time zone NOT NULL  -- When it was looked at.
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

-- Versions of the game. Each new one begins with new prices.
CREATE TABLE pricing.game_versions (
    version text NOT NULL  -- Its name, such as 4.1.
    seen_at timestamp with time zone NOT NULL  -- When a provider first named it.
    live_since timestamp with time zone  -- Since when it is what people play; NULL = it never was, as far as we know.
    live_until timestamp with time zone  -- Until when it was; NULL while it is. One version is live at most.
    earlier_live_times tstzmultirange NOT NULL DEFAULT '{}'::tstzmultirange  -- When it was what people play before live_since, if it has come again.
    is_test boolean NOT NULL DEFAULT false  -- True = the provider says that it is for tests only, and most people do not play it.
    CONSTRAINT game_versions_pkey PRIMARY KEY (version)
    CONSTRAINT game_version_is_short CHECK (((length(version) >= 1) AND (length(version) <= 40)))
    CONSTRAINT live_times_are_in_order CHECK (((live_until IS NULL) OR (live_until >= live_since)))
);
CREATE UNIQUE INDEX one_version_is_live ON pricing.game_versions USING btree ((true)) WHERE ((live_since IS NOT NULL) AND (live_until IS NULL));
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.game_versions TO pricing_worker;
GRANT SELECT ON TABLE pricing.game_versions TO pricing_reader;

-- Days for which the provider has answered, with bars or with nothing; a backfill asks only for the rest.
CREATE TABLE pricing.history_coverage (
    data_type text NOT NULL  -- What was asked for.
    symbol text NOT NULL  -- What was asked for.
    covered datemultirange NOT NULL DEFAULT '{}'::datemultirange  -- Days that were answered for.
    CONSTRAINT history_coverage_pkey PRIMARY KEY (data_type, symbol)
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.history_coverage TO pricing_worker;
GRANT SELECT ON TABLE pricing.history_coverage TO pricing_reader;

-- Who holds what. While any holding of a pair is active, its price is kept fresh by the background TTL.
CREATE TABLE pricing.holdings (
    user_id pricing.user_name NOT NULL  -- Who holds it.
    data_type text NOT NULL  -- What is held.
    symbol text NOT NULL  -- What is held.
    status text NOT NULL DEFAULT 'active'::text  -- active, or closed: kept as a record.
    since timestamp with time zone NOT NULL DEFAULT pricing.clock()  -- Since when it is held; begins anew when a closed holding is opened again.
    closed_at timestamp with time zone  -- When it was released.
    active_symbol text GENERATED ALWAYS AS (
CASE
    WHEN (status = 'active'::text) THEN symbol
    ELSE NULL::text
END) STORED  -- The symbol while the holding is active.
    CONSTRAINT holdings_pkey PRIMARY KEY (user_id, data_type, symbol)
    CONSTRAINT closed_holding_has_time CHECK (((status = 'closed'::text) = (closed_at IS NOT NULL)))
    CONSTRAINT status_is_known CHECK ((status = ANY (ARRAY['active'::text, 'closed'::text])))
);
CREATE INDEX holdings_active ON pricing.holdings USING btree (data_type, active_symbol) WHERE (active_symbol IS NOT NULL);
ALTER TABLE pricing.holdings ENABLE ROW LEVEL SECURITY;
CREATE POLICY reader_sees_own ON pricing.holdings FOR SELECT TO pricing_reader USING (((user_id)::text = (SESSION_USER)::text));  -- A reader sees no rows of another login.
CREATE POLICY worker_serves_all ON pricing.holdings FOR ALL TO pricing_worker USING (true) WITH CHECK (true);  -- A worker acts for every user.
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.holdings TO pricing_worker;
GRANT SELECT ON TABLE pricing.holdings TO pricing_reader;

-- What can be priced.
CREATE TABLE pricing.instruments (
    asset_class text NOT NULL  -- Which data types it belongs to: those of the same class.
    symbol text NOT NULL  -- Its canonical symbol: docs/providers.md. Providers may spell it otherwise.
    name text  -- For people.
    currency text  -- ISO 4217 or a coin (USDT); learned from the first answer where it is not given. Values in another currency are quarantined.
    scale smallint NOT NULL DEFAULT 2  -- Least number of decimals its prices are stored with; a source with more keeps more.
    update_mode text NOT NULL DEFAULT 'api'::text  -- api = refreshed; manual = left alone.
    is_active boolean NOT NULL DEFAULT true  -- False = left alone.
    verified_at timestamp with time zone  -- First valid answer of a provider; NULL = made by a subscription and not yet confirmed.
    created_at timestamp with time zone NOT NULL DEFAULT pricing.clock()  -- When it became known.
    calendar text  -- When it trades or is valued; chosen by pricing.calendar_rules unless given. NULL = not known, so only TTLs count.
    listed_on date  -- First day of trading, where a person has given it; no backfill asks for earlier days. pricing.listed_from also knows what answers have shown.
    exchange text  -- The MIC of the exchange where it trades, as a person gave it; NULL = the symbol tells (pricing.exchange_of).
    isin text  -- Its ISIN (ISO 6166), as a person gave it; several exchanges may trade what it names. NULL = not known.
    figi text  -- Its FIGI (ANSI X9.145), as a person gave it; NULL = not known.
    CONSTRAINT instruments_pkey PRIMARY KEY (asset_class, symbol)
    CONSTRAINT instrument_has_calendar FOREIGN KEY (calendar) REFERENCES pricing.calendars(calendar)
    CONSTRAINT instrument_has_exchange FOREIGN KEY (exchange) REFERENCES pricing.exchanges(mic)
    CONSTRAINT currency_is_code CHECK ((currency ~ '^[A-Z]{3,5}$'::text))
    CONSTRAINT figi_looks_like_one CHECK ((figi ~ '^[B-DF-HJ-NP-TV-Z]{2}G[B-DF-HJ-NP-TV-Z0-9]{8}[0-9]$'::text))
    CONSTRAINT isin_looks_like_one CHECK ((isin ~ '^[A-Z]{2}[A-Z0-9]{9}[0-9]$'::text))
    CONSTRAINT scale_is_sane CHECK (((scale >= 0) AND (scale <= 12)))
    CONSTRAINT symbol_is_sane CHECK ((((length(symbol) >= 1) AND (length(symbol) <= 40)) AND (symbol ~ '^[A-Za-z0-9^]([A-Za-z0-9./:=^_&''-]*|( ?[A-Za-z0-9.&''-])*:[A-Z0-9]{4})$'::text)))
    CONSTRAINT update_mode_is_known CHECK ((update_mode = ANY (ARRAY['api'::text, 'manual'::text])))
);
CREATE INDEX instruments_by_figi ON pricing.instruments USING btree (figi) WHERE (figi IS NOT NULL);
CREATE INDEX instruments_by_isin ON pricing.instruments USING btree (isin) WHERE (isin IS NOT NULL);
CREATE INDEX instruments_paused ON pricing.instruments USING btree (asset_class, symbol) WHERE ((update_mode <> 'api'::text) OR (NOT is_active));
CREATE TRIGGER check_new_symbols AFTER INSERT ON pricing.instruments REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION pricing.check_new_symbols();
CREATE TRIGGER choose_calendar BEFORE INSERT OR UPDATE OF currency, exchange ON pricing.instruments FOR EACH ROW WHEN ((new.calendar IS NULL)) EXECUTE FUNCTION pricing.choose_calendar();
CREATE TRIGGER instrument_paused AFTER UPDATE OF update_mode, is_active ON pricing.instruments FOR EACH ROW WHEN (((old.update_mode IS DISTINCT FROM new.update_mode) OR (old.is_active IS DISTINCT FROM new.is_active))) EXECUTE FUNCTION pricing.instrument_paused();
CREATE TRIGGER keep_class BEFORE UPDATE OF asset_class, symbol ON pricing.instruments FOR EACH ROW WHEN (((old.asset_class IS DISTINCT FROM new.asset_class) OR (old.symbol IS DISTINCT FROM new.symbol))) EXECUTE FUNCTION pricing.keep_class();
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.instruments TO pricing_worker;
GRANT SELECT ON TABLE pricing.instruments TO pricing_reader;
GRANT SELECT ON TABLE pricing.latest_answers TO pricing_reader;
GRANT SELECT ON TABLE pricing.latest_answers TO pricing_worker;

-- The newest known price of each pair. price = amount / 10^scale, exactly.
CREATE TABLE pricing.latest_prices (
    data_type text NOT NULL  -- What it is the price of.
    symbol text NOT NULL  -- What it is the price of.
    amount bigint NOT NULL  -- Price in units of 10^-scale.
    scale smallint NOT NULL  -- Decimals of amount.
    currency text  -- ISO 4217 or a coin (USDT); NULL = the source names none.
    observed_at timestamp with time zone NOT NULL  -- The source's time; midnight UTC of the trading day for daily values.
    fetched_at timestamp with time zone NOT NULL  -- When a provider last confirmed it; advances with every valid answer.
    provider text NOT NULL  -- Who said so.
    call_id bigint NOT NULL  -- The call that brought it: collector_call_log has its run, time and bytes.
    source_text text NOT NULL  -- The price in the source's own digits.
    cache_ttl_minutes integer  -- Overrides the registry's TTL for this pair; refreshes never touch it.
    adjustment text NOT NULL DEFAULT 'raw'::text  -- That of the pair's history. The newest value is the same on every basis.
    changed_at timestamp with time zone  -- observed_at with which this value first came. A price whose observed_at runs far ahead of it may be frozen at its source.
    quality text  -- As in price_history, of the bar whose close it is.
    valued_by bigint  -- The call that first brought this value; later ones confirmed it. NULL = one before this was kept.
    CONSTRAINT latest_prices_pkey PRIMARY KEY (data_type, symbol)
    CONSTRAINT adjustment_is_known CHECK ((adjustment = ANY (ARRAY['raw'::text, 'splits'::text])))
    CONSTRAINT cache_ttl_is_positive CHECK ((cache_ttl_minutes > 0))
    CONSTRAINT scale_is_sane CHECK (((scale >= 0) AND (scale <= 18)))
) WITH (fillfactor=70);
CREATE INDEX latest_prices_own_ttl ON pricing.latest_prices USING btree (data_type, symbol) WHERE (cache_ttl_minutes IS NOT NULL);
CREATE TRIGGER learn_publish_lag AFTER UPDATE OF observed_at ON pricing.latest_prices FOR EACH ROW WHEN (((old.observed_at < new.observed_at) AND (new.observed_at = date_trunc('day'::text, new.observed_at, 'UTC'::text)))) EXECUTE FUNCTION pricing.learn_publish_lag();
CREATE TRIGGER own_ttl_changed AFTER UPDATE OF cache_ttl_minutes ON pricing.latest_prices FOR EACH ROW WHEN ((old.cache_ttl_minutes IS DISTINCT FROM new.cache_ttl_minutes)) EXECUTE FUNCTION pricing.own_ttl_changed();
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.latest_prices TO pricing_worker;
GRANT SELECT ON TABLE pricing.latest_prices TO pricing_reader;

-- Units of the logged calls after counted_from and before counted_to, counted anew now and then, so that a claim counts only what has come and gone since. Rows may be deleted at any time.
CREATE TABLE pricing.limit_counts (
    provider text NOT NULL  -- Whose calls are counted.
    key_name text NOT NULL  -- The key they were made with.
    name text NOT NULL  -- The limit of provider_limits whose window this is.
    counted_from timestamp with time zone NOT NULL  -- Calls after this moment are counted.
    counted_to timestamp with time zone NOT NULL  -- Calls before this moment are counted.
    units bigint NOT NULL  -- What the counted calls were charged.
    CONSTRAINT limit_counts_pkey PRIMARY KEY (provider, key_name, name)
    CONSTRAINT count_has_limit FOREIGN KEY (provider, name) REFERENCES pricing.provider_limits(provider, name) ON DELETE CASCADE
    CONSTRAINT count_is_upright CHECK ((counted_from < counted_to))
) WITH (fillfactor=50);
GRANT SELECT ON TABLE pricing.limit_counts TO pricing_reader;
GRANT SELECT ON TABLE pricing.limit_counts TO pricing_worker;

-- Pairs with values that have left the database for a file.
CREATE TABLE pricing.moved_days (
    data_type text NOT NULL  -- Whose values.
    symbol text NOT NULL  -- Whose values.
    days datemultirange NOT NULL  -- UTC days of which a value is believed that has left.
    noted_days datemultirange NOT NULL  -- The same, and days of which only values that were believed earlier have left.
    CONSTRAINT moved_days_pkey PRIMARY KEY (data_type, symbol)
    CONSTRAINT data_type_is_registered FOREIGN KEY (data_type) REFERENCES pricing.data_type_registry(data_type) ON DELETE CASCADE
);
GRANT SELECT ON TABLE pricing.moved_days TO pricing_reader;
GRANT SELECT ON TABLE pricing.moved_days TO pricing_worker;

-- Signs of life of processes that tell people; one that has been silent for a day is forgotten.
CREATE TABLE pricing.notifiers (
    worker text NOT NULL  -- Host and process.
    looked_at timestamp with time zone  -- When it last looked for trouble by all rules.
    ran_at timestamp with time zone  -- When it last looked for messages to send.
    CONSTRAINT notifiers_pkey PRIMARY KEY (worker)
) WITH (fillfactor=50);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.notifiers TO pricing_worker;
GRANT SELECT ON TABLE pricing.notifiers TO pricing_reader;

-- Days that have become sessions while bars of them were quarantined. A worker releases these bars within a second.
CREATE TABLE pricing.opened_days (
    calendar text NOT NULL  -- The calendar.
    day date NOT NULL  -- The day, in the calendar's time zone.
    reason text NOT NULL  -- Why it became a session.
    notes bigint NOT NULL DEFAULT 1  -- How often bars of the day were noted: a worker forgets the day only if it has seen them all.
    CONSTRAINT opened_days_pkey PRIMARY KEY (calendar, day)
    CONSTRAINT opened_days_calendar_fkey FOREIGN KEY (calendar) REFERENCES pricing.calendars(calendar) ON DELETE CASCADE
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.opened_days TO pricing_worker;
GRANT SELECT ON TABLE pricing.opened_days TO pricing_reader;
GRANT SELECT ON TABLE pricing.operation_status TO pricing_reader;
GRANT SELECT ON TABLE pricing.operation_status TO pricing_worker;

-- What can be queued to happen outside the database, and how often it is tried.
CREATE TABLE pricing.operation_types (
    operation_type text NOT NULL  -- Its name; a handler of this name does it.
    description text NOT NULL DEFAULT ''::text  -- For people.
    payload_fields jsonb NOT NULL DEFAULT '{}'::jsonb  -- What a payload has: names with string, number, boolean, object, array or url; with a ? at the end it may be left out. Others are refused.
    max_attempts smallint NOT NULL DEFAULT 3  -- Attempts before it is dead; counted when it is claimed.
    time_limit_seconds smallint NOT NULL DEFAULT 30  -- How long one attempt may take.
    first_pause interval NOT NULL DEFAULT '00:05:00'::interval  -- Pause after the first failed attempt; it doubles with each further one.
    is_active boolean NOT NULL DEFAULT true  -- False = queued ones wait, and new ones are refused.
    is_built_in boolean NOT NULL DEFAULT false  -- Whether the pipeline itself does it; false = a handler of the user's own.
    takes_messages boolean NOT NULL GENERATED ALWAYS AS (
CASE
    WHEN (jsonb_typeof(payload_fields) = 'object'::text) THEN ((payload_fields @> '{"body": "string", "title": "string", "recipient": "string"}'::jsonb) AND (COALESCE((payload_fields -> 'data'::text), '"object?"'::jsonb) = '"object?"'::jsonb) AND (NOT jsonb_path_exists((payload_fields - '{recipient,title,body,data}'::text[]), 'strict $.*?(!(@ like_regex "[?]$"))'::jsonpath)))
    ELSE false
END) STORED  -- Whether it can be a channel: it takes recipient, title and body, and needs nothing else.
    CONSTRAINT operation_types_pkey PRIMARY KEY (operation_type)
    CONSTRAINT operation_types_takes_messages UNIQUE (operation_type, takes_messages)
    CONSTRAINT first_pause_is_sane CHECK (((first_pause >= '00:00:01'::interval) AND (first_pause <= '1 day'::interval)))
    CONSTRAINT operation_attempts_are_sane CHECK (((max_attempts >= 1) AND (max_attempts <= 20)))
    CONSTRAINT operation_time_limit_is_sane CHECK (((time_limit_seconds >= 1) AND (time_limit_seconds <= 240)))
    CONSTRAINT operation_type_is_plain_name CHECK ((operation_type ~ '^[a-z][a-z0-9_]{0,47}$'::text))
    CONSTRAINT payload_fields_are_known CHECK (
CASE
    WHEN (jsonb_typeof(payload_fields) = 'object'::text) THEN (NOT jsonb_path_exists(payload_fields, 'strict $.keyvalue()?(!((@."key" like_regex "^[A-Za-z_][A-Za-z0-9_]{0,47}$" && @."value".type() == "string") && @."value" like_regex "^(string|number|boolean|object|array|url)[?]?$"))'::jsonpath))
    ELSE false
END)
);
GRANT SELECT ON TABLE pricing.operation_types TO pricing_reader;
GRANT SELECT ON TABLE pricing.operation_types TO pricing_worker;

-- Spans in which every call to a provider for a data type failed of trouble that others may have, too. A row goes 15 s after the provider has answered again, or when no call has failed for 24 hours.
CREATE TABLE pricing.outages (
    outage_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- In the order of their beginnings.
    provider text NOT NULL  -- Who does not answer.
    data_type text NOT NULL  -- What it does not answer for.
    since timestamp with time zone NOT NULL  -- When the first of the calls began that failed.
    last_fault_at timestamp with time zone NOT NULL  -- When the last call failed.
    probed_at timestamp with time zone  -- When it was last seen to that somebody who waits is asked for ahead of the pauses. NULL = not yet.
    answered_at timestamp with time zone  -- When the provider answered again. NULL = it does not yet.
    CONSTRAINT outages_pkey PRIMARY KEY (outage_id)
    CONSTRAINT outages_data_type_fkey FOREIGN KEY (data_type) REFERENCES pricing.data_type_registry(data_type) ON DELETE CASCADE
    CONSTRAINT outages_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE
) WITH (fillfactor=50);
CREATE INDEX outages_data_type ON pricing.outages USING btree (data_type);
CREATE UNIQUE INDEX one_open_outage ON pricing.outages USING btree (provider, data_type) WHERE (answered_at IS NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.outages TO pricing_worker;
GRANT SELECT ON TABLE pricing.outages TO pricing_reader;

-- What clients, and walks that met a lock, ask for, until a worker serves it (serve_requests): rows are only added and deleted, so that nobody waits for anybody.
CREATE TABLE pricing.pair_requests (
    request_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- Requests are served in this order.
    data_type text NOT NULL  -- What is asked for.
    symbol text NOT NULL  -- What is asked for.
    kind text NOT NULL  -- watched, held = a user has begun to; read = it was read while missing or stale; seen = it was looked at; scheduled = a schedule reached it and could not queue it: its provider can take no more, or another session was in the way.
    requested_at timestamp with time zone NOT NULL DEFAULT pricing.clock()  -- When it was asked for.
    user_id pricing.user_name  -- Whose read it is, against whose allowance it counts; NULL = no read of a client.
    CONSTRAINT pair_requests_pkey PRIMARY KEY (request_id)
    CONSTRAINT kind_is_known CHECK ((kind = ANY (ARRAY['watched'::text, 'held'::text, 'read'::text, 'seen'::text, 'scheduled'::text])))
    CONSTRAINT symbol_is_sane CHECK ((length(symbol) <= 40))
);
CREATE INDEX pair_requests_pair ON pricing.pair_requests USING btree (data_type, symbol);
ALTER TABLE pricing.pair_requests ENABLE ROW LEVEL SECURITY;
CREATE POLICY reader_sees_own ON pricing.pair_requests FOR SELECT TO pricing_reader USING (((user_id)::text = (SESSION_USER)::text));  -- A reader sees no rows of another login.
CREATE POLICY worker_serves_all ON pricing.pair_requests FOR ALL TO pricing_worker USING (true) WITH CHECK (true);  -- A worker acts for every user.
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.pair_requests TO pricing_worker;
GRANT SELECT ON TABLE pricing.pair_requests TO pricing_reader;

-- When each pair was last looked at, to ten minutes: written when a viewer leaves and by reads, never by heartbeats. Kept for 48 hours.
CREATE TABLE pricing.pair_views (
    data_type text NOT NULL  -- What was looked at.
    symbol text NOT NULL  -- What was looked at.
    viewed_at timestamp with time zone NOT NULL  -- The last look that was noted.
    CONSTRAINT pair_views_pkey PRIMARY KEY (data_type, symbol)
) WITH (fillfactor=70);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.pair_views TO pricing_worker;
GRANT SELECT ON TABLE pricing.pair_views TO pricing_reader;

-- Calls that were answered, once they leave collector_call_log: what a price that they brought needs to be traced. They are kept for good, as prices are.
CREATE TABLE pricing.past_calls (
    call_id bigint NOT NULL  -- Its number, which prices carry.
    provider text NOT NULL  -- Who was asked.
    key_name text NOT NULL  -- The key that it was made with.
    data_type text NOT NULL  -- What was asked for.
    window_start date  -- First day asked for; NULL = the latest price.
    window_end date  -- Last day asked for, included; NULL = the latest price.
    symbols integer NOT NULL  -- How many symbols were asked for.
    run_id text  -- Dagster's id of the run that made it, also when Dagster has forgotten that run. NULL = none of Dagster's.
    worker text NOT NULL  -- Who made it: host and process.
    started_at timestamp with time zone NOT NULL  -- When it was claimed.
    finished_at timestamp with time zone NOT NULL  -- When its answer was settled.
    http_status integer  -- Status of the answer.
    wire_bytes bigint  -- Headers and body as they were sent, compressed.
    CONSTRAINT past_calls_pkey PRIMARY KEY (call_id)
);
GRANT SELECT ON TABLE pricing.past_calls TO pricing_reader;
GRANT SELECT ON TABLE pricing.past_calls TO pricing_worker;

-- How many of a category a slot takes: current belief.
CREATE TABLE pricing.pax_availability (
    slot_key bigint NOT NULL  -- The slot.
    category_key bigint NOT NULL  -- Who.
    minimum integer  -- Fewest units of one booking; NULL = no bound.
    maximum integer  -- Most units of one booking; NULL = no bound.
    remaining integer  -- Units left; NULL = not said, or without a bound.
    is_primary boolean NOT NULL DEFAULT false  -- Whether the product is made for it: others come along.
    is_offered boolean NOT NULL DEFAULT true  -- False = the slot no longer takes it.
    call_id bigint NOT NULL  -- The call that brought it.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believe it.
    CONSTRAINT pax_availability_pkey PRIMARY KEY (slot_key, category_key)
    CONSTRAINT pax_availability_category_key_fkey FOREIGN KEY (category_key) REFERENCES pricing.pax_categories(category_key)
    CONSTRAINT pax_availability_slot_key_fkey FOREIGN KEY (slot_key) REFERENCES pricing.slots(slot_key)
    CONSTRAINT maximum_is_sane CHECK ((maximum >= 0))
    CONSTRAINT minimum_is_sane CHECK (((minimum >= 0) AND (minimum <= maximum)))
    CONSTRAINT pax_remaining_is_sane CHECK ((remaining >= 0))
) WITH (fillfactor=85);
CREATE TRIGGER keep_revision AFTER UPDATE ON pricing.pax_availability REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION pricing.keep_revision('pax_availability_revisions', 'slot_key, category_key');
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.pax_availability TO pricing_worker;
GRANT SELECT ON TABLE pricing.pax_availability TO pricing_reader;

-- What was believed of availability before, from recorded_at until revised_at. Its other columns are those of pax_availability.
CREATE TABLE pricing.pax_availability_revisions (
    revised_at timestamp with time zone NOT NULL  -- Until when we believed it.
    revised_by bigint  -- The call that brought something else; NULL = a person did.
    slot_key bigint NOT NULL  -- The slot.
    category_key bigint NOT NULL  -- Who.
    minimum integer  -- Fewest units of one booking; NULL = no bound.
    maximum integer  -- Most units of one booking; NULL = no bound.
    remaining integer  -- Units left; NULL = not said, or without a bound.
    is_primary boolean NOT NULL  -- Whether the product is made for it: others come along.
    is_offered boolean NOT NULL  -- False = the slot no longer takes it.
    call_id bigint NOT NULL  -- The call that brought it.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believe it.
);
CREATE INDEX pax_availability_revisions_by_slot ON pricing.pax_availability_revisions USING btree (slot_key, revised_at);
GRANT INSERT, SELECT ON TABLE pricing.pax_availability_revisions TO pricing_worker;
GRANT SELECT ON TABLE pricing.pax_availability_revisions TO pricing_reader;

-- Whom products are sold to, such as adults or a group of four.
CREATE TABLE pricing.pax_categories (
    category_key bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- Our number of it.
    symbol text NOT NULL  -- The product.
    provider text NOT NULL  -- Whose id it is.
    category_id text NOT NULL  -- Its id at the provider, unique within the product.
    name text NOT NULL  -- For people.
    kind text  -- The provider's word for it, such as ADULT; NULL = it has none.
    age_from integer  -- Youngest age, included; NULL = no bound.
    age_to integer  -- Oldest age, included; NULL = no bound.
    pax_count integer NOT NULL DEFAULT 1  -- How many people one unit is for.
    is_described boolean NOT NULL  -- Whether the product itself describes it: then its slots do not rename it.
    is_listed boolean NOT NULL DEFAULT true  -- False = the product no longer has it.
    call_id bigint NOT NULL  -- The call that brought it.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believe it.
    CONSTRAINT pax_categories_pkey PRIMARY KEY (category_key)
    CONSTRAINT pax_categories_symbol_provider_category_id_key UNIQUE (symbol, provider, category_id)
    CONSTRAINT pax_categories_symbol_fkey FOREIGN KEY (symbol) REFERENCES pricing.products(symbol)
    CONSTRAINT ages_are_upright CHECK ((age_to >= age_from))
    CONSTRAINT pax_count_is_positive CHECK ((pax_count > 0))
);
CREATE TRIGGER keep_revision AFTER UPDATE ON pricing.pax_categories REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION pricing.keep_revision('pax_category_revisions', 'category_key');
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.pax_categories TO pricing_worker;
GRANT SELECT ON TABLE pricing.pax_categories TO pricing_reader;

-- What was believed of categories before, from recorded_at until revised_at. Its other columns are those of pax_categories.
CREATE TABLE pricing.pax_category_revisions (
    revised_at timestamp with time zone NOT NULL  -- Until when we believed it.
    revised_by bigint  -- The call that brought something else; NULL = a person did.
    category_key bigint NOT NULL  -- Our number of it.
    symbol text NOT NULL  -- The product.
    provider text NOT NULL  -- Whose id it is.
    category_id text NOT NULL  -- Its id at the provider, unique within the product.
    name text NOT NULL  -- For people.
    kind text  -- The provider's word for it, such as ADULT; NULL = it has none.
    age_from integer  -- Youngest age, included; NULL = no bound.
    age_to integer  -- Oldest age, included; NULL = no bound.
    pax_count integer NOT NULL  -- How many people one unit is for.
    is_described boolean NOT NULL  -- Whether the product itself describes it: then its slots do not rename it.
    is_listed boolean NOT NULL  -- False = the product no longer has it.
    call_id bigint NOT NULL  -- The call that brought it.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believe it.
);
CREATE INDEX pax_category_revisions_by_product ON pricing.pax_category_revisions USING btree (symbol, revised_at);
GRANT INSERT, SELECT ON TABLE pricing.pax_category_revisions TO pricing_worker;
GRANT SELECT ON TABLE pricing.pax_category_revisions TO pricing_reader;

-- What people know of a symbol's prices, or of all of a data type (symbol NULL). A symbol's own row replaces the broad one. No row = no bounds.
CREATE TABLE pricing.plausibility_bounds (
    data_type text NOT NULL  -- Whose values they bound.
    symbol text  -- NULL = every symbol of the type without a row of its own.
    lowest numeric  -- Lower prices are quarantined.
    highest numeric  -- Higher prices are quarantined.
    jumps_trusted_until timestamp with time zone  -- Until then no value is quarantined for being far from the last one: after a split or a change of unit that a person has checked.
    CONSTRAINT plausibility_bounds_data_type_fkey FOREIGN KEY (data_type) REFERENCES pricing.data_type_registry(data_type) ON DELETE CASCADE
    CONSTRAINT bounds_are_upright CHECK ((lowest <= highest))
    CONSTRAINT highest_is_a_price CHECK (((highest > (0)::numeric) AND (highest < 'Infinity'::numeric)))
    CONSTRAINT lowest_is_a_price CHECK (((lowest >= (0)::numeric) AND (lowest < 'Infinity'::numeric)))
);
CREATE UNIQUE INDEX plausibility_bounds_pair ON pricing.plausibility_bounds USING btree (data_type, symbol) NULLS NOT DISTINCT;
GRANT SELECT ON TABLE pricing.plausibility_bounds TO pricing_reader;
GRANT SELECT ON TABLE pricing.plausibility_bounds TO pricing_worker;

-- Who is to be told of which prices, and what was last seen and told.
CREATE TABLE pricing.price_alerts (
    price_alert_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- In the order in which they were added.
    recipient text NOT NULL  -- Who is told.
    data_type text NOT NULL  -- Of prices of this data type.
    symbol text  -- Of this symbol; NULL = of all symbols of the data type.
    condition text NOT NULL  -- above, below = the price crosses the threshold; moved = by so many percent; stale = for so long; each = every new price.
    threshold numeric  -- A price, or for moved a percentage.
    lasts interval  -- For how long a pair is stale before it is told.
    pace interval  -- New prices are told together, at most once in this time.
    is_beyond boolean NOT NULL DEFAULT false  -- Whether the last price was beyond the threshold, or the pair was stale for too long: that was told.
    seen numeric  -- The last price that was looked at; NULL = none yet.
    seen_at timestamp with time zone  -- Its time at the source.
    reference numeric  -- For moved, the price from which the move counts.
    reference_at timestamp with time zone  -- Its time at the source.
    told_at timestamp with time zone  -- When its recipient was last told.
    created_at timestamp with time zone NOT NULL  -- When it was added.
    created_by text NOT NULL  -- Who added it.
    user_id text  -- The user who asked for it over HTTP; NULL = added with the command line.
    is_caught_up boolean NOT NULL DEFAULT false  -- Whether the alert has looked at every price that was stored, or was being stored, when it was added. Until then each look includes the latest price.
    caught_up_after xid8  -- The transaction before which all must have ended for the alert to be caught up; NULL = it has not looked yet.
    hysteresis numeric NOT NULL DEFAULT 0  -- How far beyond the threshold a price must come back before a crossing is told again; 0 = to the threshold.
    hysteresis_in text NOT NULL DEFAULT 'amount'::text  -- What hysteresis is: an amount of the price, or percent of the threshold.
    CONSTRAINT price_alerts_pkey PRIMARY KEY (price_alert_id)
    CONSTRAINT price_alerts_data_type_fkey FOREIGN KEY (data_type) REFERENCES pricing.data_type_registry(data_type) ON DELETE CASCADE
    CONSTRAINT price_alerts_recipient_fkey FOREIGN KEY (recipient) REFERENCES pricing.recipients(recipient) ON DELETE CASCADE
    CONSTRAINT a_user_is_told_once_a_minute CHECK (((user_id IS NULL) OR (pace IS NULL) OR (pace >= '00:01:00'::interval)))
    CONSTRAINT a_user_names_a_symbol CHECK (((user_id IS NULL) OR (symbol IS NOT NULL)))
    CONSTRAINT hysteresis_is_sane CHECK (((hysteresis >= (0)::numeric) AND (hysteresis <= '1000000000000000000'::numeric) AND (scale(hysteresis) <= 12)))
    CONSTRAINT hysteresis_leaves_a_way_back CHECK (((hysteresis = (0)::numeric) OR
CASE hysteresis_in
    WHEN 'percent'::text THEN (hysteresis < (100)::numeric)
    ELSE ((condition <> 'above'::text) OR (hysteresis < threshold))
END))
    CONSTRAINT hysteresis_unit_is_known CHECK ((hysteresis_in = ANY (ARRAY['amount'::text, 'percent'::text])))
    CONSTRAINT lasts_is_sane CHECK (((lasts >= '00:01:00'::interval) AND (lasts <= '30 days'::interval)))
    CONSTRAINT only_each_is_of_all_symbols CHECK (((symbol IS NOT NULL) OR (condition = 'each'::text)))
    CONSTRAINT only_thresholds_have_hysteresis CHECK (((hysteresis = (0)::numeric) OR (condition = ANY (ARRAY['above'::text, 'below'::text]))))
    CONSTRAINT pace_is_sane CHECK (((pace >= '00:00:01'::interval) AND (pace <= '01:00:00'::interval)))
    CONSTRAINT price_alert_user_is_sane CHECK (((length(user_id) >= 1) AND (length(user_id) <= 200)))
    CONSTRAINT price_condition_has_its_values CHECK ((((condition = ANY (ARRAY['above'::text, 'below'::text, 'moved'::text])) = (threshold IS NOT NULL)) AND ((condition = 'stale'::text) = (lasts IS NOT NULL)) AND ((condition = 'each'::text) = (pace IS NOT NULL))))
    CONSTRAINT price_condition_is_known CHECK ((condition = ANY (ARRAY['above'::text, 'below'::text, 'moved'::text, 'stale'::text, 'each'::text])))
    CONSTRAINT seen_price_has_time CHECK ((((seen IS NULL) = (seen_at IS NULL)) AND ((reference IS NULL) = (reference_at IS NULL))))
    CONSTRAINT threshold_is_positive CHECK (((threshold > (0)::numeric) AND (threshold <= '1000000000000000000'::numeric) AND (scale(threshold) <= 12)))
) WITH (fillfactor=70);
CREATE INDEX price_alerts_of_pair ON pricing.price_alerts USING btree (data_type, symbol);
CREATE INDEX price_alerts_of_user ON pricing.price_alerts USING btree (user_id, price_alert_id) WHERE (user_id IS NOT NULL);
CREATE UNIQUE INDEX price_alerts_once ON pricing.price_alerts USING btree (recipient, data_type, symbol, condition, threshold, lasts, user_id) NULLS NOT DISTINCT;
ALTER TABLE pricing.price_alerts ENABLE ROW LEVEL SECURITY;
CREATE POLICY reader_sees_own ON pricing.price_alerts FOR SELECT TO pricing_reader USING ((user_id = (SESSION_USER)::text));  -- A reader sees no rows of another login.
CREATE POLICY worker_serves_all ON pricing.price_alerts FOR ALL TO pricing_worker USING (true) WITH CHECK (true);  -- A worker acts for every user.
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.price_alerts TO pricing_worker;

-- New prices that an alert has not looked at yet: a row for each price and alert that asks for it, added in the transaction that stores the price.
CREATE TABLE pricing.price_events (
    event_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- Rises; of one pair in the order in which its prices were stored.
    price_alert_id bigint NOT NULL  -- The alert that asks for it.
    symbol text NOT NULL  -- The symbol whose price it is.
    amount bigint NOT NULL  -- The price in units of its last decimal.
    scale smallint NOT NULL  -- How many decimals the price has.
    currency text  -- NULL = the provider named none.
    observed_at timestamp with time zone NOT NULL  -- The price's time at the source.
    provider text NOT NULL  -- Who sent it.
    call_id bigint NOT NULL  -- The call that brought it.
    stored_at timestamp with time zone NOT NULL  -- When it was stored.
    CONSTRAINT price_events_pkey PRIMARY KEY (price_alert_id, event_id)
) WITH (autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=500);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.price_events TO pricing_worker;

-- Current belief about every past value; one table partition per data type. amount is the close, NAV or quote.
CREATE TABLE pricing.price_history (
    data_type text NOT NULL  -- What it is the price of.
    symbol text NOT NULL  -- What it is the price of.
    observed_at timestamp with time zone NOT NULL  -- The source's time; midnight UTC of the trading day for daily values.
    amount bigint NOT NULL  -- Close, NAV or quote, in units of 10^-scale.
    open_amount bigint  -- Open of a daily bar, in units of 10^-scale.
    high_amount bigint  -- High of a daily bar, in units of 10^-scale.
    low_amount bigint  -- Low of a daily bar, in units of 10^-scale.
    scale smallint NOT NULL  -- Decimals of the amounts.
    currency text  -- ISO 4217 or a coin (USDT); NULL = the source names none.
    volume numeric  -- Traded volume of a daily bar, in shares or contracts.
    provider text NOT NULL  -- Who said so.
    call_id bigint NOT NULL  -- The call that brought it.
    fetched_at timestamp with time zone NOT NULL  -- When we came to believe it.
    adjustment text NOT NULL DEFAULT 'raw'::text  -- raw = as traded on its day; splits = divided by every split since. One for all values of a symbol in a data type.
    quality text  -- Which parts of the source's bar were dropped, because they cannot be true beside its close, and why; NULL = none.
    source_text text  -- The source's own spelling of amount; NULL = amount with scale decimals, as in 146.50, is how it was spelled, or it was stored before spellings were kept.
    CONSTRAINT price_history_pkey PRIMARY KEY (data_type, symbol, observed_at)
    CONSTRAINT adjustment_is_known CHECK ((adjustment = ANY (ARRAY['raw'::text, 'splits'::text])))
) PARTITION BY LIST (data_type);
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.price_history TO pricing_worker;
GRANT SELECT ON TABLE pricing.price_history TO pricing_reader;

-- What we believed before: the old value of every history row that changed, from recorded_at until revised_at.
CREATE TABLE pricing.price_revisions (
    data_type text NOT NULL  -- What it was the price of.
    symbol text NOT NULL  -- What it was the price of.
    observed_at timestamp with time zone NOT NULL  -- The source's time.
    amount bigint NOT NULL  -- What we believed, in units of 10^-scale.
    open_amount bigint  -- Open, in units of 10^-scale.
    high_amount bigint  -- High, in units of 10^-scale.
    low_amount bigint  -- Low, in units of 10^-scale.
    scale smallint NOT NULL  -- Decimals of the amounts.
    currency text  -- As in price_history.
    volume numeric  -- Traded volume.
    provider text NOT NULL  -- Who had said so.
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

-- What was believed of options before, from recorded_at until revised_at. Its other columns are those of product_options.
CREATE TABLE pricing.product_option_revisions (
    revised_at timestamp with time zone NOT NULL  -- Until when we believed it.
    revised_by bigint  -- The call that brought something else; NULL = a person did.
    symbol text NOT NULL  -- The product.
    provider text NOT NULL  -- Whose id it is.
    option_id text NOT NULL  -- Its id at the provider, unique within the product.
    name text  -- For people; NULL = only slots have named it so far.
    is_default boolean NOT NULL  -- Whether the provider books it where none is chosen.
    is_listed boolean NOT NULL  -- False = the product no longer has it.
    call_id bigint NOT NULL  -- The call that brought it.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believe it.
);
CREATE INDEX product_option_revisions_by_product ON pricing.product_option_revisions USING btree (symbol, revised_at);
GRANT INSERT, SELECT ON TABLE pricing.product_option_revisions TO pricing_worker;
GRANT SELECT ON TABLE pricing.product_option_revisions TO pricing_reader;

-- Variants of products, such as a language or a meeting point.
CREATE TABLE pricing.product_options (
    symbol text NOT NULL  -- The product.
    provider text NOT NULL  -- Whose id it is.
    option_id text NOT NULL  -- Its id at the provider, unique within the product.
    name text  -- For people; NULL = only slots have named it so far.
    is_default boolean NOT NULL DEFAULT false  -- Whether the provider books it where none is chosen.
    is_listed boolean NOT NULL DEFAULT true  -- False = the product no longer has it.
    call_id bigint NOT NULL  -- The call that brought it.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believe it.
    CONSTRAINT product_options_pkey PRIMARY KEY (symbol, provider, option_id)
    CONSTRAINT product_options_symbol_fkey FOREIGN KEY (symbol) REFERENCES pricing.products(symbol)
);
CREATE TRIGGER keep_revision AFTER UPDATE ON pricing.product_options REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION pricing.keep_revision('product_option_revisions', 'symbol, provider, option_id');
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.product_options TO pricing_worker;
GRANT SELECT ON TABLE pricing.product_options TO pricing_reader;

-- What was believed of products before, from recorded_at until revised_at. Its other columns are those of products.
CREATE TABLE pricing.product_revisions (
    revised_at timestamp with time zone NOT NULL  -- Until when we believed it.
    revised_by bigint  -- The call that brought something else; NULL = a person did.
    symbol text NOT NULL  -- Its instrument.
    provider text NOT NULL  -- Who told of it last.
    name text  -- For people; NULL = only its slots are known.
    time_zone text  -- IANA zone of its place, as the provider says; NULL = it says none.
    set_time_zone text  -- The zone that a person has set, which counts instead; NULL = none.
    call_id bigint  -- The call that brought it; NULL = a person has changed it since.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believe it.
    is_listed boolean NOT NULL DEFAULT true  -- False = its provider no longer has it.
);
CREATE INDEX product_revisions_by_product ON pricing.product_revisions USING btree (symbol, revised_at);
GRANT INSERT, SELECT ON TABLE pricing.product_revisions TO pricing_worker;
GRANT SELECT ON TABLE pricing.product_revisions TO pricing_reader;

-- What is sold in slots, by the symbol of its instrument (asset class inventory).
CREATE TABLE pricing.products (
    symbol text NOT NULL  -- Its instrument.
    provider text NOT NULL  -- Who told of it last.
    name text  -- For people; NULL = only its slots are known.
    time_zone text  -- IANA zone of its place, as the provider says; NULL = it says none.
    set_time_zone text  -- The zone that a person has set, which counts instead; NULL = none.
    call_id bigint  -- The call that brought it; NULL = a person has changed it since.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believe it.
    is_listed boolean NOT NULL DEFAULT true  -- False = its provider no longer has it.
    CONSTRAINT products_pkey PRIMARY KEY (symbol)
);
CREATE TRIGGER keep_revision AFTER UPDATE ON pricing.products REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION pricing.keep_revision('product_revisions', 'symbol');
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.products TO pricing_worker;
GRANT SELECT ON TABLE pricing.products TO pricing_reader;

-- What a provider can fetch, in which batches, at what cost in its own units. Claims plan calls from it.
CREATE TABLE pricing.provider_capabilities (
    provider text NOT NULL  -- Who can.
    fetcher text NOT NULL  -- What it can be asked for.
    batch_size integer NOT NULL  -- Symbols in one call for latest prices.
    window_batch_size integer NOT NULL DEFAULT 1  -- Symbols in one call for a span of days, where answers are long.
    units_per_call integer NOT NULL DEFAULT 0  -- Cost of a call, in the provider's units.
    units_per_symbol integer NOT NULL DEFAULT 0  -- Cost of each symbol of a call, in the provider's units.
    max_window_days integer NOT NULL DEFAULT 1  -- Longest span one call may ask for, so that an answer is never cut at a page.
    bytes_per_day integer NOT NULL DEFAULT 150  -- Bytes on the wire for a day of history of one symbol, as an estimate.
    routes_new_types boolean NOT NULL DEFAULT true  -- Whether a new data type of this fetcher may find its route to this provider by itself. False = only who says so comes here.
    window_days_per_call integer  -- The most days that one call for a span may ask for, over all its symbols: a long span travels alone. NULL = window_batch_size alone decides.
    batch_from integer NOT NULL DEFAULT 1  -- The fewest symbols that share a call for latest prices; fewer are asked for one by one, as is what has failed before. 1 = any number shares a call.
    CONSTRAINT provider_capabilities_pkey PRIMARY KEY (provider, fetcher)
    CONSTRAINT provider_capabilities_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider)
    CONSTRAINT a_call_costs_something CHECK (((units_per_call >= 0) AND (units_per_symbol >= 0) AND ((units_per_call + units_per_symbol) > 0)))
    CONSTRAINT batch_from_is_at_most_batch_size CHECK ((batch_from <= batch_size))
    CONSTRAINT batch_from_is_positive CHECK ((batch_from > 0))
    CONSTRAINT batch_is_positive CHECK ((batch_size > 0))
    CONSTRAINT window_batch_is_positive CHECK ((window_batch_size > 0))
    CONSTRAINT window_days_are_positive CHECK ((window_days_per_call > 0))
    CONSTRAINT window_is_positive CHECK ((max_window_days > 0))
);
CREATE TRIGGER capability_changed AFTER INSERT OR UPDATE ON pricing.provider_capabilities FOR EACH ROW EXECUTE FUNCTION pricing.provider_switched();
CREATE TRIGGER forget_shown_batch AFTER UPDATE OF batch_size, window_batch_size ON pricing.provider_capabilities FOR EACH ROW EXECUTE FUNCTION pricing.forget_shown_batch();
GRANT SELECT ON TABLE pricing.provider_capabilities TO pricing_reader;
GRANT SELECT ON TABLE pricing.provider_capabilities TO pricing_worker;

-- API keys of providers under AES-256-GCM. Each row has a data key of its own, wrapped by a master key that is not in the database. Both ciphertexts are bound to provider, key_name, row_version and master_key_id: in any other row they do not open.
CREATE TABLE pricing.provider_credentials (
    provider text NOT NULL  -- Whose key.
    key_name text NOT NULL  -- Its name, under which provider_keys has its limits and pauses.
    row_version bigint NOT NULL  -- Another one each time the row is sealed.
    master_key_id text NOT NULL  -- The master key that wraps wrapped_key.
    key_nonce bytea NOT NULL  -- Nonce of wrapped_key, random.
    wrapped_key bytea NOT NULL  -- The data key, encrypted with the master key, and its tag.
    secret_nonce bytea NOT NULL  -- Nonce of ciphertext, random.
    ciphertext bytea NOT NULL  -- The API key, padded, encrypted with the data key, and its tag.
    created_at timestamp with time zone NOT NULL  -- When a key of this name was first stored.
    replaced_at timestamp with time zone  -- When it was last replaced by another; NULL = never.
    sealed_at timestamp with time zone NOT NULL  -- When the row was last encrypted, be it for a new master key only.
    CONSTRAINT provider_credentials_pkey PRIMARY KEY (provider, key_name)
    CONSTRAINT credential_version_is_unique UNIQUE (row_version)
    CONSTRAINT credential_has_key FOREIGN KEY (provider, key_name) REFERENCES pricing.provider_keys(provider, key_name)
    CONSTRAINT provider_credentials_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE
    CONSTRAINT ciphertext_is_padded CHECK ((((octet_length(ciphertext) >= 80) AND (octet_length(ciphertext) <= 4176)) AND ((octet_length(ciphertext) % 64) = 16)))
    CONSTRAINT key_nonce_has_96_bits CHECK ((octet_length(key_nonce) = 12))
    CONSTRAINT master_key_id_is_plain CHECK ((master_key_id ~ '^[a-z0-9][a-z0-9_-]{0,47}$'::text))
    CONSTRAINT nonces_differ CHECK ((key_nonce <> secret_nonce))
    CONSTRAINT secret_nonce_has_96_bits CHECK ((octet_length(secret_nonce) = 12))
    CONSTRAINT wrapped_key_has_key_and_tag CHECK ((octet_length(wrapped_key) = 48))
);
GRANT SELECT ON TABLE pricing.provider_credentials TO pricing_worker;

-- Declarations of providers (`provider declare`). A provider without one is part of the code. Workers make calls and read answers as they say.
CREATE TABLE pricing.provider_declarations (
    provider text NOT NULL  -- Who is declared.
    host text NOT NULL  -- Host of its base URL, where its keys go; no other provider has it.
    content text NOT NULL  -- The file, in YAML, as it was declared.
    declared_at timestamp with time zone NOT NULL DEFAULT pricing.clock()  -- When it was last declared.
    CONSTRAINT provider_declarations_pkey PRIMARY KEY (provider)
    CONSTRAINT provider_declarations_host_key UNIQUE (host)
    CONSTRAINT provider_declarations_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE
    CONSTRAINT content_is_short CHECK (((length(content) >= 1) AND (length(content) <= 64000)))
    CONSTRAINT host_is_plain CHECK ((host ~ '^[a-z0-9.-]{1,253}$'::text))
);
CREATE TRIGGER declared_anew AFTER UPDATE ON pricing.provider_declarations FOR EACH ROW WHEN ((old.content IS DISTINCT FROM new.content)) EXECUTE FUNCTION pricing.registry_changed();
CREATE TRIGGER keep_key_at_host BEFORE UPDATE ON pricing.provider_declarations FOR EACH ROW WHEN (((new.host <> old.host) OR (new.provider <> old.provider))) EXECUTE FUNCTION pricing.keep_key_at_host();
CREATE TRIGGER registry_changed AFTER INSERT OR DELETE ON pricing.provider_declarations FOR EACH ROW EXECUTE FUNCTION pricing.registry_changed();
GRANT SELECT ON TABLE pricing.provider_declarations TO pricing_reader;
GRANT SELECT ON TABLE pricing.provider_declarations TO pricing_worker;

-- Keys whose plan differs: other units than provider_limits says, in the same window.
CREATE TABLE pricing.provider_key_limits (
    provider text NOT NULL  -- Whose limit.
    key_name text NOT NULL  -- The key that differs.
    name text NOT NULL  -- The limit's name in provider_limits, which has its window.
    units integer NOT NULL  -- Units allowed to this key in the window.
    CONSTRAINT provider_key_limits_pkey PRIMARY KEY (provider, key_name, name)
    CONSTRAINT key_limit_has_key FOREIGN KEY (provider, key_name) REFERENCES pricing.provider_keys(provider, key_name) ON DELETE CASCADE
    CONSTRAINT key_limit_has_limit FOREIGN KEY (provider, name) REFERENCES pricing.provider_limits(provider, name) ON DELETE CASCADE
    CONSTRAINT key_limit_is_positive CHECK ((units > 0))
);
CREATE TRIGGER forget_shown_limit AFTER INSERT OR DELETE OR UPDATE ON pricing.provider_key_limits FOR EACH ROW EXECUTE FUNCTION pricing.forget_shown_limit();
GRANT SELECT ON TABLE pricing.provider_key_limits TO pricing_reader;
GRANT SELECT ON TABLE pricing.provider_key_limits TO pricing_worker;

-- API keys of a provider by name, each with its own rate limits. A provider without rows has one key named default. Secrets are in provider_credentials, encrypted, or in settings.
CREATE TABLE pricing.provider_keys (
    provider text NOT NULL  -- Whose key.
    key_name text NOT NULL  -- Its name.
    is_active boolean NOT NULL DEFAULT true  -- False = no call is made with it.
    blocked_until timestamp with time zone  -- No worker uses the key before: the provider refused it, for speed or altogether.
    blocked_reason text  -- Why it is blocked, for people.
    throttles integer NOT NULL DEFAULT 0  -- Refusals in a row. Until the next good answer the pause grows, and one call at a time feels the way.
    reported_left integer  -- Units that the provider last said are left; only kept while there are few.
    reported_at timestamp with time zone  -- When the provider said so.
    foreign_units integer NOT NULL DEFAULT 0  -- Units that the provider counts and we do not: somebody else uses the key, or its plan is smaller than our limit. They are taken off until foreign_until.
    foreign_until timestamp with time zone  -- Until when foreign_units are taken off.
    CONSTRAINT provider_keys_pkey PRIMARY KEY (provider, key_name)
    CONSTRAINT provider_keys_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE
    CONSTRAINT foreign_units_are_counted CHECK ((foreign_units >= 0))
    CONSTRAINT key_name_is_plain CHECK ((key_name ~ '^[a-z0-9][a-z0-9_-]{0,47}$'::text))
) WITH (fillfactor=50);
GRANT SELECT ON TABLE pricing.provider_keys TO pricing_reader;
GRANT SELECT ON TABLE pricing.provider_keys TO pricing_worker;

-- Rate limits of each key, in the provider's units: in any window_seconds, or per calendar day of day_timezone. All must have room.
CREATE TABLE pricing.provider_limits (
    provider text NOT NULL  -- Whose limit.
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
CREATE TRIGGER check_limit BEFORE INSERT OR UPDATE ON pricing.provider_limits FOR EACH ROW WHEN ((new.day_timezone IS NOT NULL)) EXECUTE FUNCTION pricing.check_limit();
CREATE TRIGGER forget_shown_limit AFTER UPDATE ON pricing.provider_limits FOR EACH ROW EXECUTE FUNCTION pricing.forget_shown_limit();
CREATE TRIGGER limit_changed AFTER UPDATE ON pricing.provider_limits FOR EACH ROW WHEN ((old.units <> new.units)) EXECUTE FUNCTION pricing.provider_switched();
GRANT SELECT ON TABLE pricing.provider_limits TO pricing_reader;
GRANT SELECT ON TABLE pricing.provider_limits TO pricing_worker;

-- Plans that `provider use` has written, so that `provider undo` can restore what was before.
CREATE TABLE pricing.provider_plans (
    provider text NOT NULL  -- Whose plan.
    plan text NOT NULL  -- Its name in plans.toml.
    symbols integer NOT NULL  -- For how many watched symbols its TTLs are.
    used_since timestamp with time zone NOT NULL DEFAULT pricing.clock()  -- When it was written.
    settings_before jsonb NOT NULL  -- Limits, batches and types of the provider before its first plan.
    CONSTRAINT provider_plans_pkey PRIMARY KEY (provider)
    CONSTRAINT provider_plans_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE
    CONSTRAINT plan_is_for_some_symbols CHECK ((symbols > 0))
    CONSTRAINT plan_is_plain_name CHECK ((plan ~ '^[a-z][a-z0-9_-]{0,47}$'::text))
);
GRANT SELECT ON TABLE pricing.provider_plans TO pricing_reader;
GRANT SELECT ON TABLE pricing.provider_plans TO pricing_worker;

-- Which providers serve a data type (symbol NULL), or one symbol of it, in which order. A symbol's own come first.
CREATE TABLE pricing.provider_routing (
    data_type text NOT NULL  -- What is routed.
    symbol text  -- The one symbol it is for; NULL = all that have no rule of their own.
    provider text NOT NULL  -- Who serves it.
    is_active boolean NOT NULL DEFAULT true  -- False = the rule does not count.
    rank smallint NOT NULL DEFAULT 1  -- The lowest is asked; the next, when it cannot serve.
    CONSTRAINT provider_routing_data_type_fkey FOREIGN KEY (data_type) REFERENCES pricing.data_type_registry(data_type) ON DELETE CASCADE
    CONSTRAINT provider_routing_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider)
    CONSTRAINT rank_is_positive CHECK ((rank > 0))
);
CREATE UNIQUE INDEX provider_routing_once ON pricing.provider_routing USING btree (data_type, symbol, provider) NULLS NOT DISTINCT;
CREATE UNIQUE INDEX provider_routing_order ON pricing.provider_routing USING btree (data_type, symbol, rank) NULLS NOT DISTINCT;
CREATE TRIGGER registry_changed AFTER INSERT OR DELETE OR UPDATE ON pricing.provider_routing FOR EACH STATEMENT EXECUTE FUNCTION pricing.registry_changed();
CREATE TRIGGER route_changed AFTER INSERT OR DELETE OR UPDATE ON pricing.provider_routing FOR EACH ROW EXECUTE FUNCTION pricing.route_changed();
GRANT SELECT ON TABLE pricing.provider_routing TO pricing_reader;
GRANT SELECT ON TABLE pricing.provider_routing TO pricing_worker;

-- The row whose lock makes looking at the limits and taking from them one step.
CREATE TABLE pricing.provider_state (
    provider text NOT NULL  -- Whose state.
    claims bigint NOT NULL DEFAULT 0  -- Counts claims, so that every tenth can begin with a backfill.
    breaker pricing.breaker_position NOT NULL DEFAULT 'closed'::text  -- open = no calls before breaker_until; then one probe is made (half_open), whose success closes it.
    breaker_since timestamp with time zone  -- Its last change. What happened before it was closed does not count against the provider.
    breaker_until timestamp with time zone  -- Open: when a probe may be made. Half open: when the probe counts as lost.
    breaker_openings integer NOT NULL DEFAULT 0  -- Openings in a row; the wait is 60 s, doubling to 10 min.
    breaker_reason text  -- Why the breaker last opened, for people.
    probe_call bigint  -- The one call that decides.
    last_call_at timestamp with time zone  -- When calls were last claimed, for request_delay_ms.
    trouble text  -- Why others are asked before it where a route names some: breaker open for minutes, quota spent, keys refused. Looked at every 10 s (watch_providers).
    breaker_began_at timestamp with time zone  -- When the breaker opened first; failed probes, which open it again, do not change it. NULL = it is closed.
    page_call bigint  -- The oldest call that waits for its next request: this goes before new calls, and before those of younger calls.
    page_key text  -- The key of that call. Who calls with another one does not wait for it.
    page_until timestamp with time zone  -- Until when others wait for it; it is renewed every second.
    CONSTRAINT provider_state_pkey PRIMARY KEY (provider)
    CONSTRAINT provider_state_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE
    CONSTRAINT breaker_has_end CHECK ((((breaker)::text = 'closed'::text) = (breaker_until IS NULL)))
    CONSTRAINT probing_has_call CHECK ((((breaker)::text = 'half_open'::text) = (probe_call IS NOT NULL)))
) WITH (fillfactor=50);
GRANT SELECT ON TABLE pricing.provider_state TO pricing_reader;
GRANT SELECT ON TABLE pricing.provider_state TO pricing_worker;

-- Spellings that people have given (`instrument spell`). Where none is given, the rule of the provider holds.
CREATE TABLE pricing.provider_symbols (
    provider text NOT NULL  -- Who spells it so.
    asset_class text NOT NULL  -- Of the instrument.
    symbol text NOT NULL  -- The instrument's canonical symbol.
    spelling text NOT NULL  -- What the provider is asked for.
    given_at timestamp with time zone NOT NULL DEFAULT now()  -- When it was given; for older ones, when this column came.
    CONSTRAINT provider_symbols_pkey PRIMARY KEY (provider, asset_class, symbol)
    CONSTRAINT spelling_is_of_one_symbol UNIQUE (provider, asset_class, spelling)
    CONSTRAINT provider_symbols_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE
    CONSTRAINT spelling_has_instrument FOREIGN KEY (asset_class, symbol) REFERENCES pricing.instruments(asset_class, symbol) ON DELETE CASCADE
    CONSTRAINT spelling_is_sane CHECK ((spelling ~ '^[!-+\--~]{1,64}$'::text))
);
CREATE INDEX provider_symbols_of_instrument ON pricing.provider_symbols USING btree (asset_class, symbol);
CREATE TRIGGER check_given_spelling AFTER INSERT OR UPDATE OF spelling ON pricing.provider_symbols FOR EACH ROW EXECUTE FUNCTION pricing.check_given_spelling();
CREATE TRIGGER spelling_changed AFTER INSERT OR DELETE OR UPDATE ON pricing.provider_symbols FOR EACH ROW EXECUTE FUNCTION pricing.spelling_changed();
GRANT SELECT ON TABLE pricing.provider_symbols TO pricing_reader;
GRANT SELECT ON TABLE pricing.provider_symbols TO pricing_worker;

-- Stored bars that came before their day was over, until they have come again after it.
CREATE TABLE pricing.provisional_bars (
    data_type text NOT NULL  -- Whose bar it is.
    symbol text NOT NULL  -- Whose bar it is.
    observed_at timestamp with time zone NOT NULL  -- Its day, as in price_history.
    noted_at timestamp with time zone NOT NULL  -- When it was first stored before its day was over.
    asked integer NOT NULL DEFAULT 0  -- How often it was asked for on its own; after six times it is left as it is.
    ask_at timestamp with time zone NOT NULL  -- When it is asked for next, if no refresh brings it before.
    CONSTRAINT provisional_bars_pkey PRIMARY KEY (data_type, symbol, observed_at)
);
CREATE INDEX provisional_bars_due ON pricing.provisional_bars USING btree (ask_at);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.provisional_bars TO pricing_worker;
GRANT SELECT ON TABLE pricing.provisional_bars TO pricing_reader;

-- How long after a session's end its daily value appears at the provider, learned for each pair.
CREATE TABLE pricing.publish_lags (
    data_type text NOT NULL  -- Whose values.
    symbol text NOT NULL  -- Whose values.
    lag interval NOT NULL  -- From the close until the value is asked for.
    measurements integer NOT NULL DEFAULT 1  -- How many sessions it was learned from.
    learned_at timestamp with time zone NOT NULL  -- When it was last corrected.
    CONSTRAINT publish_lags_pkey PRIMARY KEY (data_type, symbol)
    CONSTRAINT lag_is_sane CHECK (((lag >= '00:00:00'::interval) AND (lag <= '24:00:00'::interval)))
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.publish_lags TO pricing_worker;
GRANT SELECT ON TABLE pricing.publish_lags TO pricing_reader;

-- Answers that brought quarantined values: one for each call that brought a new one. API keys are blotted out.
CREATE TABLE pricing.quarantined_bodies (
    call_id bigint NOT NULL  -- The call, in collector_call_log as long as that is kept.
    body bytea NOT NULL  -- Compressed by zlib: the first 1,000,000 bytes of the body.
    size integer NOT NULL  -- Bytes of the whole body, uncompressed.
    http_status integer  -- The status it came with.
    recorded_at timestamp with time zone NOT NULL  -- When it came.
    CONSTRAINT quarantined_bodies_pkey PRIMARY KEY (call_id)
    CONSTRAINT body_is_bounded CHECK ((octet_length(body) <= 1100000))
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.quarantined_bodies TO pricing_worker;
GRANT SELECT ON TABLE pricing.quarantined_bodies TO pricing_reader;

-- Values that a provider sent and that are not believed: never prices, kept for people. The same value is one row, however often it comes.
CREATE TABLE pricing.quarantined_values (
    value_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- Numbers quarantined values.
    data_type text NOT NULL  -- What it was sent as.
    symbol text NOT NULL  -- What was asked for.
    provider text NOT NULL  -- Who sent it.
    observed_at timestamp with time zone  -- The source's time; NULL when it names none that can be.
    kind text NOT NULL  -- refused, closed_day, currency, bounds, unit, jump, spike, split, dividend or disagreement: docs/truth.md.
    value text NOT NULL  -- The source's own spelling of the price; empty where the answer as a whole was refused.
    reason text NOT NULL  -- Why it is not believed, in words.
    bar jsonb  -- All that would be stored if it were true: close, open, high, low, volume, currency, adjustment, as text. NULL when it could not be read.
    call_id bigint NOT NULL  -- The first call that brought it; quarantined_bodies may have its body.
    recorded_at timestamp with time zone NOT NULL  -- When it first came.
    last_seen_at timestamp with time zone NOT NULL  -- When it last came.
    last_call_id bigint NOT NULL  -- The last call that brought it.
    times bigint NOT NULL DEFAULT 1  -- In how many answers it came.
    status text NOT NULL DEFAULT 'quarantined'::text  -- quarantined = waits for a person; released = believed after all and stored; rejected = wrong for good.
    resolved_at timestamp with time zone  -- When that was decided.
    resolved_by text  -- Who has decided: a person, or a call whose answer brought it again and was believed.
    resolution text  -- Why so, in words.
    ask_at timestamp with time zone  -- When workers ask a second provider about it; NULL = it has answered, or nobody is asked any more.
    asked smallint NOT NULL DEFAULT 0  -- How often workers have asked; after four times in vain nobody is.
    CONSTRAINT quarantined_values_pkey PRIMARY KEY (value_id)
    CONSTRAINT same_value_is_one_row UNIQUE NULLS NOT DISTINCT (data_type, symbol, observed_at, kind, value, provider)
    CONSTRAINT quarantined_is_unresolved CHECK (((status = 'quarantined'::text) = (resolved_at IS NULL)))
    CONSTRAINT status_is_known CHECK ((status = ANY (ARRAY['quarantined'::text, 'released'::text, 'rejected'::text])))
    CONSTRAINT value_is_short CHECK ((length(value) <= 100))
);
CREATE INDEX quarantined_values_of_closed_days ON pricing.quarantined_values USING btree (observed_at) WHERE (kind = 'closed_day'::text);
CREATE INDEX quarantined_values_seen ON pricing.quarantined_values USING btree (last_seen_at);
CREATE INDEX quarantined_values_to_ask ON pricing.quarantined_values USING btree (ask_at) WHERE ((ask_at IS NOT NULL) AND (status = 'quarantined'::text));
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.quarantined_values TO pricing_worker;
GRANT SELECT ON TABLE pricing.quarantined_values TO pricing_reader;

-- What workers have served of the reads of each user in the last minute. Only workers write it, one at a time, so no client keeps it locked.
CREATE TABLE pricing.read_charges (
    user_id pricing.user_name NOT NULL  -- Who has read what had to be fetched.
    charged_at timestamp with time zone NOT NULL  -- When it was served.
    pairs integer NOT NULL  -- How many pairs that were.
    CONSTRAINT read_charges_pkey PRIMARY KEY (user_id, charged_at)
    CONSTRAINT pairs_are_positive CHECK ((pairs > 0))
);
ALTER TABLE pricing.read_charges ENABLE ROW LEVEL SECURITY;
CREATE POLICY reader_sees_own ON pricing.read_charges FOR SELECT TO pricing_reader USING (((user_id)::text = (SESSION_USER)::text));  -- A reader sees no rows of another login.
CREATE POLICY worker_serves_all ON pricing.read_charges FOR ALL TO pricing_worker USING (true) WITH CHECK (true);  -- A worker acts for every user.
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.read_charges TO pricing_worker;
GRANT SELECT ON TABLE pricing.read_charges TO pricing_reader;

-- Who is told, by which channel, and when.
CREATE TABLE pricing.recipients (
    recipient text NOT NULL  -- A name for people.
    channel text NOT NULL  -- email, sms, chat, webhook, rest, log, which sends nothing, or an operation type of the user's own that takes messages.
    least_severity text DEFAULT 'P1'::text  -- P0 = told of alerts of P0 alone; P1 = of P0 and P1; P2 = of all; NULL = of none, because it is for users.
    quiet_from time without time zone  -- Messages that are not P0 wait from then, by the recipient's time zone; NULL = never.
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
    ciphertext bytea  -- Address, and secret of a webhook, as JSON, sealed by the data key; NULL for log and channels of the user's own.
    takes_messages boolean NOT NULL GENERATED ALWAYS AS (true) STORED  -- Always true: the channel must be an operation type that takes messages.
    user_id text  -- The user whose price alerts it takes; NULL = no single one.
    takes_any_user boolean NOT NULL DEFAULT false  -- Whether it takes the price alerts of any user, as an application's does.
    CONSTRAINT recipients_pkey PRIMARY KEY (recipient)
    CONSTRAINT channel_takes_messages FOREIGN KEY (channel, takes_messages) REFERENCES pricing.operation_types(operation_type, takes_messages)
    CONSTRAINT quiet_hours_are_whole CHECK ((((quiet_from IS NULL) = (quiet_until IS NULL)) AND (quiet_from <> quiet_until)))
    CONSTRAINT recipient_has_address CHECK ((((channel = ANY (ARRAY['email'::text, 'sms'::text, 'chat'::text, 'webhook'::text, 'rest'::text])) = (ciphertext IS NOT NULL)) AND (num_nulls(master_key_id, key_nonce, wrapped_key, secret_nonce, ciphertext) = ANY (ARRAY[0, 5]))))
    CONSTRAINT recipient_is_of_one_or_any CHECK (((user_id IS NULL) OR (NOT takes_any_user)))
    CONSTRAINT recipient_is_plain_name CHECK ((recipient ~ '^[a-z0-9][a-z0-9_-]{0,47}$'::text))
    CONSTRAINT recipient_user_is_sane CHECK (((length(user_id) >= 1) AND (length(user_id) <= 200)))
    CONSTRAINT severity_is_known CHECK ((least_severity = ANY (ARRAY['P0'::text, 'P1'::text, 'P2'::text])))
    CONSTRAINT time_zone_is_known CHECK ((('2000-01-01 00:00:00+00'::timestamp with time zone AT TIME ZONE time_zone) IS NOT NULL))
    CONSTRAINT users_are_told_of_no_trouble CHECK (((least_severity IS NULL) = ((user_id IS NOT NULL) OR takes_any_user)))
);
ALTER TABLE pricing.recipients ENABLE ROW LEVEL SECURITY;
CREATE POLICY reader_sees_own ON pricing.recipients FOR SELECT TO pricing_reader USING ((user_id = (SESSION_USER)::text));  -- A reader sees no rows of another login.
CREATE POLICY worker_serves_all ON pricing.recipients FOR ALL TO pricing_worker USING (true) WITH CHECK (true);  -- A worker acts for every user.
GRANT SELECT ON TABLE pricing.recipients TO pricing_worker;

-- Counts changes of the registry, so that the sensor knows when to reload the code location; and keeps from where prices come.
CREATE TABLE pricing.registry_state (
    singleton boolean NOT NULL DEFAULT true  -- There is one row.
    version bigint NOT NULL  -- Rises with every change of the registry.
    prices_from text  -- Who is asked for prices: the sandbox or the real providers, whose prices must not mix; NULL until the first worker starts.
    CONSTRAINT registry_state_pkey PRIMARY KEY (singleton)
    CONSTRAINT one_row CHECK (singleton)
    CONSTRAINT prices_from_known CHECK ((prices_from = ANY (ARRAY['sandbox'::text, 'real providers'::text])))
);
GRANT SELECT ON TABLE pricing.registry_state TO pricing_reader;
GRANT SELECT ON TABLE pricing.registry_state TO pricing_worker;

-- Answers in which stored days came with other values: docs/truth.md. By one ratio they are quarantined, and the history is fetched again once; scattered ones are stored, and price_revisions has what was believed.
CREATE TABLE pricing.restatements (
    restatement_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- Numbers restatements.
    data_type text NOT NULL  -- Whose history it is about.
    symbol text NOT NULL  -- Whose history it is about.
    provider text NOT NULL  -- Who sent it.
    kind text NOT NULL  -- split = by one ratio that companies split by; dividend = by another one; scattered = single days; basis = as traded, of a history that is divided by splits.
    ratio numeric  -- What the stored values are divided by; of a basis 1.
    days integer NOT NULL  -- How many stored days came with another value, the last time.
    largest numeric NOT NULL  -- The largest change as a share of the stored value.
    first_on date NOT NULL  -- The first of these days.
    last_on date NOT NULL  -- The last of these days.
    call_id bigint NOT NULL  -- The first call that brought it.
    recorded_at timestamp with time zone NOT NULL  -- When it first came.
    times bigint NOT NULL DEFAULT 1  -- In how many answers it came.
    last_seen_at timestamp with time zone NOT NULL  -- When it last came.
    backfill_id uuid  -- The backfill that fetches the history again; NULL = not planned (yet).
    reopened_at timestamp with time zone  -- When a split became known, or the other basis came again, after which the history is fetched once more; NULL = neither did.
    CONSTRAINT restatements_pkey PRIMARY KEY (restatement_id)
    CONSTRAINT kind_is_known CHECK ((kind = ANY (ARRAY['split'::text, 'dividend'::text, 'scattered'::text, 'basis'::text])))
    CONSTRAINT ratio_is_of_one_ratio CHECK (((kind = 'scattered'::text) = (ratio IS NULL)))
);
CREATE INDEX restatements_pair ON pricing.restatements USING btree (data_type, symbol, last_seen_at);
CREATE INDEX restatements_unasked ON pricing.restatements USING btree (recorded_at) WHERE ((ratio IS NOT NULL) AND (backfill_id IS NULL));
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.restatements TO pricing_worker;
GRANT SELECT ON TABLE pricing.restatements TO pricing_reader;

-- Pairs that a provider said it does not serve, where another one may: it is asked again after a week, or when a route changes.
CREATE TABLE pricing.route_refusals (
    data_type text NOT NULL  -- What was asked for.
    symbol text NOT NULL  -- What was asked for.
    provider text NOT NULL  -- Who does not serve it.
    kind text NOT NULL  -- unknown_symbol, plan_restricted or endpoint_restricted.
    reason text NOT NULL  -- What it said.
    refused_at timestamp with time zone NOT NULL  -- When it said so last.
    refused_until timestamp with time zone NOT NULL  -- Until then others are asked before it.
    CONSTRAINT route_refusals_pkey PRIMARY KEY (data_type, symbol, provider)
    CONSTRAINT route_refusals_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.route_refusals TO pricing_worker;
GRANT SELECT ON TABLE pricing.route_refusals TO pricing_reader;

-- For each scheduled data type: the slot of its schedule that was served last, and how far the walk over its instruments is.
CREATE TABLE pricing.schedule_walks (
    data_type text NOT NULL  -- The scheduled data type.
    served_slot timestamp with time zone NOT NULL  -- No slot up to this one is owed: it was served, or passed before the type had this schedule.
    walk_slot timestamp with time zone  -- The slot whose walk is under way; NULL when none is.
    walk_after text NOT NULL DEFAULT ''::text  -- The walk goes on after this symbol.
    lap_start text NOT NULL DEFAULT ''::text  -- Where the lap began: behind the unfinished walk of an earlier slot. It ends there, too.
    wrapped boolean NOT NULL DEFAULT false  -- The lap has passed the last symbol and goes on from the first.
    next_slot timestamp with time zone  -- The first slot after served_slot, as the sensor reads the schedule; NULL = it has not read it yet, or cannot.
    CONSTRAINT schedule_walks_pkey PRIMARY KEY (data_type)
    CONSTRAINT schedule_walks_data_type_fkey FOREIGN KEY (data_type) REFERENCES pricing.data_type_registry(data_type) ON DELETE CASCADE
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.schedule_walks TO pricing_worker;
GRANT SELECT ON TABLE pricing.schedule_walks TO pricing_reader;

-- What other providers said when they were asked about a quarantined value, by workers or by a person. An opinion helps a person decide; it is never stored as a price.
CREATE TABLE pricing.second_opinions (
    value_id bigint NOT NULL  -- The quarantined value it is about.
    provider text NOT NULL  -- Who was asked.
    call_id bigint NOT NULL  -- The call, in collector_call_log as long as that is kept.
    asked_at timestamp with time zone NOT NULL  -- When it was asked last.
    answered_at timestamp with time zone  -- When it answered; NULL = it has not, or whoever asked was lost.
    observed_at timestamp with time zone  -- The time that it gives its value.
    value numeric  -- What it says; NULL when it has nothing.
    currency text  -- In which currency, where it says so.
    failure text  -- Why it says nothing.
    adjustment text  -- On which basis the value is: raw or splits, as in price_history.
    ratio numeric  -- The quarantined value as a multiple of this one, on one basis: near 1 they agree. NULL = they cannot be compared.
    CONSTRAINT second_opinions_pkey PRIMARY KEY (value_id, provider)
    CONSTRAINT opinion_is_on_a_value FOREIGN KEY (value_id) REFERENCES pricing.quarantined_values(value_id) ON DELETE CASCADE
    CONSTRAINT adjustment_is_known CHECK ((adjustment = ANY (ARRAY['raw'::text, 'splits'::text])))
    CONSTRAINT ratio_is_positive CHECK (((ratio > (0)::numeric) AND (ratio < 'Infinity'::numeric)))
);
CREATE INDEX second_opinions_call ON pricing.second_opinions USING btree (call_id);
CREATE INDEX second_opinions_recent ON pricing.second_opinions USING btree (answered_at) WHERE (ratio IS NOT NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.second_opinions TO pricing_worker;
GRANT SELECT ON TABLE pricing.second_opinions TO pricing_reader;

-- Fetchers of providers that have refused a call for its number of symbols. Claims keep to the smaller one.
CREATE TABLE pricing.shown_batches (
    provider text NOT NULL  -- Who refused.
    fetcher text NOT NULL  -- What was asked for.
    is_of_days boolean NOT NULL  -- Calls for spans of days; else for latest values.
    shown_size integer NOT NULL  -- How many symbols a call may ask for.
    shown_at timestamp with time zone NOT NULL  -- When the last one was refused.
    CONSTRAINT shown_batches_pkey PRIMARY KEY (provider, fetcher, is_of_days)
    CONSTRAINT shown_batch_has_fetcher FOREIGN KEY (provider, fetcher) REFERENCES pricing.provider_capabilities(provider, fetcher) ON DELETE CASCADE
    CONSTRAINT batch_is_positive CHECK ((shown_size > 0))
);
GRANT SELECT ON TABLE pricing.shown_batches TO pricing_reader;
GRANT SELECT ON TABLE pricing.shown_batches TO pricing_worker;

-- Limits of keys that answers have shown to be lower than provider_limits or provider_key_limits says. Claims keep to the lower one.
CREATE TABLE pricing.shown_limits (
    provider text NOT NULL  -- Whose limit.
    key_name text NOT NULL  -- The key that was called with.
    name text NOT NULL  -- The limit's name in provider_limits, which has its window.
    shown_units integer NOT NULL  -- Units that the provider allows in the window, as it says.
    shown_at timestamp with time zone NOT NULL  -- When it last said so, to the minute.
    CONSTRAINT shown_limits_pkey PRIMARY KEY (provider, key_name, name)
    CONSTRAINT shown_limit_has_limit FOREIGN KEY (provider, name) REFERENCES pricing.provider_limits(provider, name) ON DELETE CASCADE
    CONSTRAINT key_name_is_plain CHECK ((key_name ~ '^[a-z0-9][a-z0-9_-]{0,47}$'::text))
    CONSTRAINT shown_limit_is_positive CHECK ((shown_units > 0))
) WITH (fillfactor=50);
GRANT SELECT ON TABLE pricing.shown_limits TO pricing_reader;
GRANT SELECT ON TABLE pricing.shown_limits TO pricing_worker;

-- What works again and again: a sensor of Dagster, the staleness check. And the start of the pipeline.
CREATE TABLE pricing.signs_of_life (
    part text NOT NULL  -- Name of the sensor, enqueue_due = the staleness check, start = the last start of the pipeline, or the end of a time in which nothing ran.
    began_at timestamp with time zone NOT NULL  -- When it last began.
    ended_at timestamp with time zone  -- When it last succeeded; NULL = never yet.
    seconds double precision  -- How long that took.
    times bigint NOT NULL DEFAULT 0  -- How often it has succeeded.
    total_seconds double precision NOT NULL DEFAULT 0  -- How long that took in all.
    CONSTRAINT signs_of_life_pkey PRIMARY KEY (part)
) WITH (fillfactor=50);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.signs_of_life TO pricing_worker;
GRANT SELECT ON TABLE pricing.signs_of_life TO pricing_reader;

-- Wire bytes as measured: of a latest price per symbol, of history per symbol and day. The first measurement is taken whole, each later one counts a tenth.
CREATE TABLE pricing.size_estimates (
    provider text NOT NULL  -- Whose answers.
    data_type text NOT NULL  -- Of what.
    per text NOT NULL  -- What the bytes are of: a symbol's latest price, or a day of a symbol's history.
    bytes double precision NOT NULL  -- Bytes on the wire, as a moving average.
    measurements bigint NOT NULL DEFAULT 1  -- Answers measured.
    measured_at timestamp with time zone NOT NULL  -- When the last of them came.
    overruns bigint NOT NULL DEFAULT 0  -- Answers of more than twice the bytes that were reserved for them.
    last_overrun_at timestamp with time zone  -- When an answer last took more than twice its estimate.
    last_overrun_ratio double precision  -- Bytes that came for each byte reserved, at the last overrun.
    CONSTRAINT size_estimates_pkey PRIMARY KEY (provider, data_type, per)
    CONSTRAINT size_estimates_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE
    CONSTRAINT size_is_per_symbol_or_day CHECK ((per = ANY (ARRAY['symbol'::text, 'day'::text])))
    CONSTRAINT size_is_positive CHECK (((bytes > (0)::double precision) AND (bytes < ('1000000000000'::numeric)::double precision)))
) WITH (fillfactor=50);
GRANT SELECT ON TABLE pricing.size_estimates TO pricing_reader;
GRANT SELECT ON TABLE pricing.size_estimates TO pricing_worker;

-- What was believed of prices of slots before, from recorded_at until revised_at. Its other columns are those of slot_prices.
CREATE TABLE pricing.slot_price_revisions (
    revised_at timestamp with time zone NOT NULL  -- Until when we believed it.
    revised_by bigint  -- The call that brought something else; NULL = a person did.
    slot_key bigint NOT NULL  -- The slot.
    category_key bigint NOT NULL  -- For whom.
    final_price bigint  -- What is paid; NULL = the provider names no price, or no longer.
    original_price bigint  -- Before discounts; NULL = not named.
    discount bigint  -- original_price less final_price; below zero it is a surcharge.
    currency text  -- ISO 4217; NULL only without prices.
    scale smallint NOT NULL  -- How many decimals the three have.
    call_id bigint NOT NULL  -- The call that brought it.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believe it.
);
CREATE INDEX slot_price_revisions_by_slot ON pricing.slot_price_revisions USING btree (slot_key, revised_at);
GRANT INSERT, SELECT ON TABLE pricing.slot_price_revisions TO pricing_worker;
GRANT SELECT ON TABLE pricing.slot_price_revisions TO pricing_reader;

-- What a slot costs for a category: current belief, in units of the last decimal of its currency.
CREATE TABLE pricing.slot_prices (
    slot_key bigint NOT NULL  -- The slot.
    category_key bigint NOT NULL  -- For whom.
    final_price bigint  -- What is paid; NULL = the provider names no price, or no longer.
    original_price bigint  -- Before discounts; NULL = not named.
    discount bigint GENERATED ALWAYS AS ((original_price - final_price)) STORED  -- original_price less final_price; below zero it is a surcharge.
    currency text  -- ISO 4217; NULL only without prices.
    scale smallint NOT NULL  -- How many decimals the three have.
    call_id bigint NOT NULL  -- The call that brought it.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believe it.
    CONSTRAINT slot_prices_pkey PRIMARY KEY (slot_key, category_key)
    CONSTRAINT slot_prices_category_key_fkey FOREIGN KEY (category_key) REFERENCES pricing.pax_categories(category_key)
    CONSTRAINT slot_prices_slot_key_fkey FOREIGN KEY (slot_key) REFERENCES pricing.slots(slot_key)
    CONSTRAINT final_price_is_no_debt CHECK ((final_price >= 0))
    CONSTRAINT original_price_is_no_debt CHECK ((original_price >= 0))
    CONSTRAINT prices_have_a_currency CHECK (((currency IS NOT NULL) OR ((final_price IS NULL) AND (original_price IS NULL))))
    CONSTRAINT slot_currency_is_code CHECK ((currency ~ '^[A-Z]{3}$'::text))
    CONSTRAINT slot_scale_is_sane CHECK (((scale >= 0) AND (scale <= 18)))
) WITH (fillfactor=90);
CREATE TRIGGER keep_revision AFTER UPDATE ON pricing.slot_prices REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION pricing.keep_revision('slot_price_revisions', 'slot_key, category_key');
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.slot_prices TO pricing_worker;
GRANT SELECT ON TABLE pricing.slot_prices TO pricing_reader;

-- What was believed of slots before, from recorded_at until revised_at. Its other columns are those of slots.
CREATE TABLE pricing.slot_revisions (
    revised_at timestamp with time zone NOT NULL  -- Until when we believed it.
    revised_by bigint  -- The call that brought something else; NULL = a person did.
    slot_key bigint NOT NULL  -- Our number of it.
    symbol text NOT NULL  -- The product.
    provider text NOT NULL  -- Whose ids these are.
    option_id text NOT NULL  -- The option's id at the provider.
    slot_id text NOT NULL  -- Its id at the provider, unique within product and option.
    local_day date NOT NULL  -- The day on which it starts where it takes place.
    local_start timestamp without time zone NOT NULL  -- When it starts by the clock of its place.
    local_end timestamp without time zone NOT NULL  -- When it ends by the clock of its place.
    utc_offset interval  -- What the provider says local_start is ahead of UTC; NULL = nothing, so time_zone places it.
    time_zone text  -- The product's zone by which its times were placed; NULL = utc_offset places them.
    starts_at timestamp with time zone NOT NULL  -- When it starts.
    ends_at timestamp with time zone NOT NULL  -- When it ends.
    bookable_until timestamp with time zone  -- Until when the provider takes bookings; NULL = it does not say.
    status text NOT NULL  -- available, freesale (without a bound), limited, sold_out or closed as the provider says; vanished = it no longer lists it.
    remaining integer  -- Places left; NULL = not said, or without a bound.
    capacity integer  -- Places in all; NULL = not said.
    call_id bigint NOT NULL  -- The call that brought this.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believe it.
);
CREATE INDEX slot_revisions_by_product ON pricing.slot_revisions USING btree (symbol, local_day, revised_at);
GRANT INSERT, SELECT ON TABLE pricing.slot_revisions TO pricing_worker;
GRANT SELECT ON TABLE pricing.slot_revisions TO pricing_reader;

-- The local days that the last answer of each pair listed whole: since when each day is confirmed.
CREATE TABLE pricing.slot_windows (
    data_type text NOT NULL  -- Which slots were asked for.
    symbol text NOT NULL  -- Of which product.
    first_day date NOT NULL  -- First local day of the answer.
    last_day date NOT NULL  -- Last local day of the answer, included.
    fetched_at timestamp with time zone NOT NULL  -- When it was stored.
    provider text NOT NULL  -- Who answered.
    call_id bigint NOT NULL  -- The call; an answer to an earlier one says nothing about these days.
    unread_days date[] NOT NULL DEFAULT '{}'::date[]  -- Those of the days on which the answer has a slot whose id cannot be read: it says nothing about them.
    CONSTRAINT slot_windows_pkey PRIMARY KEY (data_type, symbol)
    CONSTRAINT slot_windows_symbol_fkey FOREIGN KEY (symbol) REFERENCES pricing.products(symbol)
    CONSTRAINT slot_window_is_upright CHECK ((last_day >= first_day))
) WITH (fillfactor=70);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.slot_windows TO pricing_worker;
GRANT SELECT ON TABLE pricing.slot_windows TO pricing_reader;

-- A time at which an option of a product takes place: current belief.
CREATE TABLE pricing.slots (
    slot_key bigint NOT NULL GENERATED ALWAYS AS IDENTITY  -- Our number of it.
    symbol text NOT NULL  -- The product.
    provider text NOT NULL  -- Whose ids these are.
    option_id text NOT NULL  -- The option's id at the provider.
    slot_id text NOT NULL  -- Its id at the provider, unique within product and option.
    local_day date GENERATED ALWAYS AS ((local_start)::date) STORED  -- The day on which it starts where it takes place.
    local_start timestamp without time zone NOT NULL  -- When it starts by the clock of its place.
    local_end timestamp without time zone NOT NULL  -- When it ends by the clock of its place.
    utc_offset interval  -- What the provider says local_start is ahead of UTC; NULL = nothing, so time_zone places it.
    time_zone text  -- The product's zone by which its times were placed; NULL = utc_offset places them.
    starts_at timestamp with time zone NOT NULL  -- When it starts.
    ends_at timestamp with time zone NOT NULL  -- When it ends.
    bookable_until timestamp with time zone  -- Until when the provider takes bookings; NULL = it does not say.
    status text NOT NULL  -- available, freesale (without a bound), limited, sold_out or closed as the provider says; vanished = it no longer lists it.
    remaining integer  -- Places left; NULL = not said, or without a bound.
    capacity integer  -- Places in all; NULL = not said.
    call_id bigint NOT NULL  -- The call that brought this.
    recorded_at timestamp with time zone NOT NULL  -- Since when we believe it.
    CONSTRAINT slots_pkey PRIMARY KEY (slot_key)
    CONSTRAINT slots_symbol_provider_option_id_slot_id_key UNIQUE (symbol, provider, option_id, slot_id)
    CONSTRAINT slots_symbol_fkey FOREIGN KEY (symbol) REFERENCES pricing.products(symbol)
    CONSTRAINT capacity_is_sane CHECK ((capacity >= 0))
    CONSTRAINT slot_ends_after_it_starts CHECK ((ends_at >= starts_at))
    CONSTRAINT slot_is_placed_once CHECK (((utc_offset IS NULL) <> (time_zone IS NULL)))
    CONSTRAINT slot_remaining_is_sane CHECK (((remaining >= 0) AND (remaining <= capacity)))
    CONSTRAINT slot_status_is_known CHECK ((status = ANY (ARRAY['available'::text, 'freesale'::text, 'limited'::text, 'sold_out'::text, 'closed'::text, 'vanished'::text])))
) WITH (fillfactor=85);
CREATE INDEX slots_by_day ON pricing.slots USING btree (symbol, local_day);
CREATE TRIGGER keep_revision AFTER UPDATE ON pricing.slots REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION pricing.keep_revision('slot_revisions', 'slot_key');
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.slots TO pricing_worker;
GRANT SELECT ON TABLE pricing.slots TO pricing_reader;

-- What changed about streamed pairs, kept ten minutes (100,000 events at most): a live stream that was cut off goes on from here.
CREATE TABLE pricing.stream_events (
    "position" bigint NOT NULL  -- Rises in the order of commits; of a pair in the order of its prices.
    noted_at timestamp with time zone NOT NULL  -- When it was noted.
    data_type text NOT NULL  -- What changed: its data type.
    symbol text NOT NULL  -- Its symbol.
    is_new_price boolean NOT NULL  -- Whether the price is new; else only its freshness, or the reason, has changed.
    amount bigint  -- The price in units of its last decimal; NULL = it has none.
    scale smallint  -- How many decimals the price has.
    currency text  -- NULL = the provider named none.
    observed_at timestamp with time zone  -- The price's time at the source.
    fetched_at timestamp with time zone  -- When a provider last confirmed it.
    provider text  -- Who sent it.
    is_fresh boolean NOT NULL  -- Whether the pair is fresh now.
    state text  -- Why it is not, in one word; NULL = it is.
    sentence text  -- The same in a sentence.
    since timestamp with time zone  -- Since when that is so.
    next_at timestamp with time zone  -- When that may change.
    CONSTRAINT stream_events_pkey PRIMARY KEY ("position")
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.stream_events TO pricing_worker;
GRANT SELECT ON TABLE pricing.stream_events TO pricing_reader;

-- How far the log of live streams goes. Who has its row locked looks for changes, and nobody else meanwhile: so positions are given in the order of commits.
CREATE TABLE pricing.stream_head (
    is_only boolean NOT NULL DEFAULT true  -- There is one row.
    "position" bigint NOT NULL DEFAULT 0  -- Of the last event; positions have no gaps but where pairs were forgotten.
    kept_from bigint NOT NULL DEFAULT 0  -- Events up to this position are deleted.
    log_id uuid NOT NULL DEFAULT gen_random_uuid()  -- Which log this is, of all databases. With the table's own number, which a restore changes, it is part of the ids that clients go on after.
    CONSTRAINT stream_head_pkey PRIMARY KEY (is_only)
    CONSTRAINT head_is_only_one CHECK (is_only)
    CONSTRAINT head_is_upright CHECK (((0 <= kept_from) AND (kept_from <= "position")))
) WITH (fillfactor=50);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.stream_head TO pricing_worker;
GRANT SELECT ON TABLE pricing.stream_head TO pricing_reader;

-- Pairs that a live stream shows, or showed a quarter of an hour ago, as they were last told.
CREATE TABLE pricing.streamed_pairs (
    data_type text NOT NULL  -- Its data type.
    symbol text NOT NULL  -- Its symbol.
    since_position bigint NOT NULL  -- The log has all its events after this position.
    wanted_until timestamp with time zone NOT NULL  -- When it is forgotten; a stream that shows it puts this off.
    judge_at timestamp with time zone NOT NULL  -- When its freshness is looked at next; -infinity = nobody has looked at it yet.
    amount bigint  -- The price in units of its last decimal; NULL = it has none.
    scale smallint  -- How many decimals the price has.
    currency text  -- NULL = the provider named none.
    observed_at timestamp with time zone  -- The price's time at the source.
    fetched_at timestamp with time zone  -- When a provider last confirmed it.
    provider text  -- Who sent it.
    is_fresh boolean NOT NULL DEFAULT false  -- Whether that is within its TTL, or nothing newer is to be expected.
    state text  -- Why it is not fresh, in one word of pricing.why_old; NULL = it is.
    sentence text  -- The same in a sentence.
    since timestamp with time zone  -- Since when that is so.
    next_at timestamp with time zone  -- When that may change.
    CONSTRAINT streamed_pairs_pkey PRIMARY KEY (data_type, symbol)
) WITH (fillfactor=50);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.streamed_pairs TO pricing_worker;
GRANT SELECT ON TABLE pricing.streamed_pairs TO pricing_reader;

-- Symbols of instruments that were merged into others, which they mean now. No rule of spelling leads to them.
CREATE TABLE pricing.symbol_aliases (
    asset_class text NOT NULL  -- The class of both.
    alias text NOT NULL  -- What somebody may still write.
    symbol text NOT NULL  -- The instrument that is meant.
    CONSTRAINT symbol_aliases_pkey PRIMARY KEY (asset_class, alias)
    CONSTRAINT alias_has_instrument FOREIGN KEY (asset_class, symbol) REFERENCES pricing.instruments(asset_class, symbol) ON DELETE CASCADE
);
CREATE INDEX symbol_aliases_of_instrument ON pricing.symbol_aliases USING btree (asset_class, symbol);
GRANT SELECT ON TABLE pricing.symbol_aliases TO pricing_reader;
GRANT SELECT ON TABLE pricing.symbol_aliases TO pricing_worker;

-- How long completed tasks took from queueing to stored, counted since the beginning.
CREATE TABLE pricing.task_times (
    data_type text NOT NULL  -- Tasks of which data type.
    wanted_by text NOT NULL  -- Who wanted them, by their priority: viewers, holdings, schedules or backfills.
    buckets bigint[] NOT NULL  -- How many took up to so many seconds: one number for each of pricing.task_time_bounds(), each includes those before it.
    times bigint NOT NULL  -- How many there were.
    total_seconds double precision NOT NULL  -- How long they took in all.
    counted_until timestamp with time zone NOT NULL  -- What finished up to then was counted; the latest of all rows counts.
    CONSTRAINT task_times_pkey PRIMARY KEY (data_type, wanted_by)
    CONSTRAINT wanted_by_is_known CHECK ((wanted_by = ANY (ARRAY['viewers'::text, 'holdings'::text, 'schedules'::text, 'backfills'::text])))
) WITH (fillfactor=50);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.task_times TO pricing_worker;
GRANT SELECT ON TABLE pricing.task_times TO pricing_reader;

-- Where commodities are traded. One that its provider lists no more stays, and is marked.
CREATE TABLE pricing.terminals (
    symbol text NOT NULL  -- Its symbol, such as UEX:12.
    name text NOT NULL  -- Its name in the game.
    code text  -- Its short name, such as ARCL1.
    system text  -- The star system.
    planet text  -- The planet; NULL = at none.
    moon text  -- The moon; NULL = on none.
    place text  -- The station, outpost or city.
    is_available boolean NOT NULL DEFAULT true  -- Whether players can trade there now.
    modified_at timestamp with time zone  -- The source's time of its last change; NULL = never changed.
    recorded_at timestamp with time zone NOT NULL  -- When this row last changed here.
    vanished_at timestamp with time zone  -- Since when its provider lists it no more; NULL = it is listed, or known from prices only.
    call_id bigint NOT NULL  -- The call that brought the last change.
    CONSTRAINT terminals_pkey PRIMARY KEY (symbol)
    CONSTRAINT terminal_symbol_is_short CHECK (((length(symbol) >= 1) AND (length(symbol) <= 40)))
);
GRANT INSERT, SELECT, UPDATE ON TABLE pricing.terminals TO pricing_worker;
GRANT SELECT ON TABLE pricing.terminals TO pricing_reader;

-- How far the history of each pair is thinned, so that nothing is read twice for it.
CREATE TABLE pricing.thinned (
    data_type text NOT NULL  -- Whose history.
    symbol text NOT NULL  -- Whose history.
    until timestamp with time zone NOT NULL  -- Midnight UTC; quotes before it were thinned.
    CONSTRAINT thinned_pkey PRIMARY KEY (data_type, symbol)
) WITH (fillfactor=70);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.thinned TO pricing_worker;
GRANT SELECT ON TABLE pricing.thinned TO pricing_reader;
GRANT SELECT ON TABLE pricing.trade_routes TO pricing_reader;
GRANT SELECT ON TABLE pricing.trade_routes TO pricing_worker;

-- By how much the TTLs of what a provider serves are stretched, so that its quota of bytes lasts. A provider that has used less than a twentieth of its quota has no row. Noted every 5 min (stretch_ttls); a row of more than 15 min ago stretches nothing.
CREATE TABLE pricing.ttl_stretches (
    provider text NOT NULL  -- Whose quota.
    watched_factor double precision NOT NULL  -- How many TTLs old a watched price gets before its pair is queued; 1 = its TTL.
    background_factor double precision NOT NULL  -- The same of what is held and not watched, and of schedules. These are stretched first.
    watched_need double precision NOT NULL  -- Bytes an hour that watched pairs need at their TTLs, averaged over about a day.
    need_weight double precision NOT NULL  -- How much of a day that average has seen, from 0 to 1.
    ends_at timestamp with time zone  -- When the quota would end for viewers if nothing were stretched (quota_forecasts); NULL = it lasts.
    noted_at timestamp with time zone NOT NULL  -- When this was worked out.
    CONSTRAINT ttl_stretches_pkey PRIMARY KEY (provider)
    CONSTRAINT ttl_stretches_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE
    CONSTRAINT background_ttls_never_shrink CHECK ((background_factor >= (1)::double precision))
    CONSTRAINT need_is_not_negative CHECK ((watched_need >= (0)::double precision))
    CONSTRAINT watched_ttls_never_shrink CHECK ((watched_factor >= (1)::double precision))
    CONSTRAINT weight_is_a_share CHECK (((need_weight > (0)::double precision) AND (need_weight <= (1)::double precision)))
) WITH (fillfactor=50);
GRANT SELECT ON TABLE pricing.ttl_stretches TO pricing_reader;
GRANT SELECT ON TABLE pricing.ttl_stretches TO pricing_worker;

-- One row for each kind of work that must not run twice at once; whoever does it has the row locked. A new row is made when it is needed.
CREATE TABLE pricing.turns (
    name text NOT NULL  -- The work.
    CONSTRAINT turns_pkey PRIMARY KEY (name)
);
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.turns TO pricing_worker;
GRANT SELECT ON TABLE pricing.turns TO pricing_reader;
GRANT SELECT ON TABLE pricing.universe TO pricing_reader;
GRANT SELECT ON TABLE pricing.universe TO pricing_worker;

-- What users have used of their new pairs a minute. Leaving gives nothing back, so coming and going is bounded, too.
CREATE TABLE pricing.user_allowances (
    user_id text NOT NULL  -- Who has begun to watch or hold something lately.
    spent_until timestamp with time zone NOT NULL  -- Each new pair moves it on by its share of a minute; at most a minute ahead of now. In the past: nothing is used.
    CONSTRAINT user_allowances_pkey PRIMARY KEY (user_id)
) WITH (fillfactor=50);
ALTER TABLE pricing.user_allowances ENABLE ROW LEVEL SECURITY;
CREATE POLICY reader_sees_own ON pricing.user_allowances FOR SELECT TO pricing_reader USING ((user_id = (SESSION_USER)::text));  -- A reader sees no rows of another login.
CREATE POLICY worker_serves_all ON pricing.user_allowances FOR ALL TO pricing_worker USING (true) WITH CHECK (true);  -- A worker acts for every user.
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE pricing.user_allowances TO pricing_worker;
GRANT SELECT ON TABLE pricing.user_allowances TO pricing_reader;

-- What one user may ask for. The one row may be changed at any time; it counts from the next heartbeat.
CREATE TABLE pricing.user_caps (
    singleton boolean NOT NULL DEFAULT true  -- Keeps it at one row.
    pairs_per_user integer NOT NULL DEFAULT 10000  -- Pairs one user may watch at once, and as many may be held; reads have no more fetched in a minute.
    new_pairs_per_minute integer NOT NULL DEFAULT 5000  -- Pairs one user may begin to watch or hold, or have fetched by reads, in a minute.
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

-- Calendars of the quotes that are watched at a provider with a limit of a calendar day, as of the last minute.
CREATE TABLE pricing.watched_calendars (
    provider text NOT NULL  -- Who is asked for the quotes.
    calendar text NOT NULL  -- When they trade; empty = not known.
    CONSTRAINT watched_calendars_pkey PRIMARY KEY (provider, calendar)
    CONSTRAINT watched_calendars_provider_fkey FOREIGN KEY (provider) REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE
);
GRANT SELECT ON TABLE pricing.watched_calendars TO pricing_reader;
GRANT SELECT ON TABLE pricing.watched_calendars TO pricing_worker;

-- Sessions of a pair between two days that have no value, neither believed nor quarantined, and should have one: those of the last 30 days, and those between the first and the last stored value.
CREATE FUNCTION pricing.absent_sessions(wanted_type text, wanted_symbol text, from_day date, to_day date) RETURNS SETOF date LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.absent_sessions(text,text,date,date) TO pricing_reader, pricing_worker;

-- Spans of trading days that answers lacked and that are to be asked for again now. After three times a day is asked for only while another instrument of its exchange has a value of it.
CREATE FUNCTION pricing.absent_spans() RETURNS TABLE(data_type text, symbol text, first_day date, last_day date, since timestamp with time zone) LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.absent_spans() TO pricing_reader, pricing_worker;

-- The set that an action of a day belongs to: splits and spin-offs are one set, because a provider may report one as the other.
CREATE FUNCTION pricing.action_set(kind text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.action_set(text) TO pricing_reader, pricing_worker;

-- Corporate actions of an instrument, the newest first, a day's split or spin-off before its payments: as they were believed at a time; NULL = as they are now.
CREATE FUNCTION pricing.actions_as_of(wanted_class text, wanted_symbol text, as_of timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS TABLE(ex_on date, kind text, new_shares numeric, old_shares numeric, amount bigint, scale smallint, currency text, provider text, call_id bigint, recorded_at timestamp with time zone, entered_by text, reason text) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.actions_as_of(text,text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- The actions of an answer as they would be stored, before payments of one day get their parts.
CREATE FUNCTION pricing.actions_of_answer(wanted_class text, from_provider text, from_call bigint, actions jsonb) RETURNS SETOF pricing.corporate_actions LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.actions_of_answer(text,text,bigint,jsonb) TO pricing_reader, pricing_worker;

-- Makes the instruments (unverified) and the demand of pairs that have none, due at once. What another session holds is passed over, and found by adopt_pairs; symbols that are another instrument's spelling are left out.
CREATE FUNCTION pricing.add_demand(data_types text[], symbols text[], until timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=100ms;
GRANT EXECUTE ON FUNCTION pricing.add_demand(text[],text[],timestamp with time zone) TO pricing_worker;

-- Every provider has the row that its claims lock.
TRIGGER FUNCTION pricing.add_provider_state() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Values of a pair between two UTC days as decimals, oldest first: as believed at a time (NULL = now), and raw, adjusted for splits, or for total return by what was known then (NULL = as stored, exactly). What is adjusted is rounded to 10 decimals. read_until: the last day of a read of which these days are a part.
CREATE FUNCTION pricing.adjusted_prices(wanted_type text, wanted_symbol text, first_day date, last_day date, as_of timestamp with time zone DEFAULT NULL::timestamp with time zone, adjust text DEFAULT NULL::text, archived pricing.price_revisions[] DEFAULT NULL::pricing.price_revisions[], read_until date DEFAULT NULL::date) RETURNS TABLE(observed_at timestamp with time zone, open numeric, high numeric, low numeric, close numeric, volume numeric, currency text, adjustment text, provider text, call_id bigint, recorded_at timestamp with time zone, quality text) LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.adjusted_prices(text,text,date,date,timestamp with time zone,text,pricing.price_revisions[],date) TO pricing_reader, pricing_worker;

-- What came after the days of each span (from_day included, until_day not), for a read between two days: so many new shares for so many old ones by which prices are divided (splits and spin-offs), by which volumes are multiplied (splits alone), the part of a price that payments left, and which payments after the span could not be counted. One row where nothing did.
CREATE FUNCTION pricing.adjustment_steps(wanted_type text, wanted_symbol text, with_payments boolean, first_day date, last_day date, as_of timestamp with time zone, archived pricing.price_revisions[]) RETURNS TABLE(from_day date, until_day date, new_shares numeric, old_shares numeric, more_volume numeric, less_volume numeric, kept numeric, not_counted text) LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.adjustment_steps(text,text,boolean,date,date,timestamp with time zone,pricing.price_revisions[]) TO pricing_reader, pricing_worker;

-- How many new pairs of a user, of those it asks for, its caps admit now, which is booked; how many would fit beside those it had if there were time; in how many seconds the rest of these can follow; and what to say about the rest.
CREATE FUNCTION pricing.admit_pairs(user_id text, new_pairs integer, had bigint, OUT admitted integer, OUT fitting integer, OUT retry_after integer, OUT too_many text, OUT too_fast text) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.admit_pairs(text,integer,bigint) TO pricing_worker;

-- Refuses (53400) a price alert that has just been added, if its user has more of them than one user may have; returns how many. The sessions of one user take turns.
CREATE FUNCTION pricing.admit_price_alert(user_id pricing.user_name) RETURNS bigint LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.admit_price_alert(pricing.user_name) TO pricing_worker;

-- The reads that may be served now, of each user within its caps; the others wait. Lets one session at a time serve reads, until its transaction ends.
CREATE FUNCTION pricing.admitted_reads() RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.admitted_reads() TO pricing_worker;

-- Serves what is watched or held and was not yet: it has no demand, or was last judged for nobody, because another session was in the way of its request. Returns how many pairs that are.
CREATE FUNCTION pricing.adopt_pairs() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off, plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.adopt_pairs() TO pricing_worker;

-- After a day of a calendar was corrected: adds or deletes its session, notes quarantined bars of it for release, and has pairs that wait for an opening judged now.
CREATE FUNCTION pricing.after_correction(wanted_calendar text, on_day date, why text) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.after_correction(text,date,text) TO pricing_worker;

-- What the ratio of two providers' values says: agrees, within a tenth of each other; disagrees; NULL = not known.
CREATE FUNCTION pricing.agreement(ratio numeric) RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.agreement(numeric) TO pricing_reader, pricing_worker;

-- The page of the Dagster UI that an alert is about, as a path: a run, or the asset of a data type or provider. NULL = none.
CREATE FUNCTION pricing.alert_place(rule text, subject text, says text) RETURNS text LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.alert_place(text,text,text) TO pricing_reader, pricing_worker;

-- Alerts that recipients are to be told of now: new ones, those whose repetition is due, those of which more has happened (an hour later at the earliest), those that are over; notes them as told. The less urgent (P2) come together once a day.
CREATE FUNCTION pricing.alerts_to_tell() RETURNS TABLE(alert_id bigint, rule text, subject text, severity text, says text, since timestamp with time zone, is_over boolean, is_repeated boolean, has_news boolean) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.alerts_to_tell() TO pricing_worker;

-- Returns the answer to a request that names pairs, or raises an error if one of them is refused; the statement then changes nothing: SELECT pricing.all_or_nothing(pricing.heartbeat(...)).
CREATE FUNCTION pricing.all_or_nothing(answer jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.all_or_nothing(jsonb) TO pricing_client, pricing_reader, pricing_worker;

-- What a provider allows now: the key with the most room, its units, the bytes of the quota, how many calls and tasks. NULL = no call, also while as many calls are in flight as it may have. Exact only under the lock of the provider_state row.
CREATE FUNCTION pricing.allowance_of(state pricing.provider_state, keys text[], max_calls integer, now_ timestamp with time zone) RETURNS pricing.call_allowance LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.allowance_of(pricing.provider_state,text[],integer,timestamp with time zone) TO pricing_worker;

-- Notes a file that is about to take the place of the one that a month has: reads accept both until note_export.
CREATE FUNCTION pricing.announce_export(wanted_type text, wanted_month date, bytes bigint, digest text) RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.announce_export(text,date,bigint,text) TO pricing_worker;

-- What a request that names pairs answers: changed = how many are new; how many are accepted, doubtful (accepted, with a warning) and refused; pairs = those that are not accepted as they are written, in the order given; faults = the same doubts and refusals, those of one kind told once. accepted = pairs beside the answers.
CREATE FUNCTION pricing.answer_pairs(changed integer, accepted integer, answers pricing.pair_answer[] DEFAULT '{}'::pricing.pair_answer[]) RETURNS jsonb LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.answer_pairs(integer,integer,pricing.pair_answer[]) TO pricing_reader, pricing_worker;

-- A task's history with an entry, or an array of them, added. It keeps the first entry and the last ten, and counts the others: a task that is snoozed all day must not grow with each snooze.
CREATE FUNCTION pricing.append_errors(errors jsonb, added jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.append_errors(jsonb,jsonb) TO pricing_reader, pricing_worker;

-- Applies the corrections of a calendar to its known sessions between two days. Returns to how many days.
CREATE FUNCTION pricing.apply_corrections(wanted_calendar text, from_day date, to_day date) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.apply_corrections(text,date,date) TO pricing_worker;

-- Refuses a data type whose fetcher is unknown or does not fit its asset class, notes what it consists of, and names the judge of its staleness where the row does not: the market for daily values, the TTL for all else.
TRIGGER FUNCTION pricing.apply_fetcher() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- The moved values that were believed at a time (NULL = now), unless what is stored has taken their place by then.
CREATE FUNCTION pricing.archived_as_of(wanted_type text, wanted_symbol text, since timestamp with time zone, before timestamp with time zone, as_of timestamp with time zone, archived pricing.price_revisions[]) RETURNS SETOF pricing.price_revisions LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.archived_as_of(text,text,timestamp with time zone,timestamp with time zone,timestamp with time zone,pricing.price_revisions[]) TO pricing_reader, pricing_worker;

-- Whether TTLs of any provider may be stretched: stretch_of says by how much.
CREATE FUNCTION pricing.are_ttls_stretched() RETURNS boolean LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.are_ttls_stretched() TO pricing_reader, pricing_worker;

-- A rule has changed: of values of the last three days on which nobody has an opinion, workers ask again. Returns how many.
CREATE FUNCTION pricing.ask_about_quarantined(wanted_type text, wanted_symbol text) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.ask_about_quarantined(text,text) TO pricing_worker;

-- Forgets that the provider has answered for the days between two that have no value, so that the next backfill asks for them once more. Returns of how many pairs.
CREATE FUNCTION pricing.ask_again(wanted_type text, from_day date, to_day date, only_symbols text[] DEFAULT NULL::text[]) RETURNS bigint LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.ask_again(text,date,date,text[]) TO pricing_worker;

-- Has what a schedule reached and could not queue looked at once more in a minute, and meanwhile what other providers serve.
CREATE FUNCTION pricing.ask_later(wanted_type text, symbols text[]) RETURNS void LANGUAGE sql SET search_path=pg_temp, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.ask_later(text,text[]) TO pricing_worker;

-- Those of the symbols that the slot served last still asks for: not left out, not backing off, not queued, not fetched since that slot, and a newer value may exist. NULL = none.
CREATE FUNCTION pricing.asked_by_schedule(wanted_type text, symbols text[]) RETURNS text[] LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.asked_by_schedule(text,text[]) TO pricing_worker;

-- Locks the quarantined values that one call of a provider asks about: the chosen one, and others of its data type and day, or of any time where day is NULL.
CREATE FUNCTION pricing.asked_together(chosen pricing.quarantined_values, wanted_provider text, day date, most integer, OUT value_ids bigint[], OUT symbols text[]) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.asked_together(pricing.quarantined_values,text,date,integer) TO pricing_worker;

-- The slots of a product on local days (a week from today; 366 at most), a row for each category: times, places, exact prices, whether so many people can be booked (sellable), since when we believe it, when its day was last confirmed, and whether that is within its TTL. Queues what is missing or stale, and waits for nothing. With a time: as we believed it then.
CREATE FUNCTION pricing.availability(wanted_symbol text, first_day date DEFAULT NULL::date, last_day date DEFAULT NULL::date, pax integer DEFAULT 1, only_currency text DEFAULT NULL::text, only_sellable boolean DEFAULT false, as_of timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS TABLE(local_day date, option_id text, option_name text, slot_id text, local_start timestamp without time zone, local_end timestamp without time zone, starts_at timestamp with time zone, status text, remaining integer, capacity integer, sellable boolean, category_id text, category text, is_primary boolean, minimum integer, maximum integer, pax_remaining integer, final numeric, original numeric, discount numeric, currency text, provider text, recorded_at timestamp with time zone, fetched_at timestamp with time zone, fresh boolean) LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.availability(text,date,date,integer,text,boolean,timestamp with time zone) TO pricing_client, pricing_reader, pricing_worker;

-- Waits until no other claim is under way, of whatever provider, so that each sees the symbols of the others' calls. Waits a quarter of a second at most.
CREATE FUNCTION pricing.await_claims() RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.await_claims() TO pricing_worker;

-- In a transaction of its own: when that is committed, all that was committed before is on the disk. Crash or not, it cannot be lost any more.
CREATE FUNCTION pricing.await_disk() RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.await_disk() TO pricing_worker;

-- What take_turn does, for a person who can wait a second for it.
CREATE FUNCTION pricing.await_turn(wanted text) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.await_turn(text) TO pricing_worker;

-- Has pairs back off whose task died so, that the next check does not start them again. After trouble they stay owed since they were; after a fault of the symbol nothing is owed. A reader is served by that: it is told why. Those that another session has locked are passed over.
CREATE FUNCTION pricing.back_off(wanted_type text, symbols text[], kind text, reason text) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.back_off(text,text[],text,text) TO pricing_worker;

-- How many tasks a backfill waits for, how many are not finished, how many failed.
CREATE FUNCTION pricing.backfill_progress(wanted uuid, OUT tasks integer, OUT open integer, OUT failed integer) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.backfill_progress(uuid) TO pricing_worker;

-- Cuts the days of a backfill to those that can have history; refuses, in a sentence, what makes no sense.
CREATE FUNCTION pricing.backfill_span(wanted_type text, INOUT from_day date, INOUT to_day date) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.backfill_span(text,date,date) TO pricing_reader, pricing_worker;

-- The instruments that a backfill of the whole type (NULL), or of these symbols, does not leave out.
CREATE FUNCTION pricing.backfilled(wanted_type text, only_symbols text[]) RETURNS TABLE(symbol text, calendar text) LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.backfilled(text,text[]) TO pricing_reader, pricing_worker;

-- How long a pair backs off whose task died so, after so many deaths before: 1 min doubling to 10 min after trouble, 1 h doubling to 24 h after a fault of its symbol.
CREATE FUNCTION pricing.backoff_interval(kind text, failures integer) RETURNS interval LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.backoff_interval(text,integer) TO pricing_reader, pricing_worker;

-- Quarantined bars of days that have become sessions, with the reason: of each pair, the bar that came last.
CREATE FUNCTION pricing.bars_of_opened_days() RETURNS TABLE(calendar text, day date, reason text, notes bigint, value_ids bigint[]) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.bars_of_opened_days() TO pricing_reader, pricing_worker;

-- The day whose shares a stored value refers to: its own day if it is as traded; the day on which it was recorded if it is divided by the splits until then.
CREATE FUNCTION pricing.basis_day(adjustment text, observed_at timestamp with time zone, recorded_at timestamp with time zone) RETURNS date LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.basis_day(text,timestamp with time zone,timestamp with time zone) TO pricing_reader, pricing_worker;

-- How many symbols one call of a provider may ask for: for the latest price, or for a span of days, of which all symbols together have no more days than a call may. Never more than the provider has shown within a day to take.
CREATE FUNCTION pricing.batch_of(able pricing.provider_capabilities, first_day date, last_day date) RETURNS integer LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.batch_of(pricing.provider_capabilities,date,date) TO pricing_reader, pricing_worker;

-- By how much smaller the calls of a task are after its failures. A refusal of a whole batch does not say which symbol it means: each one makes the next call ten times smaller, so that the third asks for one symbol, and only what is refused alone is refused for good.
CREATE FUNCTION pricing.batch_parts(errors jsonb) RETURNS integer LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.batch_parts(jsonb) TO pricing_reader, pricing_worker;

-- Starts a drain, whose run was requested at a time; or returns NULL when wanted_drains are at work, of the most that are allowed, or another session is starting one.
CREATE FUNCTION pricing.begin_drain(worker_name text, run text, seconds integer, requested timestamp with time zone DEFAULT NULL::timestamp with time zone, most integer DEFAULT 1) RETURNS uuid LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.begin_drain(text,text,integer,timestamp with time zone,integer) TO pricing_worker;

-- What heartbeat and hold do about pairs that their user does not watch or hold yet: enters the good ones, in the order given and within the user's caps, asks for their prices, and answers each pair. are_renewed = the heartbeat has reached those that are watched already.
CREATE FUNCTION pricing.begin_pairs(kind text, user_id text, data_types text[], symbols text[], at_once boolean, are_renewed boolean DEFAULT false) RETURNS jsonb LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off, lock_timeout=2s;
GRANT EXECUTE ON FUNCTION pricing.begin_pairs(text,text,text[],text[],boolean,boolean) TO pricing_worker;

-- The routes that earn most, or those that begin at one terminal (its symbol, code or name).
CREATE FUNCTION pricing.best_routes(starts_at text DEFAULT NULL::text, at_most integer DEFAULT 20) RETURNS SETOF pricing.trade_routes LANGUAGE sql STABLE SECURITY DEFINER SET search_path=pg_temp, lock_timeout=1s, enable_nestloop=off;
GRANT EXECUTE ON FUNCTION pricing.best_routes(text,integer) TO pricing_client, pricing_reader, pricing_worker;

-- The provider that the symbols of a data type without rules of their own are asked of first, and the bytes of a latest price from it.
CREATE FUNCTION pricing.broad_route(wanted_type text, OUT provider text, OUT est_bytes bigint) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.broad_route(text) TO pricing_reader, pricing_worker;

-- What is watched or held, against what its providers allow: units a minute and bytes in 30 days, needed and allowed (NULL = no limit).
CREATE FUNCTION pricing.budget() RETURNS TABLE(provider text, pairs bigint, units_needed double precision, units_allowed double precision, bytes_needed bigint, bytes_allowed bigint) LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.budget() TO pricing_reader, pricing_worker;

-- Moves tasks to the dead, with their last error, and has their pairs back off.
CREATE FUNCTION pricing.bury(ids bigint[], kind text, entry jsonb, reason text) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.bury(bigint[],text,jsonb,text) TO pricing_worker;

-- Of claimed tasks whose provider does not serve their symbol, fails those of which another provider of their route has not said so, because it is in trouble or refuses us: by its trouble, for a symbol is at fault only if nobody who could be asked serves it.
CREATE FUNCTION pricing.bury_by_trouble(ids bigint[], entry jsonb, message text) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.bury_by_trouble(bigint[],jsonb,text) TO pricing_worker;

-- Moves locked operations to the dead ones, failed or cancelled, with a last word. Returns their ids.
CREATE FUNCTION pricing.bury_operations(ids bigint[], as_status text, message text) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.bury_operations(bigint[],text,text) TO pricing_worker;

-- Makes a dead task for each of these pairs that no provider serves, and has the pair back off, so that people see why it has no price.
CREATE FUNCTION pricing.bury_unrouted(data_types text[], symbols text[], priorities integer[], window_starts date[], window_ends date[], backfill uuid) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.bury_unrouted(text[],text[],integer[],date[],date[],uuid) TO pricing_worker;

-- Bytes of the last 720 hours (an hour that is partly in counts whole), calls in flight included at their estimate.
CREATE FUNCTION pricing.bytes_used(wanted_provider text, now_ timestamp with time zone) RETURNS bigint LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.bytes_used(text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Calendars of some instrument whose sessions are not known to the end of next year, the days they are wanted for, and to which day their holidays are announced where the library does not say; again = all that are in use.
CREATE FUNCTION pricing.calendars_to_extend(again boolean DEFAULT false) RETURNS TABLE(calendar text, from_day date, to_day date, known_to date) LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.calendars_to_extend(boolean) TO pricing_reader, pricing_worker;

-- How many calls to a provider since then were faults of it, and how many there were, each with its pages once. What failed again after others of its data type were answered does not count: one bad symbol is tried often, and must not close a well provider to all.
CREATE FUNCTION pricing.calls_that_count(wanted_provider text, after timestamp with time zone, OUT faults integer, OUT calls integer) RETURNS record LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.calls_that_count(text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Takes what is left of a backfill out of the queue, but for what a later one waits for; what is stored stays. Returns how many tasks that were.
CREATE FUNCTION pricing.cancel_backfill(wanted uuid, reason text DEFAULT 'its backfill was cancelled'::text) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.cancel_backfill(uuid,text) TO pricing_worker;

-- Cancels operations that wait or are under way; of one that is under way the end is refused, though it may have happened. Returns their ids.
CREATE FUNCTION pricing.cancel_operations(ids bigint[]) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.cancel_operations(bigint[]) TO pricing_worker;

-- Cancels live tasks by hand and leaves their pairs alone for an hour. A running one's finish is refused; its call still settles. Says of each: cancelled, finished (it was so before), unknown.
CREATE FUNCTION pricing.cancel_tasks(wanted bigint[], reason text DEFAULT 'cancelled by hand'::text) RETURNS TABLE(task_id bigint, outcome text) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.cancel_tasks(bigint[],text) TO pricing_worker;

-- What somebody gave as a symbol, in capital letters of ASCII: others make no symbol. One space stands for several.
CREATE FUNCTION pricing.capital(given text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.capital(text) TO pricing_reader, pricing_worker;

-- The categories of a product, as they were believed at a time; NULL = as they are now.
CREATE FUNCTION pricing.categories_as_of(wanted_symbol text, as_of timestamp with time zone) RETURNS TABLE(category_key bigint, provider text, category_id text, name text, kind text, age_from integer, age_to integer, pax_count integer, is_listed boolean) LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.categories_as_of(text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Readies a history for the days of a call on another basis, which the caller then stores: days that it does not bring become revisions, and values that are quarantined on the old one are forgotten. Where it brings not all of them, and none may leave, false, with nothing done.
CREATE FUNCTION pricing.change_basis(wanted_type text, wanted_symbol text, from_call bigint, basis text, brought timestamp with time zone[], may_leave boolean) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.change_basis(text,text,bigint,text,timestamp with time zone[],boolean) TO pricing_worker;

-- Refuses data types that are retired, and says how to revive them.
CREATE FUNCTION pricing.check_active(data_types text[]) RETURNS void LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.check_active(text[]) TO pricing_reader, pricing_worker;

-- Refuses a backfill that has just been queued if it cannot fit into what its providers' quotas leave for backfills.
CREATE FUNCTION pricing.check_backfill_quota(wanted uuid) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.check_backfill_quota(uuid) TO pricing_worker;

-- Checks pairs among which another session has locked some: by halves, until only those are passed over or the time is over. They stay due. Returns the number queued.
CREATE FUNCTION pricing.check_by_halves(wanted_type text, symbols text[], until timestamp with time zone) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.check_by_halves(text,text[],timestamp with time zone) TO pricing_worker;

-- Refuses a registry row whose names are not on the list: a table or view of the owner in the right shape, a staleness function, a time zone; and a schedule that Dagster cannot follow.
TRIGGER FUNCTION pricing.check_data_type() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- The check digit by Luhn's rule of what stands before it.
CREATE FUNCTION pricing.check_digit(digits text) RETURNS integer LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.check_digit(text) TO pricing_reader, pricing_worker;

-- Refuses a spelling that is the symbol of another instrument of the class, and waits for those who add instruments.
TRIGGER FUNCTION pricing.check_given_spelling() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Refuses identifiers with a wrong check digit; NULL = none is given.
CREATE FUNCTION pricing.check_identifiers(isin text, figi text) RETURNS void LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.check_identifiers(text,text) TO pricing_reader, pricing_worker;

-- Refuses two lists that do not make pairs.
CREATE FUNCTION pricing.check_lengths(data_types text[], symbols text[]) RETURNS void LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.check_lengths(text[],text[]) TO pricing_reader, pricing_worker;

-- Trigger: refuses a limit of a calendar day whose time zone the database does not know. It would fail every claim of every provider.
TRIGGER FUNCTION pricing.check_limit() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Refuses lists that are no pairs, more than 10,000 of them, and texts that are too long to be answered.
CREATE FUNCTION pricing.check_lists(data_types text[], symbols text[]) RETURNS void LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.check_lists(text[],text[]) TO pricing_reader, pricing_worker;

-- Refuses an instrument whose symbol is how a provider is asked for another one: two would get one answer.
TRIGGER FUNCTION pricing.check_new_symbols() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Refuses a table of the user's own that cannot be filled: without a unique index on its symbol, or with columns that need what is not fetched.
CREATE FUNCTION pricing.check_own_table(kind pricing.data_type_registry) RETURNS void LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.check_own_table(pricing.data_type_registry) TO pricing_reader, pricing_worker;

-- Refuses lists that are no pairs, more than 10,000 of them, names that are no data type, and nothing but retired types.
CREATE FUNCTION pricing.check_pairs(data_types text[], symbols text[]) RETURNS void LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.check_pairs(text[],text[]) TO pricing_reader, pricing_worker;

-- Refuses, where somebody asks for it, a new symbol that cannot be one of its data type, and says what may be meant. Warns of those that are doubtful.
CREATE FUNCTION pricing.check_shapes(data_types text[], symbols text[]) RETURNS void LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.check_shapes(text[],text[]) TO pricing_reader, pricing_worker;

-- Refuses a data type whose table or view is missing, nobody's to name, or not in the shape that staleness is judged by. That of a new type is made afterwards.
CREATE FUNCTION pricing.check_table(kind pricing.data_type_registry, is_new boolean) RETURNS void LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.check_table(pricing.data_type_registry,boolean) TO pricing_reader, pricing_worker;

-- The staleness check of one data type: of at most so many pairs that fell due since a time and are not queued or of those that a list names. What another session has locked is passed over. Returns the number queued.
CREATE FUNCTION pricing.check_type(wanted_type text, at_most integer, symbols text[] DEFAULT NULL::text[], queued_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone, until timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off, jit=off, lock_timeout=100ms;
GRANT EXECUTE ON FUNCTION pricing.check_type(text,integer,text[],timestamp with time zone,timestamp with time zone) TO pricing_worker;

-- Refuses a name that no user has.
CREATE FUNCTION pricing.check_user(user_id text) RETURNS void LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.check_user(text) TO pricing_reader, pricing_worker;

-- Gives an instrument the calendar of its exchange, or else the one that the rules name, unless it has one. Where no rule of its own fits, an ETF follows equities.
TRIGGER FUNCTION pricing.choose_calendar() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Takes one call of a provider for latest prices that a person makes, or without a fetcher of its search, within its limits, pauses and quota, and logs it as open: commit before making it. Or says in a sentence why not now. For prices, a provider that is switched off, or whose breaker is open, may be called so, too.
CREATE FUNCTION pricing.claim_by_hand(wanted_provider text, wanted_type text, wanted_fetcher text, wanted_symbols text[], keys text[], who text, OUT refusal text, OUT key_name text, OUT call_id bigint, OUT claimed_at timestamp with time zone) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.claim_by_hand(text,text,text,text[],text[],text) TO pricing_worker;

-- Takes as many tasks as the provider allows now, grouped into at most max_calls calls of the key with the most room (of keys, if given), and logs those calls as open. The transaction must be committed before the calls are made. The window of a call for latest prices is NULL. Unless is_waited_for, the commit does not wait for the disk, so that the next claim need not either; then await_disk must have returned, too. Fails (55P03) when somebody holds the provider's state for a fifth of a second.
CREATE FUNCTION pricing.claim_calls(wanted_provider text, worker_name text, max_calls integer, run text DEFAULT NULL::text, keys text[] DEFAULT NULL::text[], is_waited_for boolean DEFAULT true, lease interval DEFAULT '00:01:00'::interval) RETURNS TABLE(call_id bigint, key_name text, data_type text, fetcher text, window_start date, window_end date, claim_token uuid, claimed_at timestamp with time zone, ids bigint[], symbols text[], priorities integer[], attempts smallint[]) LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp, lock_timeout=200ms, plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.claim_calls(text,text,integer,text,text[],boolean,interval) TO pricing_worker;

-- Takes one call of a provider for a list that an ETL reads, within its limits, delay, pauses, breaker and quota, and logs it as open: commit before making it. Or says in a sentence why not now, and in how many seconds to ask again: infinity where waiting does not help.
CREATE FUNCTION pricing.claim_etl_call(wanted_provider text, wanted_type text, keys text[], who text, OUT refusal text, OUT wait_seconds double precision, OUT key_name text, OUT call_id bigint, OUT claimed_at timestamp with time zone) RETURNS record LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.claim_etl_call(text,text,text[],text) TO pricing_worker;

-- Claims operations of some types that are due: urgent ones first, then by turns for each recipient, the oldest first. A recipient has eight attempts at once, or half of what is free if that is less; one whose last attempt failed has one. In quiet hours, and while its breaker is open, only P0 is claimed. Operations that another worker has locked are skipped. Each claim counts an attempt, and is lost after five minutes.
CREATE FUNCTION pricing.claim_operations(types text[], most integer, by_worker text) RETURNS TABLE(id bigint, operation_type text, payload jsonb, idempotency_key uuid, attempt smallint, max_attempts smallint, time_limit_seconds smallint, enqueued_at timestamp with time zone, claim_token uuid) LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.claim_operations(text[],integer,text) TO pricing_worker;

-- Takes one call of a provider about quarantined values that wait for its opinion, as many as share a call, within its limits and what its quota leaves for backfills, behind its waiting tasks, and logs it as open: commit before making it. Or says in a sentence why not now. With only_value about that one, whatever waits.
CREATE FUNCTION pricing.claim_opinions(wanted_provider text, worker_name text, keys text[], run text DEFAULT NULL::text, only_value bigint DEFAULT NULL::bigint, OUT refusal text, OUT key_name text, OUT call_id bigint, OUT data_type text, OUT fetcher text, OUT day date, OUT claimed_at timestamp with time zone, OUT value_ids bigint[], OUT symbols text[]) RETURNS record LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.claim_opinions(text,text,text[],text,bigint) TO pricing_worker;

-- Opens the next request of a call, a page, within the limits of its provider: commit before making it. Or says after how many seconds to ask again (wait_seconds), or in a sentence why the call ends without it (refusal), and in how many seconds it may be tried again. The call must be open and its claim own one of the tasks (NULL = it has none). first_bytes are those of its first answer, page_bytes what the next one is reckoned to have; most_seconds is how long the call may last, most_requests how many it may make. Fails (55P03) when somebody holds the provider's state for half a second.
CREATE FUNCTION pricing.claim_page(first_call bigint, ids bigint[], token uuid, first_bytes bigint, page_bytes bigint, most_seconds double precision, most_requests integer, OUT call_id bigint, OUT wait_seconds double precision, OUT refusal text, OUT retry_after double precision) RETURNS record LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp, lock_timeout=500ms, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.claim_page(bigint,bigint[],uuid,bigint,bigint,double precision,integer) TO pricing_worker;

-- Takes one call of a provider's search for a person, within its limits and quota, and logs it as open, of a unit and a data type that the provider serves: commit before making it. Or says in a sentence why not now.
CREATE FUNCTION pricing.claim_search(wanted_provider text, worker_name text, keys text[], wanted_type text, OUT refusal text, OUT key_name text, OUT call_id bigint, OUT claimed_at timestamp with time zone) RETURNS record LANGUAGE sql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.claim_search(text,text,text[],text) TO pricing_worker;

-- Forgets viewers silent for 5 minutes, demand nobody has (unless it is backing off), and tasks that wait for it. Never touches last_seen_at.
CREATE FUNCTION pricing.clean_subscriptions() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off, plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.clean_subscriptions() TO pricing_worker;

-- The only clock. Tests replace it to move time; nothing else may.
CREATE FUNCTION pricing.clock() RETURNS timestamp with time zone LANGUAGE sql;
GRANT EXECUTE ON FUNCTION pricing.clock() TO pricing_reader, pricing_worker;

-- The last value of a pair in the two weeks before a day, as it was believed at a time (NULL = now), with the day of whose shares it is. NULL = there is none.
CREATE FUNCTION pricing.close_before(wanted_type text, wanted_symbol text, day date, as_of timestamp with time zone, archived pricing.price_revisions[], OUT amount bigint, OUT scale smallint, OUT currency text, OUT basis_day date) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.close_before(text,text,date,timestamp with time zone,pricing.price_revisions[]) TO pricing_reader, pricing_worker;

-- Closes quarantined values that are believed by now: a later answer has brought the same price for the same time, or the split or dividend is known. They are released, by that call or by whoever entered it. Returns how many.
CREATE FUNCTION pricing.close_believed(only_ids bigint[] DEFAULT NULL::bigint[]) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.close_believed(bigint[]) TO pricing_worker;

-- The days between two on which a calendar is closed though it trades on their weekday: holidays. No value of theirs is missing.
CREATE FUNCTION pricing.closed_days(wanted_calendar text, from_day date, to_day date) RETURNS SETOF date LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.closed_days(text,date,date) TO pricing_reader, pricing_worker;

-- Coins in which prices are quoted: those of providers/currencies.py, as a test holds.
CREATE FUNCTION pricing.coins() RETURNS text[] LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.coins() TO pricing_reader, pricing_worker;

-- Gives the columns of a view of latest prices the words of the table.
CREATE FUNCTION pricing.comment_columns(view_name text) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.comment_columns(text) TO pricing_worker;

-- Where a commodity (its slug, code, name or number) is traded: what a player pays (buy) and gets (sell) for one SCU, how much there is, the source's time, and since when we believe it. The version that people play first, then the cheapest. With a time: as we believed it then. Queues nothing: watch a terminal to keep its prices fresh.
CREATE FUNCTION pricing.commodity(wanted text, as_of timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS TABLE(symbol text, terminal text, code text, system text, place text, is_available boolean, quality text, buy numeric, sell numeric, stock bigint, demand bigint, game_version text, is_of_other_version boolean, modified_at timestamp with time zone, recorded_at timestamp with time zone, provider text) LANGUAGE sql STABLE SECURITY DEFINER SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.commodity(text,timestamp with time zone) TO pricing_client, pricing_reader, pricing_worker;

-- The number of the commodity of this slug, code, name or number; of several the one that is listed. NULL if there is none.
CREATE FUNCTION pricing.commodity_of(word text) RETURNS bigint LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.commodity_of(text) TO pricing_reader, pricing_worker;

-- All that was ever believed of a commodity at a terminal, the oldest first. believed_until is NULL for what is believed now.
CREATE FUNCTION pricing.commodity_price_history(wanted_commodity bigint, wanted_terminal text) RETURNS TABLE(believed_from timestamp with time zone, believed_until timestamp with time zone, quality text, buy numeric, sell numeric, stock bigint, demand bigint, game_version text, modified_at timestamp with time zone, provider text, call_id bigint) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.commodity_price_history(bigint,text) TO pricing_reader, pricing_worker;

-- Prices as they were believed at a time (NULL = as they are now), of all commodities and terminals or of one. A row without both prices says that the commodity was not traded there any more.
CREATE FUNCTION pricing.commodity_prices_as_of(as_of timestamp with time zone DEFAULT NULL::timestamp with time zone, only_commodity bigint DEFAULT NULL::bigint, only_terminal text DEFAULT NULL::text) RETURNS TABLE(symbol text, commodity_id bigint, quality text, buy numeric, sell numeric, stock bigint, demand bigint, game_version text, modified_at timestamp with time zone, recorded_at timestamp with time zone, provider text, call_id bigint) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.commodity_prices_as_of(timestamp with time zone,bigint,text) TO pricing_reader, pricing_worker;

-- The one provider that is asked for every symbol of a data type, and the bytes of a latest price from it. NULL when some may have to be asked for elsewhere, or nowhere.
CREATE FUNCTION pricing.common_route(wanted_type text, OUT provider text, OUT est_bytes bigint) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.common_route(text) TO pricing_reader, pricing_worker;

-- Prices that a source says, each with the version of the game that it is of (said_version as the source says), and whether it is older than what is stored.
CREATE FUNCTION pricing.compared_prices(live text, symbols text[], commodity_ids bigint[], qualities text[], buys numeric[], sells numeric[], stocks bigint[], demands bigint[], versions text[], stamps timestamp with time zone[]) RETURNS TABLE(symbol text, commodity_id bigint, quality text, buy numeric, sell numeric, stock bigint, demand bigint, said_version text, version text, modified_at timestamp with time zone, is_older boolean) LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.compared_prices(text,text[],bigint[],text[],numeric[],numeric[],bigint[],bigint[],text[],timestamp with time zone[]) TO pricing_reader, pricing_worker;

-- Notes that operations have happened, with their results by id. Returns the ids that the claim still owned; a lost claim changes nothing.
CREATE FUNCTION pricing.complete_operations(ids bigint[], token uuid, results jsonb DEFAULT '{}'::jsonb) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.complete_operations(bigint[],uuid,jsonb) TO pricing_worker;

-- Completes an operation that was recovered from a worker that knows that it has happened, unless another attempt has begun. Returns whether it did.
CREATE FUNCTION pricing.complete_recovered_operation(happened bigint, at_attempt integer, result jsonb) RETURNS boolean LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.complete_recovered_operation(bigint,integer,jsonb) TO pricing_worker;

-- Finishes claimed tasks and sets when their pairs are due again. Returns the ids that this claim still owned; a lost claim changes nothing.
CREATE FUNCTION pricing.complete_tasks(ids bigint[], token uuid) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.complete_tasks(bigint[],uuid) TO pricing_worker;

-- Notes that a provider has answered for these pairs, whatever it said, and finishes tasks of theirs that are not in work. Storage of all contents but prices calls it, also for pairs of other types that the answer has served.
CREATE FUNCTION pricing.confirm_pairs(wanted_type text, symbols text[], from_provider text, from_call bigint) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.confirm_pairs(text,text[],text,bigint) TO pricing_worker;

-- A valid but empty answer: nothing is erased, and what we have counts as confirmed now; so does it where we have nothing.
CREATE FUNCTION pricing.confirm_prices(wanted_type text, symbols text[]) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.confirm_prices(text,text[]) TO pricing_worker;

-- Enters a person's correction of a day: a session, with hours in the calendar's zone or those of the days before, or a closed day. It counts at once. Returns added or replaced.
CREATE FUNCTION pricing.correct_calendar(wanted_calendar text, on_day date, open_ boolean, opens time without time zone, closes time without time zone, why text, said_at text, by_ text) RETURNS text LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.correct_calendar(text,date,boolean,time without time zone,time without time zone,text,text,text) TO pricing_worker;

-- The command that writes down a limit as its provider has shown it to a key: `provider use` where a plan is in use, else `limit set`.
CREATE FUNCTION pricing.correction_of(wanted pricing.provider_limits, key text, shown integer) RETURNS text LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.correction_of(pricing.provider_limits,text,integer) TO pricing_reader, pricing_worker;

-- The rank of a correction by its origin: of several for one day, that with the lowest rank counts.
CREATE FUNCTION pricing.correction_rank(origin text) RETURNS integer LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.correction_rank(text) TO pricing_reader, pricing_worker;

-- What a backfill would ask of each provider, without queueing anything: calls, units, bytes on the wire as estimated, seconds if nobody else needed the provider, and what of its quota is used and left for backfills. Provider NULL = no route.
CREATE FUNCTION pricing.cost_backfill(wanted_type text, from_day date, to_day date, only_symbols text[] DEFAULT NULL::text[]) RETURNS TABLE(provider text, symbols bigint, tasks bigint, calls bigint, units bigint, wire_bytes bigint, seconds double precision, quota_bytes bigint, used_bytes bigint, left_bytes bigint) LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.cost_backfill(text,date,date,text[]) TO pricing_reader, pricing_worker;

-- Adds to task_times what was completed in a leaf between two times, reading it from its end. Returns how many tasks.
CREATE FUNCTION pricing.count_leaf_times(leaf text, counted timestamp with time zone, until timestamp with time zone) RETURNS bigint LANGUAGE plpgsql SET search_path=pg_temp, jit=off;
GRANT EXECUTE ON FUNCTION pricing.count_leaf_times(text,timestamp with time zone,timestamp with time zone) TO pricing_worker;

-- Adds to task_times what was completed since it was last called and a minute ago. Returns how many tasks. After the clock was set back, tasks of the time that came twice may be counted twice.
CREATE FUNCTION pricing.count_task_times() RETURNS bigint LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.count_task_times() TO pricing_worker;

-- Counts the windows of a provider from its call log, for later claims to go on from. Only under the lock of the provider_state row.
CREATE FUNCTION pricing.count_units(wanted_provider text, now_ timestamp with time zone) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.count_units(text,timestamp with time zone) TO pricing_worker;

-- Adds what a program has heard: rows with source, subject, sqlstate, times, message, and how many seconds ago the last one was raised. Waits a second at most for a row that another session has locked.
CREATE FUNCTION pricing.count_warnings(heard jsonb) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.count_warnings(jsonb) TO pricing_worker;

-- Remembers that the provider has answered for these days, so that no backfill asks again, and which trading days its answer lacked: those are asked for again by themselves.
CREATE FUNCTION pricing.cover(wanted_type text, symbols text[], from_day date, to_day date) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.cover(text,text[],date,date) TO pricing_worker;

-- Records that a provider has reported all splits and dividends of these symbols, each since its day, and for some also all capital gains.
CREATE FUNCTION pricing.cover_actions(wanted_class text, from_provider text, from_call bigint, told_symbols text[], told_since date[], gains_told text[]) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.cover_actions(text,text,bigint,text[],date[],text[]) TO pricing_worker;

-- What is wrong with a cron expression, in words for whoever gave it; NULL if it has a time that comes.
CREATE FUNCTION pricing.cron_fault(schedule text) RETURNS text LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.cron_fault(text) TO pricing_reader, pricing_worker;

-- The values that a field of a cron expression stands for, between the lowest and the highest, whose names begin with that of the lowest. NULL if it is none: only numbers, names, *, ranges, steps and lists of these are.
CREATE FUNCTION pricing.cron_values(field text, lowest integer, highest integer, names text[] DEFAULT '{}'::text[]) RETURNS integer[] LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.cron_values(text,integer,integer,text[]) TO pricing_reader, pricing_worker;

-- Cuts tasks of one kind into calls, from which to which: as many as a call may have, or a part of that (batch_parts); one by one those that are too few to share a call (batch_from).
CREATE FUNCTION pricing.cut_calls(able pricing.provider_capabilities, first_day date, last_day date, parts integer, waiting integer) RETURNS TABLE(from_task integer, to_task integer) LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.cut_calls(pricing.provider_capabilities,date,date,integer,integer) TO pricing_reader, pricing_worker;

-- When the units that each active provider, or some, allows in this calendar day will be used up: not before trading is over, while they are spread over it (basis paced), and then at the pace of the last hour (measured). outlook: ends, or lasts until the next day begins. Of all its active keys; of several such limits, the one that ends first.
CREATE FUNCTION pricing.day_forecasts(only_providers text[] DEFAULT NULL::text[]) RETURNS TABLE(provider text, units bigint, used bigint, hour_units bigint, basis text, outlook text, ends_at timestamp with time zone, until timestamp with time zone) LANGUAGE plpgsql STABLE SET search_path=pg_temp, jit=off;
GRANT EXECUTE ON FUNCTION pricing.day_forecasts(text[]) TO pricing_reader, pricing_worker;

-- From where the prices of this database come: the sandbox or the real providers. The first who asks decides.
CREATE FUNCTION pricing.decide_prices_from(wanted text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.decide_prices_from(text) TO pricing_worker;

-- What a person decides on quarantined values, all in one: released, they are stored exactly as they were sent, in the history and, the newest of a pair, as its latest price; rejected, they stay out. With level_of(id) it decides on a whole level. Each value's outcome: released, rejected, released_already, rejected_already, unreadable (nothing that could be stored), retired (nor a data type to store it in) or unknown; whether it is the latest price now, and whether it took the place of another value. What is released is a price and stays one; what is rejected can be released.
CREATE FUNCTION pricing.decide_quarantined(wanted bigint[], decision text, by_whom text, why text DEFAULT NULL::text) RETURNS TABLE(value_id bigint, outcome text, is_latest boolean, revised boolean) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.decide_quarantined(bigint[],text,text,text) TO pricing_worker;

-- How a sentence about a pair begins: when it was last confirmed, or that it never was.
CREATE FUNCTION pricing.describe_confirmation(wanted_type text, wanted_symbol text, fetched_at timestamp with time zone, quality text) RETURNS text LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.describe_confirmation(text,text,timestamp with time zone,text) TO pricing_reader, pricing_worker;

-- Why watching does not make a symbol known: why judge_symbols refuses it for a data type or a class, or for all of them if none is named. NULL = watching makes it known.
CREATE FUNCTION pricing.describe_misfit(symbol text, wanted_type text DEFAULT NULL::text, wanted_class text DEFAULT NULL::text) RETURNS text LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.describe_misfit(text,text,text) TO pricing_reader, pricing_worker;

-- That no provider is in use, and how one is chosen, for people; NULL while one is.
CREATE FUNCTION pricing.describe_no_provider() RETURNS text LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.describe_no_provider() TO pricing_reader, pricing_worker;

-- That no active provider serves a pair, and what to do, for people.
CREATE FUNCTION pricing.describe_no_route(data_type text, symbol text) RETURNS text LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.describe_no_route(text,text) TO pricing_reader, pricing_worker;

-- For which data types, or whether for one, a provider does not answer, in words. NULL = it answers, or nobody has asked for two minutes.
CREATE FUNCTION pricing.describe_outages(wanted_provider text, only_type text DEFAULT NULL::text) RETURNS text LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.describe_outages(text,text) TO pricing_reader, pricing_worker;

-- When the quota of a provider would end if nothing were stretched, as the end of a sentence.
CREATE FUNCTION pricing.describe_quota_end(wanted_provider text) RETURNS text LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.describe_quota_end(text) TO pricing_reader, pricing_worker;

-- How symbols look in every class, for people.
CREATE FUNCTION pricing.describe_sane_symbol() RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.describe_sane_symbol() TO pricing_reader, pricing_worker;

-- How symbols of an asset class look, for people; NULL = any way.
CREATE FUNCTION pricing.describe_shape(asset_class text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.describe_shape(text) TO pricing_reader, pricing_worker;

-- What the HTTP API says of a symbol that is no instrument, one without prices, or none that the data type applies to.
CREATE FUNCTION pricing.describe_stranger(symbol text, wanted_type text) RETURNS text LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.describe_stranger(text,text) TO pricing_reader, pricing_worker;

-- Why a pending operation has not been attempted yet, in a sentence; NULL = it is not pending.
CREATE FUNCTION pricing.describe_wait(operation pricing.async_operations) RETURNS text LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.describe_wait(pricing.async_operations) TO pricing_reader, pricing_worker;

-- A provider does not serve these claimed tasks: remembers that for a week, and gives them, with all their attempts, to the next one of their rules that has not refused them. Returns which had one.
CREATE FUNCTION pricing.detour(ids bigint[], kind text, message text) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.detour(bigint[],text,text) TO pricing_worker;

-- Whether some symbol of a data type has providers of its own: by rules for it, or because one has refused it.
CREATE FUNCTION pricing.differs_by_symbol(wanted_type text) RETURNS boolean LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.differs_by_symbol(text) TO pricing_reader, pricing_worker;

-- The documents of a symbol in one data type, the newest period first: bodies with the provider's own names and digits, since when we believe each, when it was last confirmed, and whether that is within its TTL. Queues what is missing or stale, and waits for nothing. With a time: as we believed them then.
CREATE FUNCTION pricing.document(wanted_type text, wanted_symbol text, as_of timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS TABLE(period date, body jsonb, recorded_at timestamp with time zone, fetched_at timestamp with time zone, fresh boolean, provider text) LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.document(text,text,timestamp with time zone) TO pricing_client, pricing_reader, pricing_worker;

-- The documents of a pair, the newest period first, as they were believed at a time; NULL = as they are now.
CREATE FUNCTION pricing.documents_as_of(wanted_type text, wanted_symbol text, as_of timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS TABLE(period date, body jsonb, recorded_at timestamp with time zone, provider text, call_id bigint) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.documents_as_of(text,text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Makes the confirmed slots of a product stale, except those that one provider confirmed: their provider was left, or their days are of another zone.
CREATE FUNCTION pricing.doubt_slots(wanted_symbol text, except_of text DEFAULT NULL::text) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.doubt_slots(text,text) TO pricing_worker;

-- Of the actions of an answer, the dividends that are more than a fifth of the last price of the two weeks before them (capital gains: a half), or 100 times each of the last four before them, and why each is not believed. What is stored already is not doubted.
CREATE FUNCTION pricing.doubted_payments(wanted_type text, actions jsonb) RETURNS TABLE(symbol text, ex_on date, kind text, cash numeric, currency text, reason text) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.doubted_payments(text,jsonb) TO pricing_reader, pricing_worker;

-- Refuses to delete a data type that holds data; otherwise removes its empty storage.
TRIGGER FUNCTION pricing.drop_storage() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=1s;

-- Locks pairs of a data type that are due, and returns them in the order of their symbols, with their viewers and the time of their price in our own table. NULL = none. What another session has locked is passed over.
CREATE FUNCTION pricing.due_pairs(kind pricing.data_type_registry, now_ timestamp with time zone, wanted text[], at_most integer, queued_until timestamp with time zone) RETURNS pricing.due_pair[] LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.due_pairs(pricing.data_type_registry,timestamp with time zone,text[],integer,timestamp with time zone) TO pricing_worker;

-- How long some ranges of time last together.
CREATE FUNCTION pricing.duration_of(ranges tstzmultirange) RETURNS interval LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.duration_of(tstzmultirange) TO pricing_reader, pricing_worker;

-- The periodic duties, each a function of this name: how often they run, and in which order.
CREATE FUNCTION pricing.duty_intervals() RETURNS TABLE(place integer, name text, every interval) LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.duty_intervals() TO pricing_reader, pricing_worker;

-- Empties a leaf of a week that is over, unless somebody reads it, or tasks have finished in it since.
CREATE FUNCTION pricing.empty_leaf(leaf text, now_ timestamp with time zone) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.empty_leaf(text,timestamp with time zone) TO pricing_worker;

-- What made pairs fail has changed: those that back off are due now, and their failures forgotten. NULL = all symbols of the type. Returns how many.
CREATE FUNCTION pricing.end_backoff(wanted_type text, symbols text[] DEFAULT NULL::text[]) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.end_backoff(text,text[]) TO pricing_worker;

-- A drain says that it is done. If another session has locked its row, its lease runs out.
CREATE FUNCTION pricing.end_drain(ended uuid) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.end_drain(uuid) TO pricing_worker;

-- A value of these pairs has been released: their tasks that wait because nothing was believed are due now.
CREATE FUNCTION pricing.end_waits(wanted_type text, symbols text[]) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.end_waits(text,text[]) TO pricing_worker;

-- Queues symbols of one data type, as enqueue_pairs does.
CREATE FUNCTION pricing.enqueue(wanted_type text, symbols text[], priorities integer[], window_starts date[] DEFAULT NULL::date[], window_ends date[] DEFAULT NULL::date[], backfill uuid DEFAULT NULL::uuid) RETURNS integer LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.enqueue(text,text[],integer[],date[],date[],uuid) TO pricing_worker;

-- Queues pairs of which another session is queueing some and does not commit: by halves, until only those are passed over or the time is over. Returns how many tasks are new.
CREATE FUNCTION pricing.enqueue_by_halves(data_types text[], symbols text[], priorities integer[], window_starts date[], window_ends date[], until timestamp with time zone) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.enqueue_by_halves(text[],text[],integer[],date[],date[],timestamp with time zone) TO pricing_worker;

-- The staleness check: serves what clients have asked for, queues what is due and stale (at most so many pairs of each type), moves on what is still fresh, and goes on with the walks of scheduled types. Returns the number queued.
CREATE FUNCTION pricing.enqueue_due(at_most integer DEFAULT 10000) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.enqueue_due(integer) TO pricing_worker;

-- The staleness check of the pairs that two lists name. Returns the number queued.
CREATE FUNCTION pricing.enqueue_due_pairs(data_types text[], symbols text[]) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.enqueue_due_pairs(text[],text[]) TO pricing_worker;

-- Queues a message to a recipient by its channel, in the caller's transaction; returns the operation's id. While its channel is inactive a message waits. So does what is not urgent in its quiet hours, and while its breaker is open. What is urgent or goes_first is sent before other messages that are due. Data go to channels whose type has a field for them, such as webhook and rest. A title is cut after 200 characters, a body after 20,000.
CREATE FUNCTION pricing.enqueue_message(to_recipient text, title text, body text, is_urgent boolean DEFAULT false, data jsonb DEFAULT NULL::jsonb, goes_first boolean DEFAULT false) RETURNS bigint LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.enqueue_message(text,text,text,boolean,jsonb,boolean) TO pricing_worker;

-- Queues a side effect in the caller's transaction: it is kept, or rolled back, with it. Returns its id. An urgent one goes before others, also in quiet hours. An unknown or inactive type, a payload unlike its type or longer than 64 kB, and a time more than a year ahead are refused.
CREATE FUNCTION pricing.enqueue_operation(wanted_type text, payload jsonb, due_at timestamp with time zone DEFAULT NULL::timestamp with time zone, is_urgent boolean DEFAULT false) RETURNS bigint LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.enqueue_operation(text,jsonb,timestamp with time zone,boolean) TO pricing_worker;

-- Queues pairs, for now or for spans of days. What is live already is left alone but for a higher priority; types that are not active are passed over, and so is what another session is queueing and does not commit (a backfill fails instead). Pairs that are new, as the caller knows, are not looked for first. Returns how many tasks are new.
CREATE FUNCTION pricing.enqueue_pairs(data_types text[], symbols text[], priorities integer[], window_starts date[] DEFAULT NULL::date[], window_ends date[] DEFAULT NULL::date[], backfill uuid DEFAULT NULL::uuid, are_new boolean DEFAULT false, until timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=100ms;
GRANT EXECUTE ON FUNCTION pricing.enqueue_pairs(text[],text[],integer[],date[],date[],uuid,boolean,timestamp with time zone) TO pricing_worker;

-- Serves a slot of a scheduled type (without one, or with one more than an hour ahead: now): begins to queue its instruments, behind all on-demand work. Returns how many are queued so far; NULL when the slot was served before or the type has no schedule.
CREATE FUNCTION pricing.enqueue_scheduled(wanted_type text, slot timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.enqueue_scheduled(text,timestamp with time zone) TO pricing_worker;

-- Queues what a walk has come by, as far as its providers can take it; the rest is asked for later. Returns the number queued.
CREATE FUNCTION pricing.enqueue_walked(wanted_type text, symbols text[]) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.enqueue_walked(text,text[]) TO pricing_worker;

-- Enters a split or spin-off (new shares for old ones), or a dividend or capital gain (cash a share, in the instrument's currency unless one is given), that a person knows of, with that person's name. Returns added, replaced (what a source or somebody else said of that ratio, or of the payment in that currency, becomes a revision) or known_already. Quarantined values of the instrument are then judged anew by a worker.
CREATE FUNCTION pricing.enter_action(wanted_class text, wanted_symbol text, day date, wanted_kind text, new_ numeric, old_ numeric, cash numeric, cash_currency text, by_whom text, why text DEFAULT NULL::text, is_further boolean DEFAULT false) RETURNS text LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.enter_action(text,text,date,text,numeric,numeric,numeric,text,text,text,boolean) TO pricing_worker;

-- Enters recognized changes of face value as splits, so that the quarantined NAVs are judged anew and released. Returns how many.
CREATE FUNCTION pricing.enter_face_values() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.enter_face_values() TO pricing_worker;

-- Has these pairs streamed for the next quarter of an hour. Of those that are new, the log has everything after the given position.
CREATE FUNCTION pricing.enter_streamed_pairs(opened_types text[], opened_symbols text[], head_position bigint) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.enter_streamed_pairs(text[],text[],bigint) TO pricing_worker;

-- The MIC of the exchange that the ending of a symbol names, such as VOD.L or VOD:LSE; NULL = it names none, or several of which the currency does not leave one.
CREATE FUNCTION pricing.exchange_of(of_class text, of_symbol text, in_currency text) RETURNS text LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.exchange_of(text,text,text) TO pricing_reader, pricing_worker;

-- The rows of domain/exchanges.toml that load_exchanges is given.
CREATE FUNCTION pricing.exchange_rows(given jsonb) RETURNS TABLE(mic text, name text, calendar text, zone text, currency text, minor_unit text, known_to date, endings text[]) LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.exchange_rows(jsonb) TO pricing_reader, pricing_worker;

-- The MICs of the exchanges that this ending, in capital letters, stands for: .L, :LSE, :XLON, or LN after a space; NULL = none. US after a space stands for those whose shares have no exchange in their symbols.
CREATE FUNCTION pricing.exchanges_marked(ending text) RETURNS text[] LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.exchanges_marked(text) TO pricing_reader, pricing_worker;

-- Closes calls whose worker was lost, booking their estimate: their fate is unknown, so they count as made.
CREATE FUNCTION pricing.expire_calls() RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.expire_calls() TO pricing_worker;

-- Months of a type that the database or a file has, with how many values are in the database, and whether a file is missing or old.
CREATE FUNCTION pricing.exports(wanted_type text, first_month date, last_month date) RETURNS TABLE(month date, versions bigint, mark jsonb, is_due boolean, exported_at timestamp with time zone, moved_at timestamp with time zone) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.exports(text,date,date) TO pricing_reader, pricing_worker;

-- A drain says that it is alive, and which providers it asks; not, if another session has locked its row.
CREATE FUNCTION pricing.extend_drain(extended uuid, asked_providers text[] DEFAULT NULL::text[]) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.extend_drain(uuid,text[]) TO pricing_worker;

-- A worker that is still at it renews its lease. Returns the ids that its claim still owns; a lost claim changes nothing.
CREATE FUNCTION pricing.extend_tasks(ids bigint[], token uuid, lease interval DEFAULT '00:01:00'::interval) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.extend_tasks(bigint[],uuid,interval) TO pricing_worker;

-- Changes of face value that quarantined NAVs show: at least twenty days on one level, at one end of the history, a power of ten from the believed value beside it, which no other provider contradicts.
CREATE FUNCTION pricing.face_value_changes() RETURNS TABLE(asset_class text, symbol text, changed_on date, navs bigint, before_nav numeric, after_nav numeric) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.face_value_changes() TO pricing_reader, pricing_worker;

-- Who enters the changes of face value that are recognized, in place of a person.
CREATE FUNCTION pricing.face_value_rule() RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.face_value_rule() TO pricing_reader, pricing_worker;

-- Fails, as misconfigured, what waits and can never be called: no claim picks it. What another provider of its route can fetch goes there instead. Returns how many failed.
CREATE FUNCTION pricing.fail_impossible_tasks() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.fail_impossible_tasks() TO pricing_worker;

-- An attempt has failed: tried again after 5, 10, 20 ... minutes by its type, or later if the receiver asks for it; dead after its last attempt, or when trying again cannot help. Returns its new status; NULL if the claim was lost.
CREATE FUNCTION pricing.fail_operation(failed bigint, token uuid, message text, is_permanent boolean DEFAULT false, retry_after interval DEFAULT NULL::interval) RETURNS text LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.fail_operation(bigint,uuid,text,boolean,interval) TO pricing_worker;

-- Keeps why a call about quarantined values brought nothing. Workers ask again later, four times in all.
CREATE FUNCTION pricing.fail_opinions(from_call bigint, why text) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.fail_opinions(bigint,text) TO pricing_worker;

-- A claimed task brought nothing: tried again after 5 s, 30 s, 2 min (implausible: after its TTL, at most 1 h, doubling), snoozed when throttled or unfinished, given to the next provider of its route when this one does not serve it, dead when nothing can help. A request that is refused is the fault of its symbol only if others of the data type were answered meanwhile. Returns the ids that the claim still owned; a lost claim changes nothing.
CREATE FUNCTION pricing.fail_tasks(ids bigint[], token uuid, kind text, message text, is_permanent boolean, retry_after interval DEFAULT NULL::interval) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.fail_tasks(bigint[],uuid,text,text,boolean,interval) TO pricing_worker;

-- When a task with this history first failed by trouble that others may have, too. NULL = it did not.
CREATE FUNCTION pricing.failing_since(errors jsonb) RETURNS timestamp with time zone LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.failing_since(jsonb) TO pricing_reader, pricing_worker;

-- The doubts and refusals among answers, each kind told once: in a sentence with the number of pairs and a few names.
CREATE FUNCTION pricing.faults_of(answers pricing.pair_answer[]) RETURNS jsonb LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.faults_of(pricing.pair_answer[]) TO pricing_reader, pricing_worker;

-- Queues what people watch or hold of a data type, or those symbols of it (one that is no instrument is refused), however fresh it is; not what is paused or backs off, nor what no quota has room for. Returns the tasks, those that were live before included.
CREATE FUNCTION pricing.fetch_now(wanted_type text, only_symbols text[] DEFAULT NULL::text[]) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.fetch_now(text,text[]) TO pricing_worker;

-- Another kind of data is fetched now: no pair of the type backs off any more.
TRIGGER FUNCTION pricing.fetcher_changed() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Copies the latest prices of symbols, or when their pairs were confirmed, into the table that a user has made for their data type, with the owner's rights. A failure is a warning: it costs no price.
CREATE FUNCTION pricing.fill_own_table(wanted_type text, symbols text[]) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp, lock_timeout=100ms;
GRANT EXECUTE ON FUNCTION pricing.fill_own_table(text,text[]) TO pricing_worker;

-- The calendars of the quotes that are watched at a provider, of all that is wanted; empty text for those without one.
CREATE FUNCTION pricing.find_watched_calendars(wanted_provider text) RETURNS SETOF text LANGUAGE plpgsql STABLE SET search_path=pg_temp, jit=off;
GRANT EXECUTE ON FUNCTION pricing.find_watched_calendars(text) TO pricing_reader, pricing_worker;

-- Finishes tasks of an answered call that its claim still owns, as complete_tasks does, and settles the call. What the call says about its provider counts if the claim still owned a task (is_owned). Returns the ids of the finished tasks.
CREATE FUNCTION pricing.finish_call(finished bigint, ids bigint[], token uuid, status integer, bytes bigint, kind text DEFAULT NULL::text, stated_left integer DEFAULT NULL::integer, is_owned boolean DEFAULT true, shown_units integer DEFAULT NULL::integer, shown_seconds integer DEFAULT NULL::integer) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.finish_call(bigint,bigint[],uuid,integer,bigint,text,integer,boolean,integer,integer) TO pricing_worker;

-- Moves locked operations to the completed ones, with their results by id, and closes the breakers of their recipients. Returns their ids.
CREATE FUNCTION pricing.finish_operations(ids bigint[], results jsonb) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.finish_operations(bigint[],jsonb) TO pricing_worker;

-- Finishes tasks for what is latest that are not in work, because the answer to another call has served their pairs. Returns their ids.
CREATE FUNCTION pricing.finish_pending(wanted_type text, symbols text[]) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.finish_pending(text,text[]) TO pricing_worker;

-- Finishes tasks that the transaction has locked by lock_tasks or, if a token is given, those that its claim still owns. Sets when their pairs are due again, unless another session has locked the pair. Returns the ids of what it finished.
CREATE FUNCTION pricing.finish_tasks(wanted bigint[], token uuid DEFAULT NULL::uuid, of_call bigint DEFAULT NULL::bigint) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.finish_tasks(bigint[],uuid,bigint) TO pricing_worker;

-- Whether a symbol can be one of an asset class: equities by tickers, funds by numbers, coins and exchange rates as pairs. Any symbol fits a class of one's own.
CREATE FUNCTION pricing.fits_class(asset_class text, symbol text) RETURNS boolean LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.fits_class(text,text) TO pricing_reader, pricing_worker;

-- Of what is to be asked for once more, what the quotas of its providers have room for: of each provider at most 500 bars and 20 histories at a time.
CREATE FUNCTION pricing.fitting_refetches() RETURNS TABLE(data_type text, symbol text, from_day date, to_day date, is_history boolean) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.fitting_refetches() TO pricing_worker;

-- The largest prefix of a call's tasks that fits into the units and bytes that are left.
CREATE FUNCTION pricing.fitting_tasks(tasks pricing.picked_task[], units_per_call integer, units_per_symbol integer, allowed pricing.call_allowance) RETURNS pricing.picked_task[] LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.fitting_tasks(pricing.picked_task[],integer,integer,pricing.call_allowance) TO pricing_reader, pricing_worker;

-- Looks whether the database's clock was set since this last looked. Set back: notes the step, and moves all times that work waits for with it, now or as soon as their rows are free. Set forward: keeps what cannot be undone from being done at once. Returns true if the transaction should end now, because it holds many rows.
CREATE FUNCTION pricing.follow_clock(now_ timestamp with time zone) RETURNS boolean LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.follow_clock(timestamp with time zone) TO pricing_worker;

-- A rule has changed: refusals are forgotten, back-offs end, unknown symbols are asked for again, waiting tasks go where they belong now, and a new second provider is asked about what is quarantined.
CREATE FUNCTION pricing.forget_route(wanted_type text, wanted_symbol text) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.forget_route(text,text) TO pricing_worker;

-- A person has written a batch: what was shown before does not count any more.
TRIGGER FUNCTION pricing.forget_shown_batch() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- A person has written a limit: what was shown before does not count any more.
TRIGGER FUNCTION pricing.forget_shown_limit() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Deletes events of live streams that are older than ten minutes or beyond 100,000, and pairs that nobody has streamed for a quarter of an hour. Its caller has the head locked.
CREATE FUNCTION pricing.forget_stream_events(now_ timestamp with time zone) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.forget_stream_events(timestamp with time zone) TO pricing_worker;

-- A person needs nothing more from dead tasks: they count as settled, and their pairs back off as before. Says of each: forgotten, settled (it was so before), not_dead, unknown.
CREATE FUNCTION pricing.forget_tasks(wanted bigint[]) RETURNS TABLE(task_id bigint, outcome text) LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.forget_tasks(bigint[]) TO pricing_worker;

-- Forgets views of more than 48 hours ago, and allowances that have been whole for an hour. Returns how many views.
CREATE FUNCTION pricing.forget_views() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.forget_views() TO pricing_worker;

-- A time for programs: ISO 8601 in UTC, with microseconds.
CREATE FUNCTION pricing.format_iso(at timestamp with time zone) RETURNS text LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.format_iso(timestamp with time zone) TO pricing_reader, pricing_worker;

-- A place in a row for people: 1st, 2nd, 3rd, 4th.
CREATE FUNCTION pricing.format_ordinal(place integer) RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.format_ordinal(integer) TO pricing_reader, pricing_worker;

-- A span for people, in one unit, rounded down.
CREATE FUNCTION pricing.format_span(span interval) RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.format_span(interval) TO pricing_reader, pricing_worker;

-- A time for people, in UTC, to the second.
CREATE FUNCTION pricing.format_time(at timestamp with time zone) RETURNS text LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.format_time(timestamp with time zone) TO pricing_reader, pricing_worker;

-- A time to come for people, in UTC, and how long that is from now: "..., in 7 h 40 min".
CREATE FUNCTION pricing.format_time_ahead(at timestamp with time zone) RETURNS text LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.format_time_ahead(timestamp with time zone) TO pricing_reader, pricing_worker;

-- How many more calls a provider may get at once, from all workers together: max_in_flight, less the calls in flight, less one for a call that waits for its next request. For the next request of a call, which is named, it does not count itself. Exact only under the lock of the provider_state row.
CREATE FUNCTION pricing.free_calls(state pricing.provider_state, now_ timestamp with time zone, own_call bigint DEFAULT NULL::bigint) RETURNS integer LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.free_calls(pricing.provider_state,timestamp with time zone,bigint) TO pricing_reader, pricing_worker;

-- How long a value may stay the same, by its source's times, before it is suspected to be frozen.
CREATE FUNCTION pricing.frozen_after(fetcher text) RETURNS interval LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.frozen_after(text) TO pricing_reader, pricing_worker;

-- Sessions of a pair without a value between two days, joined to gaps, each with its kind: not_listed, provider_has_none, failed, quarantined, unreadable, queued, not_published, not_asked. Only what failed, could not be read or was never asked for is worth a call; what the provider has none of is asked for again by itself, as the detail says.
CREATE FUNCTION pricing.gaps(wanted_type text, wanted_symbol text, from_day date, to_day date) RETURNS TABLE(first_day date, last_day date, sessions bigint, kind text, detail text) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.gaps(text,text,date,date) TO pricing_reader, pricing_worker;

-- Notes that people now play this version of the game; false if they did before. Prices of other versions stay, and are of an older version from now on.
CREATE FUNCTION pricing.go_live(wanted_version text) RETURNS boolean LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.go_live(text) TO pricing_worker;

-- Groups tasks into calls of one data type and window, the most urgent first, each symbol once.
CREATE FUNCTION pricing.group_calls(wanted_provider text, picked pricing.picked_task[], at_most integer) RETURNS TABLE(data_type text, fetcher text, window_start date, window_end date, units_per_call integer, units_per_symbol integer, tasks pricing.picked_task[]) LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, jit=off;
GRANT EXECUTE ON FUNCTION pricing.group_calls(text,pricing.picked_task[],integer) TO pricing_worker;

-- Whether a provider has ever answered a call, as far as the log of calls reaches. One that never has may refuse this client whatever it asks for.
CREATE FUNCTION pricing.has_answered(wanted_provider text) RETURNS boolean LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.has_answered(text) TO pricing_reader, pricing_worker;

-- Whether some pair of a data type may have to be asked for elsewhere than its first rule says.
CREATE FUNCTION pricing.has_detours(wanted_type text) RETURNS boolean LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.has_detours(text) TO pricing_reader, pricing_worker;

-- Whether a moved value of a pair of that day is believed.
CREATE FUNCTION pricing.has_moved(wanted_type text, wanted_symbol text, day date) RETURNS boolean LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.has_moved(text,text,date) TO pricing_reader, pricing_worker;

-- Whether a provider has a task that could be claimed now.
CREATE FUNCTION pricing.has_pending_tasks(wanted_provider text) RETURNS boolean LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.has_pending_tasks(text) TO pricing_reader, pricing_worker;

-- Whether instruments of a class may be split. Of others a step of any size is a true move or a mistake, unless a split of one is known.
CREATE FUNCTION pricing.has_splits(asset_class text) RETURNS boolean LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.has_splits(text) TO pricing_reader, pricing_worker;

-- Whether a task that a viewer waits for is pending at a provider.
CREATE FUNCTION pricing.has_viewers_waiting(wanted_provider text) RETURNS boolean LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.has_viewers_waiting(text) TO pricing_reader, pricing_worker;

-- Each part of the pipeline, in the order in which they depend on each other: whether it is late, when it last was not (NULL = never, or that is not known), and what that means, in words for people who may see everything. daemon, sensor, drain, staleness_check, schedules and duties are late only while something is watched, held, queued or scheduled; but a sensor that does not work, or a duty that has never run, is late in any case. The names of the parts tell nothing of anybody.
CREATE FUNCTION pricing.health() RETURNS TABLE(part text, is_late boolean, since timestamp with time zone, says text) LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.health() TO pricing_reader, pricing_worker;

-- Says that a user looks at these pairs now. Creates missing instruments (unverified) and queues what is missing or stale: at_once, or as soon as a worker serves the request. Answers each pair (see answer_pairs): those that are refused keep no other one out.
CREATE FUNCTION pricing.heartbeat(user_id text, data_types text[], symbols text[], at_once boolean DEFAULT true) RETURNS jsonb LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off, plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.heartbeat(text,text[],text[],boolean) TO pricing_worker;

-- Says that the user of this session looks at these pairs now (two lists of the same length). Answers each pair (see answer_pairs).
CREATE FUNCTION pricing.heartbeat(data_types text[], symbols text[]) RETURNS jsonb LANGUAGE sql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.heartbeat(text[],text[]) TO pricing_client, pricing_worker;

-- A provider has refused a call because it had too many symbols: the next calls of its fetcher have so many at most, for a day or until a person writes its batch. Never more than they had.
CREATE FUNCTION pricing.heed_batch_size(refused bigint, most integer) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp, lock_timeout=500ms;
GRANT EXECUTE ON FUNCTION pricing.heed_batch_size(bigint,integer) TO pricing_worker;

-- The provider has shown how many units a key may use in so many seconds (86400 = also a calendar day; NULL = in its longest window of up to an hour). Fewer than are written are remembered. The last showing counts, so a higher one forgets a lower one; none ever raises what is written.
CREATE FUNCTION pricing.heed_shown_limit(wanted_provider text, wanted_key text, shown integer, seconds integer, now_ timestamp with time zone) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.heed_shown_limit(text,text,integer,integer,timestamp with time zone) TO pricing_worker;

-- The provider said how many units are left, in the longest window of up to an hour. If fewer than we believed, somebody else uses the key: the difference is taken off for that window. Five or fewer double the delay between calls.
CREATE FUNCTION pricing.heed_units_left(wanted_provider text, wanted_key text, stated_left integer, now_ timestamp with time zone) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.heed_units_left(text,text,integer,timestamp with time zone) TO pricing_worker;

-- Values of a symbol between two UTC days, both included, oldest first; exact decimals. as_of: as we believed them then. adjust: raw (as traded), splits (divided by later splits) or total (also without later dividends and capital gains); without it as stored, and adjustment says which that is. Quotes and NAVs have a close only; quality says which parts of a bar were dropped, and why, and with total which later payments are not counted.
CREATE FUNCTION pricing.history(wanted_type text, wanted_symbol text, first_day date, last_day date, as_of timestamp with time zone DEFAULT NULL::timestamp with time zone, adjust text DEFAULT NULL::text) RETURNS TABLE(observed_at timestamp with time zone, open numeric, high numeric, low numeric, close numeric, volume numeric, currency text, provider text, fetched_at timestamp with time zone, adjustment text, call_id bigint, quality text) LANGUAGE sql STABLE SECURITY DEFINER SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.history(text,text,date,date,timestamp with time zone,text) TO pricing_client, pricing_reader, pricing_worker;

-- How the instruments that a backfill does not leave out stand between two days, counted: queued, stored (some value is), not_listed (yet), empty (the provider has none), or nothing_yet (nothing stored or answered).
CREATE FUNCTION pricing.history_standing(wanted_type text, from_day date, to_day date, only_symbols text[] DEFAULT NULL::text[]) RETURNS jsonb LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.history_standing(text,date,date,text[]) TO pricing_reader, pricing_worker;

-- Says that a user holds these pairs from now on, until they are released. Creates missing instruments (unverified) and queues what has no price: at_once, or as soon as a worker serves the request. Answers as heartbeat does.
CREATE FUNCTION pricing.hold(user_id text, data_types text[], symbols text[], at_once boolean DEFAULT true) RETURNS jsonb LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.hold(text,text[],text[],boolean) TO pricing_worker;

-- Says that the user of this session holds these pairs from now on. Answers each pair (see answer_pairs).
CREATE FUNCTION pricing.hold(data_types text[], symbols text[]) RETURNS jsonb LANGUAGE sql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.hold(text[],text[]) TO pricing_client, pricing_worker;

-- Periodic duties that have never succeeded, and either have failed, or have not run although others have since the start, at least twenty seconds ago.
CREATE FUNCTION pricing.idle_duties(started timestamp with time zone) RETURNS TABLE(duty text, since timestamp with time zone, last_error text) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.idle_duties(timestamp with time zone) TO pricing_reader, pricing_worker;

-- Waiting tasks that can never be called, each with a sentence that says why and what to do: their provider is switched off or cannot fetch them (is_misrouted: another may do so), one symbol costs more than a limit allows, or its bytes are more than the quota allows.
CREATE FUNCTION pricing.impossible_tasks() RETURNS TABLE(id bigint, data_type text, is_misrouted boolean, message text) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.impossible_tasks() TO pricing_reader, pricing_worker;

-- A payment that a total return cannot count, and why, for people.
CREATE FUNCTION pricing.in_words(lack jsonb) RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.in_words(jsonb) TO pricing_reader, pricing_worker;

-- Makes a task of each pair that has a provider and no live task. Returns how many, whether a provider had none pending before, whether pairs have no provider, and the live tasks of the others with the priorities that are asked for.
CREATE FUNCTION pricing.insert_tasks(data_types text[], symbols text[], priorities integer[], window_starts date[], window_ends date[], backfill uuid, are_new boolean, OUT added integer, OUT is_news boolean, OUT are_unrouted boolean, OUT live_ids bigint[], OUT live_priorities integer[]) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.insert_tasks(text[],text[],integer[],date[],date[],uuid,boolean) TO pricing_worker;

-- The instant of a local time, by the rule of RFC 5545: of a time that comes twice the first, of a time that clocks skip the one so long after the jump.
CREATE FUNCTION pricing.instant_of(local timestamp without time zone, zone text) RETURNS timestamp with time zone LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.instant_of(timestamp without time zone,text) TO pricing_reader, pricing_worker;

-- Stops the waiting tasks of a paused instrument; makes the pairs of a resumed one due at once.
TRIGGER FUNCTION pricing.instrument_paused() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- How many instruments of a calendar have a daily bar between two days.
CREATE FUNCTION pricing.instruments_traded(wanted_calendar text, from_day date, to_day date) RETURNS bigint LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.instruments_traded(text,date,date) TO pricing_reader, pricing_worker;

-- Whether another open call with the key of this one goes before its next request: an older one, or one whose own next request is in flight.
CREATE FUNCTION pricing.is_before_page(call pricing.collector_call_log, now_ timestamp with time zone) RETURNS boolean LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_before_page(pricing.collector_call_log,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Whether a version of the game is a patch that may be out, though the list of versions has not told so yet: it is higher than the live one, and not for tests.
CREATE FUNCTION pricing.is_coming(other text, live text) RETURNS boolean LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_coming(text,text) TO pricing_reader, pricing_worker;

-- Stale when the TTL has passed, when there is no time at all, or one more than a minute ahead. Refuses a TTL that is not positive.
CREATE FUNCTION pricing.is_data_stale(stamp timestamp with time zone, ttl_minutes integer) RETURNS boolean LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_data_stale(timestamp with time zone,integer) TO pricing_reader, pricing_worker;

-- Whether this is a FIGI (ANSI X9.145), with its check digit.
CREATE FUNCTION pricing.is_figi(given text) RETURNS boolean LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_figi(text) TO pricing_reader, pricing_worker;

-- Whether a pair that was answered once has become unknown to its provider more than a week ago, and was asked for within the last week. Schedules ask for such a pair once a week.
CREATE FUNCTION pricing.is_forgotten(wanted_type text, wanted_symbol text) RETURNS boolean LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_forgotten(text,text) TO pricing_reader, pricing_worker;

-- Whether somebody asks about this symbol now, at whatever provider: a task of it is in work, or a second opinion on it. Both have an open call. What was given back or cancelled meanwhile is not in work, though its answer may still come.
CREATE FUNCTION pricing.is_in_work(wanted_symbol text) RETURNS boolean LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_in_work(text) TO pricing_reader, pricing_worker;

-- Whether this is an ISIN (ISO 6166), with its check digit.
CREATE FUNCTION pricing.is_isin(given text) RETURNS boolean LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_isin(text) TO pricing_reader, pricing_worker;

-- Whether the next call with a key is that of a page which waits for it. Whoever waits says so each second.
CREATE FUNCTION pricing.is_kept_for_page(state pricing.provider_state, wanted_key text, now_ timestamp with time zone) RETURNS boolean LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_kept_for_page(pricing.provider_state,text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Whether finished tasks are kept in this leaf: not, if somebody has dropped it, or detached it to keep it.
CREATE FUNCTION pricing.is_leaf(leaf text) RETURNS boolean LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_leaf(text) TO pricing_reader, pricing_worker;

-- Stale when a newer value should exist by the instrument's calendar and by the TTL, or when there is no time at all, or one more than a minute ahead.
CREATE FUNCTION pricing.is_market_stale(data_type text, symbol text, stamp timestamp with time zone, ttl_minutes integer) RETURNS boolean LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_market_stale(text,text,timestamp with time zone,integer) TO pricing_reader, pricing_worker;

-- What a data type names to follow calendars. Of a time alone no calendar is known, so here the TTL decides; who knows the symbol asks the one of four arguments.
CREATE FUNCTION pricing.is_market_stale(stamp timestamp with time zone, ttl_minutes integer) RETURNS boolean LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_market_stale(timestamp with time zone,integer) TO pricing_reader, pricing_worker;

-- Whether a value is quarantined because it is on another level than those around it.
CREATE FUNCTION pricing.is_of_level(kind text) RETURNS boolean LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.is_of_level(text) TO pricing_reader, pricing_worker;

-- Whether a reported action may be a believed one of another day: the same ratio within 7 days, or a payment of the same amount within 6. Sources differ about the ex-day.
CREATE FUNCTION pricing.is_one_action(believed pricing.corporate_actions, said pricing.corporate_actions) RETURNS boolean LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_one_action(pricing.corporate_actions,pricing.corporate_actions) TO pricing_reader, pricing_worker;

-- Whether a failed call may say that nobody is served now, be it for the provider, its key or us. Not throttled: its pauses have rules of their own.
CREATE FUNCTION pricing.is_outage(kind text) RETURNS boolean LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_outage(text) TO pricing_reader, pricing_worker;

-- Whether the pair's price is missing or stale for a viewer, by the table and function that the registry names.
CREATE FUNCTION pricing.is_pair_stale(data_type text, symbol text) RETURNS boolean LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_pair_stale(text,text) TO pricing_reader, pricing_worker;

-- Whether the TTL has passed at a moment, or there is no time at all, or one more than a minute ahead of it.
CREATE FUNCTION pricing.is_past_ttl(stamp timestamp with time zone, ttl_minutes integer, now_ timestamp with time zone) RETURNS boolean LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.is_past_ttl(timestamp with time zone,integer,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Whether a failed call counts against its provider. Not: a wrong key, symbol, plan or request, which are ours, and single values that cannot be true.
CREATE FUNCTION pricing.is_provider_fault(kind text) RETURNS boolean LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_provider_fault(text) TO pricing_reader, pricing_worker;

-- Whether a person has removed or replaced exactly this, which the same provider says again.
CREATE FUNCTION pricing.is_refuted(said pricing.corporate_actions) RETURNS boolean LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_refuted(pricing.corporate_actions) TO pricing_reader, pricing_worker;

-- Whether an action that a person enters replaces this one: the same day's ratio, or a payment of the same kind and currency.
CREATE FUNCTION pricing.is_replaced_by(believed pricing.corporate_actions, entered pricing.corporate_actions) RETURNS boolean LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_replaced_by(pricing.corporate_actions,pricing.corporate_actions) TO pricing_reader, pricing_worker;

-- Whether any instrument, of whatever class, may have this symbol.
CREATE FUNCTION pricing.is_sane_symbol(symbol text) RETURNS boolean LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_sane_symbol(text) TO pricing_reader, pricing_worker;

-- Whether a provider may mean a window of so many seconds (NULL = a calendar day) when it shows a limit, or what is left of it, and names no window: up to an hour.
CREATE FUNCTION pricing.is_short_window(seconds integer) RETURNS boolean LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.is_short_window(integer) TO pricing_reader, pricing_worker;

-- Whether a source that was asked at a time had nothing as new as it should have had.
CREATE FUNCTION pricing.is_source_old(kind pricing.data_type_registry, symbol text, observed_at timestamp with time zone, asked_at timestamp with time zone, ttl_minutes integer) RETURNS boolean LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.is_source_old(pricing.data_type_registry,text,timestamp with time zone,timestamp with time zone,integer) TO pricing_reader, pricing_worker;

-- Asks the staleness function that the registry names for the type about a pair, with its calendar if the function follows calendars.
CREATE FUNCTION pricing.is_stale(data_type text, symbol text, stamp timestamp with time zone, ttl_minutes integer) RETURNS boolean LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_stale(text,text,timestamp with time zone,integer) TO pricing_reader, pricing_worker;

-- Asks the staleness function that the registry names for the type. Without a verdict it is stale.
CREATE FUNCTION pricing.is_stale(data_type text, stamp timestamp with time zone, ttl_minutes integer) RETURNS boolean LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_stale(text,timestamp with time zone,integer) TO pricing_reader, pricing_worker;

-- Whether a claim still owns one of the tasks of a call. A call without tasks (NULL) is its own claim. Locks nothing.
CREATE FUNCTION pricing.is_still_claimed(of_call bigint, ids bigint[], token uuid) RETURNS boolean LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_still_claimed(bigint,bigint[],uuid) TO pricing_reader, pricing_worker;

-- Whether a task that failed so has its symbol to blame. All other kinds are trouble of the provider, its key or ours: the pair stays late.
CREATE FUNCTION pricing.is_symbol_fault(kind text) RETURNS boolean LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_symbol_fault(text) TO pricing_reader, pricing_worker;

-- Whether this server knows a time zone of this name. It takes some milliseconds: the server reads its files.
CREATE FUNCTION pricing.is_time_zone(name text) RETURNS boolean LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_time_zone(text) TO pricing_reader, pricing_worker;

-- Whether values of an instrument are quarantined, or its history came divided by one ratio, so that a new split may explain it.
CREATE FUNCTION pricing.is_to_judge(wanted_class text, wanted_symbol text, wanted_kind text) RETURNS boolean LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_to_judge(text,text,text) TO pricing_reader, pricing_worker;

-- Whether another instrument of the same exchange has a value of a day.
CREATE FUNCTION pricing.is_traded_by_others(wanted_type text, wanted_symbol text, day date) RETURNS boolean LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.is_traded_by_others(text,text,date) TO pricing_reader, pricing_worker;

-- Whether nothing could be read of a quarantined value that could be stored: it is no price, or two contradict each other.
CREATE FUNCTION pricing.is_unreadable(kind text, bar jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.is_unreadable(text,jsonb) TO pricing_reader, pricing_worker;

-- Whether the last values of a pair came so seldom, as those of a fund that is valued each week or month, that its next one need not be there yet.
CREATE FUNCTION pricing.is_usual_pause(wanted_type text, wanted_symbol text, newest timestamp with time zone, asked_at timestamp with time zone) RETURNS boolean LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.is_usual_pause(text,text,timestamp with time zone,timestamp with time zone) TO pricing_reader, pricing_worker;

-- What a settled call says about its provider: opens the breaker (at least 10 faults, half of all calls, in 10 min), ends a probe, begins or ends an outage, ends a key's pauses, heeds the limit that the provider shows and the units that it says are left. Only for calls whose claim was still owned. If another session keeps the provider locked, it says nothing.
CREATE FUNCTION pricing.judge_call(judged bigint, stated_left integer DEFAULT NULL::integer, shown_units integer DEFAULT NULL::integer, shown_seconds integer DEFAULT NULL::integer) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp, lock_timeout=500ms;
GRANT EXECUTE ON FUNCTION pricing.judge_call(bigint,integer,integer,integer) TO pricing_worker;

-- The answer to each pair of a request, before caps: its data type must be active, and its symbol must pass judge_symbols.
CREATE FUNCTION pricing.judge_pairs(data_types text[], symbols text[]) RETURNS SETOF pricing.pair_answer LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.judge_pairs(text[],text[]) TO pricing_reader, pricing_worker;

-- Has the next staleness check judge what waits longer than its TTL is stretched by now, of the data types that some providers serve (NULL = of all): the quota was raised, another provider has joined the route, or a look at this came while the pair was locked. Returns how many pairs.
CREATE FUNCTION pricing.judge_stretched(providers text[] DEFAULT NULL::text[]) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.judge_stretched(text[]) TO pricing_worker;

-- What is meant by each pair of a data type and a symbol, whoever asks. outcome: accepted; doubtful, which is accepted with a warning (reason); or refused, with the reason and, in proposal, a symbol or a data type:symbol that would do. symbol is the one spelling of the instrument, whether it is known yet or not; NULL = refused.
CREATE FUNCTION pricing.judge_symbols(data_types text[], symbols text[]) RETURNS TABLE(place integer, data_type text, given text, symbol text, outcome text, reason text, proposal text) LANGUAGE plpgsql STABLE SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.judge_symbols(text[],text[]) TO pricing_reader, pricing_worker;

-- Due pairs with the times and TTLs that a table of the user's own has of them, and what a function of the user's own says of those. Where that fails, all count as stale.
CREATE FUNCTION pricing.judged_elsewhere(kind pricing.data_type_registry, pairs pricing.due_pair[]) RETURNS pricing.due_pair[] LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.judged_elsewhere(pricing.data_type_registry,pricing.due_pair[]) TO pricing_worker;

-- Keeps an action that a person has removed or replaced, with who did so and why.
CREATE FUNCTION pricing.keep_action(was pricing.corporate_actions, until timestamp with time zone, by_whom text, why text) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.keep_action(pricing.corporate_actions,timestamp with time zone,text,text) TO pricing_worker;

-- Keeps actions that a call of their own provider has replaced.
CREATE FUNCTION pricing.keep_actions(were pricing.corporate_actions[], until timestamp with time zone, by_call bigint) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.keep_actions(pricing.corporate_actions[],timestamp with time zone,bigint) TO pricing_worker;

-- Refuses another class or symbol for an instrument that is watched, held or priced: its pairs would go on without an instrument.
TRIGGER FUNCTION pricing.keep_class() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- A stored key is never sent to another host than the one for which it was given.
TRIGGER FUNCTION pricing.keep_key_at_host() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Trigger: keeps what a statement has changed in the table of revisions (its first argument), matched by the key (its second).
TRIGGER FUNCTION pricing.keep_revision() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Keeps values that a call has changed, or taken out of a history, and notes that it has changed.
CREATE FUNCTION pricing.keep_revisions(were pricing.price_history[], until timestamp with time zone, by_call bigint) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.keep_revisions(pricing.price_history[],timestamp with time zone,bigint) TO pricing_worker;

-- The stored slots that an answer lists with values that are not believed: they stay as they are.
CREATE FUNCTION pricing.kept_slots(from_provider text, days jsonb) RETURNS SETOF bigint LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.kept_slots(text,jsonb) TO pricing_reader, pricing_worker;

-- The source's spelling of a price, where that is not the amount with so many decimals; NULL = it is.
CREATE FUNCTION pricing.kept_text(source_text text, amount bigint, scale smallint) RETURNS text LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.kept_text(text,bigint,smallint) TO pricing_reader, pricing_worker;

-- The keys of a provider, and the units that each may be charged now, the least over its limits. Exact only under the lock of the provider_state row.
CREATE FUNCTION pricing.key_allowances(wanted_provider text, now_ timestamp with time zone) RETURNS TABLE(key_name text, is_active boolean, is_usable boolean, units_left bigint, units_limit integer, is_after_refusal boolean, is_nearly_used_up boolean, blocked_until timestamp with time zone, blocked_reason text) LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.key_allowances(text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- That of these keys (NULL = all) of a provider which can be charged the most units at a time, at least the needed ones, for which no page waits, and whose pause since the last call is over. No row = none can, or as many calls are in flight as the provider may have.
CREATE FUNCTION pricing.key_to_ask(wanted_provider text, keys text[], needed integer, last_call timestamp with time zone, at timestamp with time zone) RETURNS TABLE(key_name text, units_left bigint) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.key_to_ask(text,text[],integer,timestamp with time zone,timestamp with time zone) TO pricing_reader, pricing_worker;

-- What tells a restated bar from a corrected one, for each symbol with the first and last time that an answer has of it: its basis, splits, and when stored values were recorded: all of a history that splits have divided, else those before their day was over.
CREATE FUNCTION pricing.known_basis(wanted_type text, symbols text[], first_times timestamp with time zone[], last_times timestamp with time zone[]) RETURNS TABLE(symbol text, adjustment text, split_days date[], split_ratios numeric[], newest_recorded timestamp with time zone, earlier_recorded timestamp with time zone, same_times timestamp with time zone[], same_recorded timestamp with time zone[]) LANGUAGE plpgsql STABLE SET search_path=pg_temp, plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.known_basis(text,text[],timestamp with time zone[],timestamp with time zone[]) TO pricing_reader, pricing_worker;

-- Currencies that an exchange rate may name: those of providers/currencies.py whose codes have three letters, as a test holds.
CREATE FUNCTION pricing.known_currencies() RETURNS text[] LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.known_currencies() TO pricing_reader, pricing_worker;

-- What stops a provider, as it is known, or else as it is now. Whoever explains many pairs asks once for a provider.
CREATE FUNCTION pricing.known_stop(wanted_provider text, stops pricing.provider_stop[]) RETURNS pricing.provider_stop LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.known_stop(text,pricing.provider_stop[]) TO pricing_reader, pricing_worker;

-- What an answer is judged by, for each symbol with the first and last time that the answer has of it: scale, currency, basis, bounds; the newest value, those next to the answer's span and within it; for a pair without any, the newest of another data type; and what other providers say of the same times.
CREATE FUNCTION pricing.known_values(wanted_type text, from_provider text, symbols text[], first_times timestamp with time zone[], last_times timestamp with time zone[], is_latest boolean) RETURNS TABLE(symbol text, scale smallint, currency text, adjustment text, lowest numeric, highest numeric, jumps_are_trusted boolean, newest_at timestamp with time zone, newest_amount bigint, newest_scale smallint, earlier_at timestamp with time zone, earlier_amount bigint, earlier_scale smallint, later_at timestamp with time zone, later_amount bigint, later_scale smallint, kin_at timestamp with time zone, kin_amount bigint, kin_scale smallint, same_times timestamp with time zone[], same_amounts bigint[], same_scales smallint[], other_times timestamp with time zone[], other_values numeric[], other_providers text[]) LANGUAGE plpgsql STABLE SET search_path=pg_temp, plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.known_values(text,text,text[],timestamp with time zone[],timestamp with time zone[],boolean) TO pricing_reader, pricing_worker;

-- How many drains are at work and not about to end.
CREATE FUNCTION pricing.lasting_drains() RETURNS integer LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.lasting_drains() TO pricing_reader, pricing_worker;

-- Periodic duties that have not run for ten minutes, or for ten minutes longer than they may: when they last did (NULL = never), and why not, if they fail. started = they are not expected to have run earlier.
CREATE FUNCTION pricing.late_duties(started timestamp with time zone) RETURNS TABLE(duty text, since timestamp with time zone, last_error text) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.late_duties(timestamp with time zone) TO pricing_reader, pricing_worker;

-- What gives a sign of life again and again, and sensors that do not work, as pricing.health() has it. A sign from the future does not count.
CREATE FUNCTION pricing.late_signs(now_ timestamp with time zone, started timestamp with time zone) RETURNS TABLE(part text, is_late boolean, since timestamp with time zone, says text) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.late_signs(timestamp with time zone,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Data types of which pairs were late in all samples of the last ten minutes: how many are watched, and how many are late. The row without a type counts all types: it is there if more than 5 % of what is watched was late, which is the service level.
CREATE FUNCTION pricing.late_types(started timestamp with time zone) RETURNS TABLE(data_type text, watched bigint, late bigint) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.late_types(timestamp with time zone) TO pricing_reader, pricing_worker;

-- Learns from when a daily value first appeared how long after the close to look for it.
TRIGGER FUNCTION pricing.learn_publish_lag() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Corrects the size estimate by what a good call brought: the first measurement whole, then nine parts old and one part new. Counts answers of more than twice their estimate.
CREATE FUNCTION pricing.learn_size(call pricing.collector_call_log, now_ timestamp with time zone) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.learn_size(pricing.collector_call_log,timestamp with time zone) TO pricing_worker;

-- Leaves the provider that answered last for products: its coming slots have vanished, its options and categories are no longer listed, and its days are asked for again.
CREATE FUNCTION pricing.leave_previous_provider(answered text[], from_provider text, from_call bigint, now_ timestamp with time zone) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.leave_previous_provider(text[],text,bigint,timestamp with time zone) TO pricing_worker;

-- How many of a provider's used bytes will have left the quota in 1, 2, ... 721 hours.
CREATE FUNCTION pricing.leaving_bytes(wanted_provider text, now_ timestamp with time zone) RETURNS bigint[] LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.leaving_bytes(text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- The part of a price that remains after the dividends and capital gains of a day: 1 minus their cash divided by the last price before them, in one currency and on one basis. If that is unknown it is 1, and lacks says why for each payment: no_close (within two weeks), no_rate (of the day), or not_below_close for all of them.
CREATE FUNCTION pricing.left_by_payments(wanted_type text, wanted_class text, wanted_symbol text, day date, as_of timestamp with time zone, archived pricing.price_revisions[], OUT kept numeric, OUT lacks jsonb) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.left_by_payments(text,text,text,date,timestamp with time zone,pricing.price_revisions[]) TO pricing_reader, pricing_worker;

-- How many instruments a backfill of the whole type, or of these symbols, leaves out, by reason. Of the whole type a schedule leaves out the same.
CREATE FUNCTION pricing.left_out(wanted_type text, only_symbols text[] DEFAULT NULL::text[]) RETURNS jsonb LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.left_out(text,text[]) TO pricing_reader, pricing_worker;

-- The values that are quarantined with this one: of one pair and provider, in one state, one after the other on one level, with no believed value between them.
CREATE FUNCTION pricing.level_of(wanted bigint) RETURNS bigint[] LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.level_of(bigint) TO pricing_reader, pricing_worker;

-- Has the next check of a data type begin at the beginning, where it passed a pair by: one whose row another session had locked, or that a transaction made due which ended later than the check. Returns of how many types.
CREATE FUNCTION pricing.lift_marks() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.lift_marks() TO pricing_worker;

-- The limit that keeps a provider from being called now: how much of it is used, and when the next unit comes. NULL = none of ours does.
CREATE FUNCTION pricing.limit_in_force(wanted_provider text, OUT sentence text, OUT next_at timestamp with time zone) RETURNS record LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.limit_in_force(text) TO pricing_reader, pricing_worker;

-- Calls after this moment count against the limit now.
CREATE FUNCTION pricing.limit_start(wanted pricing.provider_limits, now_ timestamp with time zone) RETURNS timestamp with time zone LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.limit_start(pricing.provider_limits,timestamp with time zone) TO pricing_reader, pricing_worker;

-- How far back a window of so many seconds is counted: five milliseconds more than it is long.
CREATE FUNCTION pricing.limit_window(seconds integer) RETURNS interval LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.limit_window(integer) TO pricing_reader, pricing_worker;

-- The limits that providers, or one of them, have shown to be lower than what is written down: a sentence about each, and the command that corrects it.
CREATE FUNCTION pricing.limits_shown(only_provider text DEFAULT NULL::text) RETURNS TABLE(provider text, key_name text, name text, units integer, shown_units integer, shown_at timestamp with time zone, sentence text, correction text) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.limits_shown(text) TO pricing_reader, pricing_worker;

-- The first day on which a pair can have values: as a person gave it, or the first value that came, if the fortnight before it was asked for in vain. NULL = not known.
CREATE FUNCTION pricing.listed_from(wanted_type text, wanted_symbol text) RETURNS date LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.listed_from(text,text) TO pricing_reader, pricing_worker;

-- Stores the corrections of trading days that come with the pipeline, in place of an earlier version's. Those of people stay.
CREATE FUNCTION pricing.load_corrections(given jsonb) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.load_corrections(jsonb) TO pricing_worker;

-- Stores the exchanges of domain/exchanges.toml, how their symbols end, and their calendars. Instruments without a calendar get one if their exchange is known now.
CREATE FUNCTION pricing.load_exchanges(given jsonb) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.load_exchanges(jsonb) TO pricing_worker;

-- Lets one session of a user at a time begin new pairs, until the transaction ends. Nobody else waits for it.
CREATE FUNCTION pricing.lock_allowance(user_id pricing.user_name) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.lock_allowance(pricing.user_name) TO pricing_worker;

-- Locks histories that may change their basis: the first and the last day of each, whether most of it is this provider's own, and whether all of it was asked for because its basis differs: within a day, or with a task that is not finished.
CREATE FUNCTION pricing.lock_basis(wanted_type text, from_provider text, symbols text[]) RETURNS TABLE(symbol text, first_day date, last_day date, is_own boolean, is_asked boolean) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.lock_basis(text,text,text[]) TO pricing_worker;

-- Locks the row of a call until the transaction ends, so that what is stored for it can be settled.
CREATE FUNCTION pricing.lock_call(locked bigint) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.lock_call(bigint) TO pricing_worker;

-- The fence for the tasks of one call, as lock_tasks is for any tasks.
CREATE FUNCTION pricing.lock_call_tasks(asked bigint, ids bigint[], token uuid) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.lock_call_tasks(bigint,bigint[],uuid) TO pricing_worker;

-- Keeps other exports of a month waiting until the end of the transaction, and tells when it was exported and when it moved.
CREATE FUNCTION pricing.lock_export(wanted_type text, wanted_month date) RETURNS TABLE(exported_at timestamp with time zone, moved_at timestamp with time zone) LANGUAGE sql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.lock_export(text,date) TO pricing_worker;

-- The latest prices that the given ones may replace, as they are until then.
CREATE FUNCTION pricing.lock_latest(given pricing.price_history[]) RETURNS pricing.latest_prices[] LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.lock_latest(pricing.price_history[]) TO pricing_worker;

-- Locks products until the transaction ends, and notes those that are new or listed again. Returns the time from which what is stored is believed.
CREATE FUNCTION pricing.lock_products(answered text[], from_provider text, from_call bigint) RETURNS timestamp with time zone LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.lock_products(text[],text,bigint) TO pricing_worker;

-- The fence: locks the tasks that a claim still owns until the transaction ends. Returns their ids. Waits for a second at most.
CREATE FUNCTION pricing.lock_tasks(ids bigint[], token uuid) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.lock_tasks(bigint[],uuid) TO pricing_worker;

-- Logs a call about quarantined values as open, with the units and bytes that it may cost, and notes when the values are asked about again. Returns the call.
CREATE FUNCTION pricing.log_opinions(wanted_provider text, wanted_key text, wanted_type text, wanted_symbols text[], day date, wanted_units integer, needed bigint, run text, worker_name text, asked_ids bigint[], at timestamp with time zone) RETURNS bigint LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.log_opinions(text,text,text,text[],date,integer,bigint,text,text,bigint[],timestamp with time zone) TO pricing_worker;

-- How many days a task of a pair may span: as many as each of its providers takes in one call, for it may be given to another one. NULL = any number, or no provider.
CREATE FUNCTION pricing.longest_window(wanted_type text, wanted_symbol text, wanted_fetcher text) RETURNS SETOF integer LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.longest_window(text,text,text) TO pricing_reader, pricing_worker;

-- What is wanted of a data type, or of one symbol, is judged anew by the next staleness check, unless it backs off or a task of it is live.
CREATE FUNCTION pricing.look_again(wanted_type text, only_symbol text DEFAULT NULL::text) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.look_again(text,text) TO pricing_worker;

-- Notes what has changed about streamed pairs since the last look, and forgets what is old. The opened pairs are streamed from now on. Returns how far the log goes, and up to where it is deleted.
CREATE FUNCTION pricing.look_for_streams(opened_types text[], opened_symbols text[], OUT head_position bigint, OUT kept_from bigint) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.look_for_streams(text[],text[]) TO pricing_worker;

-- Whether this has the form of an ISIN or a FIGI.
CREATE FUNCTION pricing.looks_like_identifier(given text) RETURNS boolean LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.looks_like_identifier(text) TO pricing_reader, pricing_worker;

-- The probe's worker was lost, which says nothing about the provider: another one may be made at once; if its row is locked, when the lease of the probe is over.
CREATE FUNCTION pricing.lose_probe(wanted_provider text, lost bigint) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.lose_probe(text,bigint) TO pricing_worker;

-- Makes the table partition of the history of a data type of prices.
CREATE FUNCTION pricing.make_history(data_type text) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.make_history(text) TO pricing_worker;

-- Makes leaves of finished tasks that were dropped, with what is in the leaf for the rest of them. For the owner; an upgrade does it.
CREATE FUNCTION pricing.make_leaves() RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.make_leaves() TO pricing_worker;

-- Gives a new data type its view, one of prices its history, and a route.
TRIGGER FUNCTION pricing.make_storage() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp;

-- Makes the view of a data type whose contents have no view of their own: when each pair was confirmed.
CREATE FUNCTION pricing.make_view_of_confirmed_pairs(view_name text, data_type text) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.make_view_of_confirmed_pairs(text,text) TO pricing_worker;

-- Makes a view of when each pair of a data type was confirmed, with more columns, written as SQL of a pair p.
CREATE FUNCTION pricing.make_view_of_confirmed_pairs(view_name text, data_type text, more_columns text) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.make_view_of_confirmed_pairs(text,text,text) TO pricing_worker;

-- Makes the view of the current documents of a data type.
CREATE FUNCTION pricing.make_view_of_documents(view_name text, data_type text) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.make_view_of_documents(text,text) TO pricing_worker;

-- Makes the view of the latest prices of a data type.
CREATE FUNCTION pricing.make_view_of_prices(view_name text, data_type text) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.make_view_of_prices(text,text) TO pricing_worker;

-- When the last session of a calendar ended, and when the next one begins or this one has; NULL where sessions are not known.
CREATE FUNCTION pricing.market_at(wanted_calendar text, at timestamp with time zone, OUT closed_at timestamp with time zone, OUT opens_at timestamp with time zone) RETURNS record LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.market_at(text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Whether one such task fits into the empty quota of a provider. One that never does is queued all the same: so it fails, and says why (fail_impossible_tasks).
CREATE FUNCTION pricing.may_fit(wanted_provider text, priority integer, bytes bigint) RETURNS boolean LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.may_fit(text,integer,bigint) TO pricing_reader, pricing_worker;

-- Whether an open breaker lets its probe through before breaker_until: 45 s after the last probe failed, while a viewer waits. So viewers have their prices within a minute of the provider's return, however long it was away.
CREATE FUNCTION pricing.may_probe_early(state pricing.provider_state, now_ timestamp with time zone) RETURNS boolean LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.may_probe_early(pricing.provider_state,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Bytes that a provider has sent in the last 24 and 168 hours, and the lower of the two as bytes an hour; NULL = less than a day is measured.
CREATE FUNCTION pricing.measured_rate(wanted_provider text, now_ timestamp with time zone, OUT day_bytes bigint, OUT week_bytes bigint, OUT per_hour double precision) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.measured_rate(text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Stores the actions that one call brought. If the provider that reported a day corrects it, the old actions become revisions. What another provider reports of that day, or of one near it, changes nothing. A day that the answer no longer names stays as it is, or moves to a day near it. What a person has removed stays removed. Of the symbols in told, all actions since their day are known from now on. Returns how many rows were changed.
CREATE FUNCTION pricing.merge_actions(wanted_type text, from_provider text, from_call bigint, actions jsonb, told_symbols text[], told_since date[], gains_told text[] DEFAULT '{}'::text[]) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.merge_actions(text,text,bigint,jsonb,text[],date[],text[]) TO pricing_worker;

-- Moves the bars of one symbol, given in the order of their days, into history, as merge_prices does for any values. Returns how many were added and revised.
CREATE FUNCTION pricing.merge_bars(wanted_type text, from_provider text, from_call bigint, wanted_symbol text, named_currency text, basis text, times timestamp with time zone[], amounts bigint[], open_amounts bigint[], high_amounts bigint[], low_amounts bigint[], scales smallint[], volumes numeric[], texts text[], qualities text[], OUT added bigint, OUT revised bigint) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.merge_bars(text,text,bigint,text,text,text,timestamp with time zone[],bigint[],bigint[],bigint[],bigint[],smallint[],numeric[],text[],text[]) TO pricing_worker;

-- Stores the list of commodities; unchanged ones write nothing. Commodities that a whole list lacks are marked as vanished.
CREATE FUNCTION pricing.merge_commodities(from_call bigint, is_whole boolean, ids bigint[], names text[], codes text[], slugs text[], kinds text[], available boolean[], OUT added bigint, OUT revised bigint, OUT vanished bigint) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.merge_commodities(bigint,boolean,bigint[],text[],text[],text[],text[],boolean[]) TO pricing_worker;

-- Stores the prices of some terminals from one call. Old rows of what changed go to commodity_price_revisions, identical ones write nothing, and prices that the source dates before the stored ones are left out. Of whole lists, what is no longer listed counts as not traded, unless all that they list is older, or a later call has brought it. Per terminal: prices added and revised, and whether all of them were older than the stored ones.
CREATE FUNCTION pricing.merge_commodity_prices(from_provider text, from_call bigint, terminals text[], terminal_names text[], terminal_codes text[], whole boolean[], symbols text[], commodity_ids bigint[], qualities text[], names text[], codes text[], slugs text[], buys numeric[], sells numeric[], stocks bigint[], demands bigint[], versions text[], stamps timestamp with time zone[]) RETURNS TABLE(symbol text, added bigint, revised bigint, is_stale_source boolean) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.merge_commodity_prices(text,bigint,text[],text[],text[],boolean[],text[],bigint[],text[],text[],text[],text[],numeric[],numeric[],bigint[],bigint[],text[],timestamp with time zone[]) TO pricing_worker;

-- Stores the documents of one call. Old bodies of what changed go to document_revisions, identical ones write nothing; of whole answers, what is no longer listed is withdrawn. All answered symbols count as confirmed now, also those without a document. Per symbol: documents added, documents revised.
CREATE FUNCTION pricing.merge_documents(wanted_type text, from_provider text, from_call bigint, answered text[], whole text[], symbols text[], periods date[], bodies jsonb[]) RETURNS TABLE(symbol text, added bigint, revised bigint) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.merge_documents(text,text,bigint,text[],text[],text[],date[],jsonb[]) TO pricing_worker;

-- Makes two instruments of a class one: what is stored, watched, held and set of the old one goes to the new one, which is made if there is none, and keeps its own where both have something. From then on the old symbol means the new one. Says how many rows were moved, and how many dropped. Needs the owner's rights.
CREATE FUNCTION pricing.merge_instruments(of_class text, old_symbol text, new_symbol text) RETURNS TABLE(rows_of text, moved bigint, dropped bigint) LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=2s;
GRANT EXECUTE ON FUNCTION pricing.merge_instruments(text,text,text) TO pricing_worker;

-- Stores for whom an answer's slots are and what they cost, as merge_slots does; the slots are stored already. Returns those with a change.
CREATE FUNCTION pricing.merge_offers(from_provider text, from_call bigint, now_ timestamp with time zone, days jsonb, slots jsonb, offers jsonb) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, enable_mergejoin=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.merge_offers(text,bigint,timestamp with time zone,jsonb,jsonb,jsonb) TO pricing_worker;

-- Stores categories as products list them; those that a product no longer lists stay, and say so. A product that lists none says nothing about its categories. Returns the products of what has changed.
CREATE FUNCTION pricing.merge_pax_categories(from_provider text, from_call bigint, now_ timestamp with time zone, categories jsonb) RETURNS text[] LANGUAGE sql SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.merge_pax_categories(text,bigint,timestamp with time zone,jsonb) TO pricing_worker;

-- Moves the values of one call into history and, for a latest-price call, into latest_prices. Old values of what changed go to price_revisions, also where another session has stored them in the same moment; identical values write nothing. Per symbol: rows added, rows revised, and whether the latest price was stored or refused as older than ours.
CREATE FUNCTION pricing.merge_prices(wanted_type text, from_provider text, from_call bigint, is_latest boolean, symbols text[], times timestamp with time zone[], amounts bigint[], open_amounts bigint[], high_amounts bigint[], low_amounts bigint[], scales smallint[], currencies text[], volumes numeric[], texts text[], adjustments text[], qualities text[] DEFAULT NULL::text[]) RETURNS TABLE(symbol text, added bigint, revised bigint, outcome text) LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.merge_prices(text,text,bigint,boolean,text[],timestamp with time zone[],bigint[],bigint[],bigint[],bigint[],smallint[],text[],numeric[],text[],text[],text[]) TO pricing_worker;

-- Stores options as products list them; those that a product no longer lists stay, and say so. A product that lists none says nothing about its options. Returns the products of what has changed.
CREATE FUNCTION pricing.merge_product_options(from_provider text, from_call bigint, now_ timestamp with time zone, options jsonb) RETURNS text[] LANGUAGE sql SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.merge_product_options(text,bigint,timestamp with time zone,jsonb) TO pricing_worker;

-- Stores what one call has said of products: name, zone, options, categories. What is the same writes nothing; of what changes, the old belief goes to the revisions. A new zone places the coming slots anew. What the answer to a later call has told already stays. All answered symbols count as confirmed now. Per symbol: 1 if it is new, 1 if something of it has changed.
CREATE FUNCTION pricing.merge_products(wanted_type text, from_provider text, from_call bigint, answered text[], products jsonb, options jsonb, categories jsonb) RETURNS TABLE(symbol text, added bigint, revised bigint) LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.merge_products(text,text,bigint,text[],jsonb,jsonb,jsonb) TO pricing_worker;

-- Stores what one call has said of the slots of whole local days. What is the same writes nothing; of what changes, the old belief goes to the revisions; stored slots of these days that are not listed have vanished. Days that the answer to a later call has listed stay. Refuses slots that cannot be placed. Per symbol: slots added, slots with a change.
CREATE FUNCTION pricing.merge_slots(wanted_type text, from_provider text, from_call bigint, days jsonb, slots jsonb, offers jsonb) RETURNS TABLE(symbol text, added bigint, revised bigint) LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, enable_mergejoin=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.merge_slots(text,text,bigint,jsonb,jsonb,jsonb) TO pricing_worker;

-- Stores the list of terminals, which become instruments; unchanged ones write nothing. Terminals that a whole list lacks are marked as vanished.
CREATE FUNCTION pricing.merge_terminals(from_call bigint, is_whole boolean, symbols text[], names text[], codes text[], systems text[], planets text[], moons text[], places text[], available boolean[], stamps timestamp with time zone[], OUT added bigint, OUT revised bigint, OUT vanished bigint) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.merge_terminals(bigint,boolean,text[],text[],text[],text[],text[],text[],text[],boolean[],timestamp with time zone[]) TO pricing_worker;

-- Those of the pairs whose prices a read finds missing or stale, and which nobody has queued. Instruments that are unknown or paused, and pairs that back off, are left out.
CREATE FUNCTION pricing.missing_prices(INOUT data_types text[], INOUT symbols text[]) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.missing_prices(text[],text[]) TO pricing_worker;

-- Sessions of a pair without a value between two days, numbered as all its sessions are, and why each has none.
CREATE FUNCTION pricing.missing_sessions(wanted_type text, wanted_symbol text, from_day date, to_day date) RETURNS TABLE(session date, nth bigint, kind text, detail text) LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.missing_sessions(text,text,date,date) TO pricing_reader, pricing_worker;

-- The fewest spans of days that a backfill must ask for: from the first to the last session without a final value, weekends and holidays bridged, none before listing, none that the provider has answered for or that is queued, each within what one call may ask.
CREATE FUNCTION pricing.missing_windows(wanted_type text, from_day date, to_day date, only_symbols text[] DEFAULT NULL::text[]) RETURNS TABLE(symbol text, first_day date, last_day date) LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.missing_windows(text,date,date,text[]) TO pricing_reader, pricing_worker;

-- What the database has of some months of a type: how many values and revisions, and the newest time of each. It reads all rows of these months.
CREATE FUNCTION pricing.month_marks(wanted_type text, first_month date, last_month date) RETURNS TABLE(month date, versions bigint, mark jsonb) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.month_marks(text,date,date) TO pricing_reader, pricing_worker;

-- All values of a month of a type that the database has: believed ones, until infinity, and revisions; by symbol and time.
CREATE FUNCTION pricing.month_versions(wanted_type text, wanted_month date) RETURNS SETOF pricing.price_revisions LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.month_versions(text,date) TO pricing_reader, pricing_worker;

-- Exported months that are older than their type keeps in the database, and what keeps a month there for now: being_fetched, quarantined (a person has to decide on values), or not_thinned.
CREATE FUNCTION pricing.months_to_move(only_type text DEFAULT NULL::text) RETURNS TABLE(data_type text, month date, versions bigint, keeps text) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.months_to_move(text) TO pricing_reader, pricing_worker;

-- How many TTLs old a price may get at most before its pair is queued, because TTLs are stretched.
CREATE FUNCTION pricing.most_stretched() RETURNS double precision LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.most_stretched() TO pricing_reader, pricing_worker;

-- Of the pairs that are due, at most so many, or of those that a list names, those that most people watch, over all types of their provider: as many as there is room for in its quota. NULL = none.
CREATE FUNCTION pricing.most_wanted(wanted_type text, provider text, room bigint, wanted text[], at_most integer, queued_until timestamp with time zone) RETURNS text[] LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.most_wanted(text,text,bigint,text[],integer,timestamp with time zone) TO pricing_worker;

-- Moves what a provider has said of one day, and now says of another one near it, to that day: where it tells all actions since before the old day, and no longer names it. The old one becomes a revision. Returns how many were moved.
CREATE FUNCTION pricing.move_actions(wanted_class text, from_provider text, from_call bigint, actions jsonb, told_symbols text[], told_since date[]) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.move_actions(text,text,bigint,jsonb,text[],date[]) TO pricing_worker;

-- The clock was set back: alerts began and were told now at the latest, and silences end when they would have.
CREATE FUNCTION pricing.move_alerts(now_ timestamp with time zone, step interval) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.move_alerts(timestamp with time zone,interval) TO pricing_worker;

-- The clock was set back: what was called before counts against limits, quota and breaker for as long as it would have.
CREATE FUNCTION pricing.move_calls(now_ timestamp with time zone, step interval) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.move_calls(timestamp with time zone,interval) TO pricing_worker;

-- The clock was set back: what failed in Dagster failed now at the latest.
CREATE FUNCTION pricing.move_dagster_failures(now_ timestamp with time zone) RETURNS void LANGUAGE sql SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.move_dagster_failures(timestamp with time zone) TO pricing_worker;

-- The clock was set back: who watches is seen now, back-offs end when they would have, and all that is wanted is judged anew.
CREATE FUNCTION pricing.move_demand(now_ timestamp with time zone, step interval) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.move_demand(timestamp with time zone,interval) TO pricing_worker;

-- Judges pairs that due_pairs has locked: the stale ones become due to be fetched, and are returned with their viewers, or wait while TTLs are stretched; the others are due again when they can next be stale.
CREATE FUNCTION pricing.move_due(kind pricing.data_type_registry, now_ timestamp with time zone, pairs pricing.due_pair[], OUT symbols text[], OUT viewers integer[]) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.move_due(pricing.data_type_registry,timestamp with time zone,pricing.due_pair[]) TO pricing_worker;

-- Moves a month: deletes the values that its file has, as the caller has found in the same transaction, except the thirty newest of each pair. Returns how many it has deleted.
CREATE FUNCTION pricing.move_month(wanted_type text, wanted_month date, verified bigint) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.move_month(text,date,bigint) TO pricing_worker;

-- The clock was set back: notifiers gave their last sign of life now at the latest.
CREATE FUNCTION pricing.move_notifiers(now_ timestamp with time zone) RETURNS void LANGUAGE sql SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.move_notifiers(timestamp with time zone) TO pricing_worker;

-- The clock was set back: pauses and leases of operations, and breakers of recipients, end when they would have.
CREATE FUNCTION pricing.move_operations(now_ timestamp with time zone, step interval) RETURNS void LANGUAGE sql SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.move_operations(timestamp with time zone,interval) TO pricing_worker;

-- The clock was set back: drains, schedules, refusals and what is to be asked again go by it, and days that are to come are not covered.
CREATE FUNCTION pricing.move_plans(now_ timestamp with time zone, step interval) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.move_plans(timestamp with time zone,interval) TO pricing_worker;

-- The clock was set back: recipients of price alerts were told now at the latest, so that no pace becomes longer. A row that is locked is left: its alert waits until the clock has caught up.
CREATE FUNCTION pricing.move_price_alerts(now_ timestamp with time zone) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.move_price_alerts(timestamp with time zone) TO pricing_worker;

-- The clock was set back: breakers, outages, pauses and delays of providers end when they would have, and limits are counted anew.
CREATE FUNCTION pricing.move_providers(now_ timestamp with time zone, step interval) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.move_providers(timestamp with time zone,interval) TO pricing_worker;

-- Gives the rows of one symbol to another, but for those of which it has one with the same key already, in any of the tables: these are dropped. Tables that are named together say what is believed and what was before: of one key all is of one symbol, so that no moment has two values. Says how many of each.
CREATE FUNCTION pricing.move_rows(from_tables text[], key text[], of_class text, old_symbol text, new_symbol text) RETURNS TABLE(rows_of text, moved bigint, dropped bigint) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.move_rows(text[],text[],text,text,text) TO pricing_worker;

-- The clock was set back: parts gave their last sign of life now at the latest.
CREATE FUNCTION pricing.move_signs_of_life(now_ timestamp with time zone) RETURNS void LANGUAGE sql SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.move_signs_of_life(timestamp with time zone) TO pricing_worker;

-- The clock was set back: leases and pauses of live tasks end when they would have.
CREATE FUNCTION pricing.move_tasks(now_ timestamp with time zone, step interval) RETURNS void LANGUAGE sql SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.move_tasks(timestamp with time zone,interval) TO pricing_worker;

-- Moves all times that work waits for back by a step.
CREATE FUNCTION pricing.move_times(now_ timestamp with time zone, step interval) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.move_times(timestamp with time zone,interval) TO pricing_worker;

-- A time that was stored before the clock was set back, on the clock as it is now. What does not lie more than a minute ahead stays.
CREATE FUNCTION pricing.moved_back(at timestamp with time zone, now_ timestamp with time zone, step interval) RETURNS timestamp with time zone LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.moved_back(timestamp with time zone,timestamp with time zone,interval) TO pricing_reader, pricing_worker;

-- Days of which a read between two days needs moved values of a pair.
CREATE FUNCTION pricing.moved_spans(wanted_type text, wanted_symbol text, first_day date, last_day date, as_of timestamp with time zone, adjust text) RETURNS TABLE(first_day date, last_day date) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.moved_spans(text,text,date,date,timestamp with time zone,text) TO pricing_reader, pricing_worker;

-- Makes options and categories known that only slots have named so far, corrects names and ages of such categories, and lists options again that have slots.
CREATE FUNCTION pricing.name_by_slots(from_provider text, from_call bigint, now_ timestamp with time zone, slots jsonb, offers jsonb) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.name_by_slots(text,bigint,timestamp with time zone,jsonb,jsonb) TO pricing_worker;

-- What somebody gave as a symbol, in quotes if it can be none.
CREATE FUNCTION pricing.name_for_people(symbol text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.name_for_people(text) TO pricing_reader, pricing_worker;

-- What is asked of each provider at TTLs: of what is watched or held, pairs, units and bytes a minute while markets trade; bytes an hour over the trading hours of the next week, of what is watched and of the rest (held only, or scheduled); whether all sizes are measured.
CREATE FUNCTION pricing.needs() RETURNS TABLE(provider text, pairs bigint, units double precision, bytes double precision, watched_bytes double precision, background_bytes double precision, is_measured boolean) LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path=pg_temp, jit=off;
GRANT EXECUTE ON FUNCTION pricing.needs() TO pricing_reader, pricing_worker;

-- The oldest time that the newest value of a source that keeps up may have had when it was asked. NULL = no session is known.
CREATE FUNCTION pricing.newest_expected(kind pricing.data_type_registry, wanted_symbol text, asked_at timestamp with time zone, ttl_minutes integer) RETURNS timestamp with time zone LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.newest_expected(pricing.data_type_registry,text,timestamp with time zone,integer) TO pricing_reader, pricing_worker;

-- The beginning of the next day in a time zone.
CREATE FUNCTION pricing.next_day(now_ timestamp with time zone, zone text) RETURNS timestamp with time zone LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.next_day(timestamp with time zone,text) TO pricing_reader, pricing_worker;

-- The factor that follows another after so many seconds: it grows twofold in an hour at most, shrinks at once, and stays where it changes by two percent or less.
CREATE FUNCTION pricing.next_factor(before double precision, wanted double precision, elapsed double precision) RETURNS double precision LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.next_factor(double precision,double precision,double precision) TO pricing_reader, pricing_worker;

-- The part number of one more payment of a day.
CREATE FUNCTION pricing.next_part(wanted_class text, wanted_symbol text, day date, wanted_kind text) RETURNS smallint LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.next_part(text,text,date,text) TO pricing_reader, pricing_worker;

-- When the next probe of an open breaker is made, for people: sooner while a viewer waits, by the rule of may_probe_early.
CREATE FUNCTION pricing.next_probe_at(state pricing.provider_state) RETURNS timestamp with time zone LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.next_probe_at(pricing.provider_state) TO pricing_reader, pricing_worker;

-- Locks the quarantined value about which a provider is asked next, or the one that is named; or says in a sentence why it is asked about none.
CREATE FUNCTION pricing.next_to_ask(wanted_provider text, only_value bigint, OUT chosen pricing.quarantined_values, OUT refusal text) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.next_to_ask(text,bigint) TO pricing_worker;

-- When a newer value than the one confirmed then should exist: of quotes a TTL later, but not while the market is closed; of daily values when the next session's value is published. Without a known calendar a TTL later.
CREATE FUNCTION pricing.next_value_at(wanted_type text, wanted_symbol text, confirmed_at timestamp with time zone, ttl interval) RETURNS timestamp with time zone LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.next_value_at(text,text,timestamp with time zone,interval) TO pricing_reader, pricing_worker;

-- Notes the trading days that an answer about these days lacked: they are asked for again by themselves.
CREATE FUNCTION pricing.note_absent_days(wanted_type text, wanted_symbol text, from_day date, to_day date) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_absent_days(text,text,date,date) TO pricing_worker;

-- Notes what rules have seen: rows with rule, subject, severity, says, is_repeated, newest_at, and for how many seconds (lasts) it must last before it is raised. An alert that is not seen for five minutes is over, unless its rule is among those that failed. What another session has locked is left to the next look.
CREATE FUNCTION pricing.note_alerts(failed text[], seen jsonb) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_alerts(text[],jsonb) TO pricing_worker;

-- Notes that the values of these times have changed in the history of a type.
CREATE FUNCTION pricing.note_changes(changed_type text, times timestamp with time zone[]) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_changes(text,timestamp with time zone[]) TO pricing_worker;

-- Notes that a claim has opened calls of a provider, the newest of which is the probe of its breaker, if it is one.
CREATE FUNCTION pricing.note_claim(wanted_provider text, is_probe boolean, newest_call bigint, now_ timestamp with time zone) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_claim(text,boolean,bigint,timestamp with time zone) TO pricing_worker;

-- Notes all that fails now of one kind, such as sensors and schedules: names with reasons. What is not named works again.
CREATE FUNCTION pricing.note_dagster_failures(failing jsonb, of_kind text DEFAULT 'tick'::text) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.note_dagster_failures(jsonb,text) TO pricing_worker;

-- Notes how the newest runs ended: for each name one row with run_id, reason (NULL = it succeeded) and seconds_ago. Waits a second at most for a row that another session has locked.
CREATE FUNCTION pricing.note_dagster_runs(runs jsonb) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.note_dagster_runs(jsonb) TO pricing_worker;

-- Notes how a duty failed and until when it is to wait; not, if another session has its row locked.
CREATE FUNCTION pricing.note_duty(name text, failed_at timestamp with time zone, error text, until timestamp with time zone) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_duty(text,timestamp with time zone,text,timestamp with time zone) TO pricing_worker;

-- Notes that the file of a month has been written.
CREATE FUNCTION pricing.note_export(wanted_type text, wanted_month date, in_file bigint, marked jsonb, bytes bigint, digest text) RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_export(text,date,bigint,jsonb,bigint,text) TO pricing_worker;

-- Stores why the sessions of a calendar could not be worked out, and warns. The known sessions stay, and it is tried again in a week.
CREATE FUNCTION pricing.note_failed_calendar(wanted_calendar text, why text) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_failed_calendar(text,text) TO pricing_worker;

-- Notes that an attempt to reach a recipient has failed. The third failure in a row opens its breaker for a minute, each later probe that fails for twice as long, up to 16 minutes. A row that another session has locked is left as it is.
CREATE FUNCTION pricing.note_failing(of_type text, to_recipient text, message text, is_given_up boolean, opens_breaker boolean, retry_after interval) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_failing(text,text,text,boolean,boolean,interval) TO pricing_worker;

-- The clock was set forward, or the pipeline was off: keeps what cannot be undone from being done for a while.
CREATE FUNCTION pricing.note_gap(now_ timestamp with time zone, known timestamp with time zone) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_gap(timestamp with time zone,timestamp with time zone) TO pricing_worker;

-- Quarantined values of an instrument were judged anew with the actions that were recorded until then. What came by one ratio is asked for once more.
CREATE FUNCTION pricing.note_judged(wanted_class text, wanted_symbol text, until timestamp with time zone) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_judged(text,text,timestamp with time zone) TO pricing_worker;

-- Notes that so much of what is latest of a type has changed.
CREATE FUNCTION pricing.note_latest_changes(changed_type text, changes bigint) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_latest_changes(text,bigint) TO pricing_worker;

-- A part of the pipeline begins its work, or has done it in so many seconds. Waits for nobody: what cannot be noted now is noted the next time.
CREATE FUNCTION pricing.note_life(of_part text, took double precision DEFAULT NULL::double precision) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=500ms;
GRANT EXECUTE ON FUNCTION pricing.note_life(text,double precision) TO pricing_worker;

-- Notes that a notifier has just looked for trouble, or else for messages to send. Waits for nobody: what cannot be noted now is noted by the next look.
CREATE FUNCTION pricing.note_notifier(by_worker text, has_looked boolean) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=500ms;
GRANT EXECUTE ON FUNCTION pricing.note_notifier(text,boolean) TO pricing_worker;

-- Notes the sessions between two days whose bars are quarantined as bars of a closed day, so that workers release them.
CREATE FUNCTION pricing.note_opened_days(wanted_calendar text, from_day date, to_day date, why text) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_opened_days(text,date,date,text) TO pricing_worker;

-- Keeps what another provider said about quarantined values, by symbols, or why it has none; a call that was overtaken by a later one says nothing.
CREATE FUNCTION pricing.note_opinions(from_call bigint, asked_symbols text[], times timestamp with time zone[], amounts numeric[], currencies text[], adjustments text[], failures text[]) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_opinions(bigint,text[],timestamp with time zone[],numeric[],text[],text[],text[]) TO pricing_worker;

-- What a settled call says about an outage: trouble that others may have, too, begins one, or prolongs it; an answer ends it.
CREATE FUNCTION pricing.note_outage(judged bigint) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_outage(bigint) TO pricing_worker;

-- Records what one call said of days that are stored already, and which of the bars it brought are not final or are so now.
CREATE FUNCTION pricing.note_overlap(wanted_type text, from_provider text, from_call bigint, restated jsonb, symbols text[], times timestamp with time zone[]) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_overlap(text,text,bigint,jsonb,text[],timestamp with time zone[]) TO pricing_worker;

-- Notes new latest prices for the alerts that ask for them: those with a later time, or another value, than the price before.
CREATE FUNCTION pricing.note_price_events(given pricing.price_history[], shown text[], were pricing.latest_prices[]) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.note_price_events(pricing.price_history[],text[],pricing.latest_prices[]) TO pricing_worker;

-- Notes what alerts, whose rows are locked, have seen, and which were told.
CREATE FUNCTION pricing.note_price_looks(looks jsonb) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_price_looks(jsonb) TO pricing_worker;

-- Notes which days an answer listed, and, if they begin today where the product is, confirms its pairs and those of every type of slots that asks for no more days.
CREATE FUNCTION pricing.note_slot_windows(wanted_type text, from_provider text, from_call bigint, now_ timestamp with time zone, days jsonb) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_slot_windows(text,text,bigint,timestamp with time zone,jsonb) TO pricing_worker;

-- The pipeline starts, or the clock was set: each part has time to begin, from began_at of the part start on. That time is not given anew by a start within five minutes of the last one (ended_at), unless sensor, drain, staleness check and notifier have all worked since it was given. What the daemon noted before is forgotten.
CREATE FUNCTION pricing.note_start() RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_start() TO pricing_worker;

-- Notes that the clock was set back and by how much times are to be moved, and moves those of the duties, so that they go on.
CREATE FUNCTION pricing.note_step(now_ timestamp with time zone, known timestamp with time zone, step interval) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_step(timestamp with time zone,timestamp with time zone,interval) TO pricing_worker;

-- Compares the streamed pairs with what is stored, and notes in the log, after the given position, what differs from what was last told: each new price, also up to a thousand of a pair that came between two looks, and each change of freshness or of its reason. Returns how many events that made. Its caller has the head locked.
CREATE FUNCTION pricing.note_stream_events(head_position bigint, now_ timestamp with time zone) RETURNS bigint LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.note_stream_events(bigint,timestamp with time zone) TO pricing_worker;

-- Notes by how much the TTLs of a provider are stretched now, by what is known from before and what is needed and can be sustained. Returns whether it is less than before.
CREATE FUNCTION pricing.note_stretch(known pricing.ttl_stretches, wanted_provider text, watched double precision, background double precision, sustained double precision, projected_end timestamp with time zone, now_ timestamp with time zone) RETURNS boolean LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_stretch(pricing.ttl_stretches,text,double precision,double precision,double precision,timestamp with time zone,timestamp with time zone) TO pricing_worker;

-- Notes that a version of the game is for tests only, unless it is what people play.
CREATE FUNCTION pricing.note_test_version(test_version text) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_test_version(text) TO pricing_worker;

-- Says that requests have just come with these tokens.
CREATE FUNCTION pricing.note_token_uses(used bigint[]) RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.note_token_uses(bigint[]) TO pricing_worker;

-- Notes versions, terminals and commodities that only prices have named so far, and locks the terminals until the transaction ends. Returns the time from which what is stored is believed.
CREATE FUNCTION pricing.note_traded(from_call bigint, terminals text[], terminal_names text[], terminal_codes text[], commodity_ids bigint[], names text[], codes text[], slugs text[], versions text[]) RETURNS timestamp with time zone LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_traded(bigint,text[],text[],text[],bigint[],text[],text[],text[],text[]) TO pricing_worker;

-- Notes that the answer of a call came without saying how long it is.
CREATE FUNCTION pricing.note_unannounced(answered bigint) RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_unannounced(bigint) TO pricing_worker;

-- Remembers that pairs were looked at, at most once in ten minutes for each; not, if another session has locked one of them.
CREATE FUNCTION pricing.note_views(data_types text[], symbols text[]) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=100ms;
GRANT EXECUTE ON FUNCTION pricing.note_views(text[],text[]) TO pricing_worker;

-- Notes the calendars of the quotes that are watched at each provider with a limit of a calendar day, so that no claim has to look at all that is wanted. Returns how many have come or gone.
CREATE FUNCTION pricing.note_watched_calendars() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.note_watched_calendars() TO pricing_worker;

-- Gives what has changed since the last time its numbers, one process at a time. Returns of how many types and months there are new versions.
CREATE FUNCTION pricing.number_changes() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.number_changes() TO pricing_worker;

-- For whom a slot is and what it costs, as it was believed at a time; NULL = as it is now.
CREATE FUNCTION pricing.offers_as_of(wanted_slot bigint, as_of timestamp with time zone) RETURNS TABLE(category_key bigint, minimum integer, maximum integer, remaining integer, is_primary boolean, final_price bigint, original_price bigint, discount bigint, currency text, scale smallint) LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.offers_as_of(bigint,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Stops all calls to a provider for 60 s, doubling to 10 min with each failed probe; while a viewer waits, may_probe_early lets the next probe through sooner. Does nothing if somebody else was quicker.
CREATE FUNCTION pricing.open_breaker(wanted_provider text, reason text, failed_probe bigint DEFAULT NULL::bigint) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.open_breaker(text,text,bigint) TO pricing_worker;

-- Logs the next request of a call as open, charged like its first. Only under the lock of the provider_state row.
CREATE FUNCTION pricing.open_page(call pricing.collector_call_log, bytes bigint, now_ timestamp with time zone) RETURNS bigint LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.open_page(pricing.collector_call_log,bigint,timestamp with time zone) TO pricing_worker;

-- Providers that are to be asked about quarantined values now. Values whose pair has no second provider (any more) are asked about no more.
CREATE FUNCTION pricing.opinions_due() RETURNS TABLE(provider text) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.opinions_due() TO pricing_worker;

-- The options of a product, as they were believed at a time; NULL = as they are now.
CREATE FUNCTION pricing.options_as_of(wanted_symbol text, as_of timestamp with time zone) RETURNS TABLE(provider text, option_id text, name text, is_default boolean, is_listed boolean) LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.options_as_of(text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Of tasks whose call has just failed: whether each had failed before, and the provider has answered for the data type since. Then it is their own fault.
CREATE FUNCTION pricing.others_were_answered(ids bigint[]) RETURNS boolean LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.others_were_answered(bigint[]) TO pricing_reader, pricing_worker;

-- When the next unit of a day comes of which more is used than its trading hours have brought, because nobody watched before: what is left is spread over the rest of them. NULL = not before they have brought more.
CREATE FUNCTION pricing.overdrawn_at(hours tstzmultirange, until timestamp with time zone, units bigint, used bigint, last_at timestamp with time zone) RETURNS timestamp with time zone LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.overdrawn_at(tstzmultirange,timestamp with time zone,bigint,bigint,timestamp with time zone) TO pricing_reader, pricing_worker;

-- The spellings at a provider that people have given for symbols of a data type, by symbol; NULL = none.
CREATE FUNCTION pricing.overrides_of(wanted_provider text, wanted_type text, symbols text[]) RETURNS jsonb LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.overrides_of(text,text,text[]) TO pricing_reader, pricing_worker;

-- Those of the products about which the answer to a later call is stored: it knows better.
CREATE FUNCTION pricing.overtaken_products(symbols text[], from_call bigint) RETURNS text[] LANGUAGE sql STABLE SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.overtaken_products(text[],bigint) TO pricing_reader, pricing_worker;

-- The columns of a table that a user has made for a data type, what of a price fills each (NULL = nothing), and whether a row cannot be without it. None for a view.
CREATE FUNCTION pricing.own_columns(kind pricing.data_type_registry) RETURNS TABLE(name text, source text, is_needed boolean) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.own_columns(pricing.data_type_registry) TO pricing_reader, pricing_worker;

-- Makes a pair's own TTL take effect at the next staleness check.
TRIGGER FUNCTION pricing.own_ttl_changed() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- TTLs of single pairs that tables and views of users' own name: of all data types or of some, of all symbols or of one. They go before what latest_answers has.
CREATE FUNCTION pricing.own_ttls(only_types text[] DEFAULT NULL::text[], only_symbol text DEFAULT NULL::text) RETURNS TABLE(data_type text, symbol text, ttl_minutes integer) LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.own_ttls(text[],text) TO pricing_reader, pricing_worker;

-- The name of the view that a data type has unless its row names another table.
CREATE FUNCTION pricing.own_view(contents text, data_type text) RETURNS text LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.own_view(text,text) TO pricing_reader, pricing_worker;

-- When one more unit of a calendar day's limit may be used by a key than were by now, to the minute.
CREATE FUNCTION pricing.paced_at(wanted pricing.provider_limits, key text, units bigint, now_ timestamp with time zone) RETURNS timestamp with time zone LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.paced_at(pricing.provider_limits,text,bigint,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Units a minute that a limit allows while what is watched trades; NULL = it is not known yet when that is.
CREATE FUNCTION pricing.paced_rate(wanted pricing.provider_limits, units bigint, now_ timestamp with time zone) RETURNS double precision LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.paced_rate(pricing.provider_limits,bigint,timestamp with time zone) TO pricing_reader, pricing_worker;

-- The share of a day's units, from 0.1 to 1, that may be used by a time of the day, by the trading hours of the day.
CREATE FUNCTION pricing.paced_share(hours tstzmultirange, since timestamp with time zone, until timestamp with time zone, at timestamp with time zone) RETURNS double precision LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.paced_share(tstzmultirange,timestamp with time zone,timestamp with time zone,timestamp with time zone) TO pricing_reader, pricing_worker;

-- How many of the units of a limit a key may have used by now. Those of a calendar day come with the trading hours of what is watched. Where nothing that is watched trades that day, all are there.
CREATE FUNCTION pricing.paced_units(wanted pricing.provider_limits, key text, units bigint, now_ timestamp with time zone) RETURNS bigint LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.paced_units(pricing.provider_limits,text,bigint,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Why the next request of a call may not be made now, and when to ask again; from until on, that is too late, and its symbols may be asked for from again_at on. NULL = it may be made.
CREATE FUNCTION pricing.page_obstacle(call pricing.collector_call_log, state pricing.provider_state, ids bigint[], first_bytes bigint, page_bytes bigint, most_requests integer, until timestamp with time zone, now_ timestamp with time zone, OUT refusal text, OUT next_at timestamp with time zone, OUT again_at timestamp with time zone) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.page_obstacle(pricing.collector_call_log,pricing.provider_state,bigint[],bigint,bigint,integer,timestamp with time zone,timestamp with time zone) TO pricing_worker;

-- The TTL in minutes that counts for one pair, wherever its own TTL is stored. Queries over many pairs join own_ttls and ask ttl_of.
CREATE FUNCTION pricing.pair_ttl(wanted_type text, wanted_symbol text, is_watched boolean DEFAULT true) RETURNS integer LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.pair_ttl(text,text,boolean) TO pricing_reader, pricing_worker;

-- Those of the pairs that a user has watched or held until now.
CREATE FUNCTION pricing.pairs_of_user(kind text, user_id text, data_types text[], symbols text[]) RETURNS TABLE(data_type text, symbol text) LANGUAGE plpgsql STABLE SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.pairs_of_user(text,text,text[],text[]) TO pricing_reader, pricing_worker;

-- Pairs of a data type that back off because their last task died at a provider of trouble that others may have, too: of what, when it failed first, and when it was asked for last.
CREATE FUNCTION pricing.pairs_waiting_for(wanted_provider text, wanted_type text) RETURNS TABLE(symbol text, failure_kind text, failing_since timestamp with time zone, asked_at timestamp with time zone) LANGUAGE plpgsql STABLE SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.pairs_waiting_for(text,text) TO pricing_reader, pricing_worker;

-- Notes that pairs were passed over because another session has locked them, or because finding those that it has took too long.
CREATE FUNCTION pricing.pass_over(from_source text, data_type text, symbols text[]) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.pass_over(text,text,text[]) TO pricing_worker;

-- How long after so many unfinished calls for the same within a week the next one may make pages: 5 min, doubling to a day. NULL = at once.
CREATE FUNCTION pricing.pause_after(tries bigint) RETURNS interval LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.pause_after(bigint) TO pricing_reader, pricing_worker;

-- Pauses instruments (update_mode manual: nothing of them is fetched, what waits is cancelled) or resumes them (active, update_mode api: what is watched is due at once). Returns those that exist, and which of them changed.
CREATE FUNCTION pricing.pause_instruments(symbols text[], paused boolean, only_class text DEFAULT NULL::text) RETURNS TABLE(asset_class text, symbol text, changed boolean) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.pause_instruments(text[],boolean,text) TO pricing_worker;

-- What is wrong with a payload by the fields of its type, for people; NULL = nothing. A field that may be left out may be null, too.
CREATE FUNCTION pricing.payload_fault(fields jsonb, payload jsonb) RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.payload_fault(jsonb,jsonb) TO pricing_reader, pricing_worker;

-- For quotes the believed bar of the same UTC day, for daily bars the believed quote of it: its time, value, low and high, currency and data type, whether it is the bar, and the ratios of splits of that day and its neighbours. What has none is left out.
CREATE FUNCTION pricing.peers(wanted_type text, symbols text[], first_times timestamp with time zone[], last_times timestamp with time zone[]) RETURNS TABLE(peer_symbol text, peer_at timestamp with time zone, peer_value numeric, peer_low numeric, peer_high numeric, peer_currency text, peer_type text, peer_is_bar boolean, peer_splits double precision[]) LANGUAGE plpgsql STABLE SET search_path=pg_temp, plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.peers(text,text[],timestamp with time zone[],timestamp with time zone[]) TO pricing_reader, pricing_worker;

-- Locks and returns the tasks of a claim, the most urgent first: of a probe one, of every tenth claim a backfill before the others.
CREATE FUNCTION pricing.pick_for_claim(wanted_provider text, allowed pricing.call_allowance, claims bigint, now_ timestamp with time zone) RETURNS pricing.picked_task[] LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.pick_for_claim(text,pricing.call_allowance,bigint,timestamp with time zone) TO pricing_worker;

-- What was picked, and more of what is more urgent than backfills where the provider has a list of latest prices that may serve it: the calls are full, and the last picked task asks for such a price.
CREATE FUNCTION pricing.pick_for_list(wanted_provider text, allowed pricing.call_allowance, picked pricing.picked_task[]) RETURNS pricing.picked_task[] LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.pick_for_list(text,pricing.call_allowance,pricing.picked_task[]) TO pricing_worker;

-- Locks and returns the task by which a provider is probed: of a viewer if there is one, of the data type that failed longest ago, asked for or queued longest ago. If it cannot be called now, the next one in the claim's order that can.
CREATE FUNCTION pricing.pick_probe(wanted_provider text, allowed pricing.call_allowance) RETURNS pricing.picked_task[] LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.pick_probe(text,pricing.call_allowance) TO pricing_worker;

-- Locks and returns the most urgent pending tasks of a provider of which each could be called alone now: its data type can be asked for, its units and bytes fit, its symbol is not in work. Of those after a place in the claim's order (urgency = -priority).
CREATE FUNCTION pricing.pick_tasks(wanted_provider text, allowed pricing.call_allowance, at_most integer, after_urgency integer, after_cadence integer, after_id bigint) RETURNS pricing.picked_task[] LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.pick_tasks(text,pricing.call_allowance,integer,integer,integer,bigint) TO pricing_worker;

-- Places the slots of a product that came without an offset by its zone, from today on; each is a revision. Returns how many were placed anew.
CREATE FUNCTION pricing.place_slots(wanted_symbol text, from_call bigint, now_ timestamp with time zone) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.place_slots(text,bigint,timestamp with time zone) TO pricing_worker;

-- The slots of an answer with their instants, and where they are stored, if they are. Those without an offset are placed by the zone of their product.
CREATE FUNCTION pricing.placed_slots(from_provider text, slots jsonb) RETURNS TABLE(n integer, symbol text, option_id text, slot_id text, local_start timestamp without time zone, local_end timestamp without time zone, utc_offset integer, end_utc_offset integer, bookable_until timestamp with time zone, status text, remaining integer, capacity integer, currency text, scale smallint, local_day date, slot_key bigint, place tid, time_zone text, starts_at timestamp with time zone, ends_at timestamp with time zone) LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.placed_slots(text,jsonb) TO pricing_reader, pricing_worker;

-- Those of the products whose slots cannot be placed: they have no offset from UTC, and the product no time zone.
CREATE FUNCTION pricing.placeless(answered text[], slots jsonb) RETURNS text[] LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.placeless(text[],jsonb) TO pricing_reader, pricing_worker;

-- The asset class that the form of a symbol in capital letters shows: fx, crypto, fund or equity; NULL = none plainly.
CREATE FUNCTION pricing.plain_class(given text) RETURNS text LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.plain_class(text) TO pricing_reader, pricing_worker;

-- Queues one task per instrument and gap that is neither covered nor queued, each within what one call may ask. Without symbols: every instrument of the type, verified or not; a symbol that is none is refused. Counts what was queued already, too, and by reason what was left out: zero tasks = there is nothing else to ask for; history_standing says why.
CREATE FUNCTION pricing.plan_backfill(wanted_type text, from_day date, to_day date, only_symbols text[] DEFAULT NULL::text[], run text DEFAULT NULL::text, OUT backfill_id uuid, OUT tasks integer, OUT left_out jsonb) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.plan_backfill(text,date,date,text[],text) TO pricing_worker;

-- What one user may ask for.
CREATE FUNCTION pricing.present_caps() RETURNS pricing.user_caps LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.present_caps() TO pricing_reader, pricing_worker;

-- The newest known price of a symbol in each data type that has one: exact decimals, source's time, when last confirmed, whether that is within its TTL, whether its provider is still switched on, and since when it is suspiciously the same. Queues what is missing or stale, and waits for nothing.
CREATE FUNCTION pricing.price(wanted_symbol text) RETURNS TABLE(data_type text, symbol text, price numeric, currency text, observed_at timestamp with time zone, fetched_at timestamp with time zone, fresh boolean, provider text, provider_active boolean, frozen_since timestamp with time zone) LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.price(text) TO pricing_client, pricing_reader, pricing_worker;

-- The newest price that another data type knows of the same instrument, with which the first price of a pair is compared; of others nothing.
CREATE FUNCTION pricing.price_of_kin(wanted_class text, besides_type text, wanted_symbol text, is_first boolean) RETURNS TABLE(observed_at timestamp with time zone, amount bigint, scale smallint) LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.price_of_kin(text,text,text,boolean) TO pricing_reader, pricing_worker;

-- Stored values of a pair between two UTC days, both included, oldest first, with their lineage: as they were believed at a time; NULL = as they are now. archived has the moved ones.
CREATE FUNCTION pricing.prices_as_of(wanted_type text, wanted_symbol text, first_day date, last_day date, as_of timestamp with time zone DEFAULT NULL::timestamp with time zone, archived pricing.price_revisions[] DEFAULT NULL::pricing.price_revisions[]) RETURNS TABLE(observed_at timestamp with time zone, amount bigint, open_amount bigint, high_amount bigint, low_amount bigint, scale smallint, currency text, volume numeric, adjustment text, provider text, call_id bigint, recorded_at timestamp with time zone, quality text) LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.prices_as_of(text,text,date,date,timestamp with time zone,pricing.price_revisions[]) TO pricing_reader, pricing_worker;

-- The prices of pairs, or without data types of symbols in every data type of prices, and the pairs without one, as the HTTP API answers them; the places of those that are known; what is to be asked for; and of which pairs no view was noted in the last ten minutes. Without data types only what is watched or held is asked for, and what nobody wants is missing only if its symbol has nothing else. Writes nothing.
CREATE FUNCTION pricing.prices_to_read(symbols text[], data_types text[], OUT prices json, OUT missing json, OUT known bigint[], OUT stale_types text[], OUT stale_symbols text[], OUT unseen_types text[], OUT unseen_symbols text[]) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.prices_to_read(text[],text[]) TO pricing_reader, pricing_worker;

-- Has one task, or one pair, that a viewer waits for asked for ahead of its pause, unless one is about to be: what was asked for longest ago, so that no bad symbol stands for all; by chance among equals, because bad symbols come together.
CREATE FUNCTION pricing.probe_outage(down pricing.outages) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.probe_outage(pricing.outages) TO pricing_worker;

-- How many sessions that queue as much as one does must fit into a quota beside each other, for one not to look what the others do.
CREATE FUNCTION pricing.producers_beside_each_other() RETURNS integer LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.producers_beside_each_other() TO pricing_reader, pricing_worker;

-- The local day of a product at a time, or now: of a product without a known zone the UTC day.
CREATE FUNCTION pricing.product_day(wanted_symbol text, at timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS date LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.product_day(text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Makes pending what has waited long enough.
CREATE FUNCTION pricing.promote_tasks() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.promote_tasks() TO pricing_worker;

-- Why a provider may not be asked the next request of a call now, whatever its limits leave, and when that ends: it or its key was switched off, its breaker has opened, its key pauses, all calls that it may have are in flight, or the delay between two calls is not over. NULL = it may.
CREATE FUNCTION pricing.provider_obstacle(call pricing.collector_call_log, state pricing.provider_state, now_ timestamp with time zone, OUT refusal text, OUT next_at timestamp with time zone) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.provider_obstacle(pricing.collector_call_log,pricing.provider_state,timestamp with time zone) TO pricing_reader, pricing_worker;

-- A provider was switched on or off, or moved, or another quota, limit or capability of it was set: forgets what it and others refused for the pairs routed to it, ends their back-off, and moves what waits to where it belongs now.
TRIGGER FUNCTION pricing.provider_switched() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Forgets what is past its keeping time: completed tasks after 7 to 14 days, dead ones 90 days after they were resolved, calls as prune_calls says, warnings after 30, side effects after 14 (dead ones after 90), alerts 90 days after they were over, new prices that no price alert has looked at after 7, failures of Dagster, drains and samples of freshness after 7; of the quarantine, what prune_quarantine says. Waits for no lock longer than a tenth of a second; what is in use is left for another time.
CREATE FUNCTION pricing.prune() RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.prune() TO pricing_worker;

-- Deletes alerts and silences that have been over for 90 days. Returns how many.
CREATE FUNCTION pricing.prune_alerts(now_ timestamp with time zone) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.prune_alerts(timestamp with time zone) TO pricing_worker;

-- Forgets calls after 35 days, 50,000 of each provider at a time; of those that were answered past_calls keeps who made them. Returns how many. Waits for no lock longer than a tenth of a second.
CREATE FUNCTION pricing.prune_calls() RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp, lock_timeout=100ms, enable_seqscan=off, enable_hashjoin=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.prune_calls() TO pricing_worker;

-- Forgets failures of Dagster after 7 days: nobody may ever start that run again. Returns how many. A tick that still fails is noted anew.
CREATE FUNCTION pricing.prune_dagster_failures(now_ timestamp with time zone) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.prune_dagster_failures(timestamp with time zone) TO pricing_worker;

-- Deletes tasks that finished more than 14 days ago from a leaf in which others may be finishing in this moment.
CREATE FUNCTION pricing.prune_leaf(leaf text, now_ timestamp with time zone) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.prune_leaf(text,timestamp with time zone) TO pricing_worker;

-- Forgets notifiers that have been silent for a day.
CREATE FUNCTION pricing.prune_notifiers(now_ timestamp with time zone) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.prune_notifiers(timestamp with time zone) TO pricing_worker;

-- Deletes operations that were completed more than 14 days ago, and dead ones and failures of recipients after 90. Returns how many operations.
CREATE FUNCTION pricing.prune_operations(now_ timestamp with time zone) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.prune_operations(timestamp with time zone) TO pricing_worker;

-- Deletes new prices that no alert has looked at for seven days, because no notifier runs, and those of removed alerts. Returns how many.
CREATE FUNCTION pricing.prune_price_events(now_ timestamp with time zone) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.prune_price_events(timestamp with time zone) TO pricing_worker;

-- Forgets values 90 days after a person decided on them and they last came, quarantined ones 400 days after they last came, all but the newest 1,000 of a quoted pair and provider, and bodies after 90 days, or beyond the newest 100 MB of a provider. Returns how many values.
CREATE FUNCTION pricing.prune_quarantine() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.prune_quarantine() TO pricing_worker;

-- Deletes warnings and counts of them that are older than 30 days.
CREATE FUNCTION pricing.prune_warnings(now_ timestamp with time zone) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.prune_warnings(timestamp with time zone) TO pricing_worker;

-- How long after the close the daily value of a pair should be there: as learned, else as is usual.
CREATE FUNCTION pricing.publish_lag(wanted_type text, wanted_symbol text, fetcher text) RETURNS interval LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.publish_lag(text,text,text) TO pricing_reader, pricing_worker;

-- Has pairs that no quota has room for looked at again in a minute. They stay owed since they were.
CREATE FUNCTION pricing.put_off(wanted_type text, symbols text[]) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.put_off(text,text[]) TO pricing_worker;

-- Keeps values of one call that are not believed, and the call's body when one of them is new; the same value again only counts, also where a person has rejected it. Returns how many are new.
CREATE FUNCTION pricing.quarantine(wanted_type text, from_provider text, from_call bigint, doubted jsonb, packed bytea, body_size integer, status_code integer) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.quarantine(text,text,bigint,jsonb,bytea,integer,integer) TO pricing_worker;

-- Takes back what a recognized change of face value has released, when a person removes it: the values leave the history, stay as revisions, and are quarantined again. Returns how many.
CREATE FUNCTION pricing.quarantine_face_value(change pricing.corporate_actions) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.quarantine_face_value(pricing.corporate_actions) TO pricing_worker;

-- Live tasks of a provider without those of backfills, counted up to a limit.
CREATE FUNCTION pricing.queue_depth(wanted_provider text, at_most integer) RETURNS integer LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.queue_depth(text,integer) TO pricing_reader, pricing_worker;

-- Queues a side effect of a type, whether the type is active or not. Refuses a payload unlike its type or longer than 64 kB, and a time more than a year ahead.
CREATE FUNCTION pricing.queue_operation(kind pricing.operation_types, payload jsonb, due_at timestamp with time zone, priority integer) RETURNS bigint LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.queue_operation(pricing.operation_types,jsonb,timestamp with time zone,integer) TO pricing_worker;

-- The bytes that may still be queued for a provider: what its quota leaves work of this priority, less what waits of this priority or a higher one. NULL = so many more bytes fit.
CREATE FUNCTION pricing.queue_room(wanted_provider text, least_priority integer, more_bytes bigint) RETURNS bigint LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.queue_room(text,integer,bigint) TO pricing_worker;

-- When the quiet hours end in which a recipient is now; NULL = it is not in quiet hours.
CREATE FUNCTION pricing.quiet_end(who pricing.recipients, now_ timestamp with time zone) RETURNS timestamp with time zone LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.quiet_end(pricing.recipients,timestamp with time zone) TO pricing_reader, pricing_worker;

-- How much of a quota work of this priority may use: backfill stops at 75 %, scheduled at 90 %, the rest at 95 %.
CREATE FUNCTION pricing.quota_for(quota bigint, priority integer) RETURNS bigint LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.quota_for(bigint,integer) TO pricing_reader, pricing_worker;

-- When the quota of each active provider, or of some, will be used up to the step of backfills, of schedules and of viewers, if nothing is stretched: at what is wanted at TTLs within the limits (basis wanted), or at what came in the last day and week, if that is more (measured). outlook: ends, lasts (it does not end) or unknown (less than a day and not all sizes are measured). Rates are in bytes an hour; sustained_bytes is the most at which nothing stops.
CREATE FUNCTION pricing.quota_forecasts(only_providers text[] DEFAULT NULL::text[]) RETURNS TABLE(provider text, quota_bytes bigint, used_bytes bigint, day_bytes bigint, week_bytes bigint, pairs bigint, watched_bytes double precision, background_bytes double precision, basis text, bytes_an_hour double precision, outlook text, backfills_stop_at timestamp with time zone, schedules_stop_at timestamp with time zone, ends_at timestamp with time zone, sustained_bytes double precision) LANGUAGE plpgsql STABLE SET search_path=pg_temp, jit=off;
GRANT EXECUTE ON FUNCTION pricing.quota_forecasts(text[]) TO pricing_reader, pricing_worker;

-- How old the newest quote of a source that keeps up may be while a market of this calendar is open.
CREATE FUNCTION pricing.quote_delay(calendar text) RETURNS interval LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.quote_delay(text) TO pricing_reader, pricing_worker;

-- Gives live tasks a higher priority; what has it or a higher one is left alone, and so is what another session keeps locked.
CREATE FUNCTION pricing.raise_priorities(ids bigint[], priorities integer[]) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off, enable_nestloop=off, jit=off, lock_timeout=100ms;
GRANT EXECUTE ON FUNCTION pricing.raise_priorities(bigint[],integer[]) TO pricing_worker;

-- Gives waiting tasks the priority of their viewers, when it has grown.
CREATE FUNCTION pricing.raise_tasks(data_types text[], symbols text[]) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.raise_tasks(text[],text[]) TO pricing_worker;

-- The stored exchange rate of a day, as believed at a time (NULL = now): units of the second currency for one of the first, from either spelling of the pair. NULL = none is stored.
CREATE FUNCTION pricing.rate_of_day(from_currency text, to_currency text, day date, as_of timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS numeric LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.rate_of_day(text,text,date,timestamp with time zone) TO pricing_reader, pricing_worker;

-- When used bytes reach a step of a quota if so many come in an hour, to the hour; NULL = never, for after 721 hours all that is used now has left.
CREATE FUNCTION pricing.reached_at(leaving bigint[], used bigint, per_hour double precision, step bigint, now_ timestamp with time zone) RETURNS timestamp with time zone LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.reached_at(bigint[],bigint,double precision,bigint,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Values of a pair from a file, as revisions; one that is believed has no end. NULL = NULL.
CREATE FUNCTION pricing.read_archived(wanted_type text, wanted_symbol text, found jsonb) RETURNS pricing.price_revisions[] LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.read_archived(text,text,jsonb) TO pricing_reader, pricing_worker;

-- The two sides of what is plainly a pair, in capital letters: EUR/USD, EURUSD, EUR.USD, EURUSD=X, BTC-USD; NULL = it is none.
CREATE FUNCTION pricing.read_pair(given text, OUT base text, OUT quote text) RETURNS record LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.read_pair(text) TO pricing_reader, pricing_worker;

-- The whole of a read of pairs, or of symbols in only_type, or in every data type, as JSON: prices that are stored, pairs without one, and why what is not fresh is old. Asks for what is missing or stale (without a data type, of what is watched or held): for a user within the user's caps, for nobody (NULL) as a worker's read does. NULL where only_type is no active data type of prices.
CREATE FUNCTION pricing.read_prices(symbols text[], data_types text[], only_type text, user_id text) RETURNS text LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.read_prices(text[],text[],text,text) TO pricing_worker;

-- The one spelling of a share, or of what trades like one, from any that our table of exchanges can tell: VOD.L, VOD:LSE, VOD LN and LON:VOD are VOD:XLON, BRK-B and BRK/B are BRK.B. Expects capital letters. Says what is doubtful about it, or why there is no such symbol, and which may be meant.
CREATE FUNCTION pricing.read_share(given text, OUT symbol text, OUT doubt text, OUT fault text, OUT proposal text) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.read_share(text) TO pricing_reader, pricing_worker;

-- The one spelling of a symbol of an asset class, and what is doubtful about it; or why there is none, and which spelling, or which of another class, may be meant. Knows no instruments: what is known already is judge_symbols' to find.
CREATE FUNCTION pricing.read_symbol(asset_class text, given text, OUT symbol text, OUT doubt text, OUT fault text, OUT other_class text, OUT proposal text) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.read_symbol(text,text) TO pricing_reader, pricing_worker;

-- Warnings of the last time, by source and subject: how often at least, when last, and what was said then. Those that were rolled back are among them if a program of ours heard them.
CREATE FUNCTION pricing.recent_warnings(back interval) RETURNS TABLE(source text, subject text, times bigint, last_at timestamp with time zone, sqlstate text, message text) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.recent_warnings(interval) TO pricing_reader, pricing_worker;

-- Makes due what changed behind our back: rows of tables of one's own, TTLs of single pairs, stretches that have become less; and withdraws tasks of paused instruments. Returns how many pairs are due earlier.
CREATE FUNCTION pricing.reconcile_demand() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.reconcile_demand() TO pricing_worker;

-- Takes back operations whose worker has given no sign of life for five minutes, except those that the caller names as its own: they are due at once, or dead after their last attempt. Returns how many.
CREATE FUNCTION pricing.recover_operations(known bigint[] DEFAULT '{}'::bigint[]) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.recover_operations(bigint[]) TO pricing_worker;

-- Takes tasks back from workers whose lease ran out; dead when no attempt is left. Returns how many were stuck.
CREATE FUNCTION pricing.recover_tasks() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.recover_tasks() TO pricing_worker;

-- Asks again for bars that were stored before their day was over, up to six times with growing pauses, for trading days that an answer lacked, and for the whole history of what was restated by one ratio: once, and once more when a split becomes known. What cannot be asked for now is kept. Returns how many were asked for.
CREATE FUNCTION pricing.refetch_history() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.refetch_history() TO pricing_worker;

-- Plans a backfill of all days of a pair since the first one, whatever is covered. Returns 1, or 0 with a warning.
CREATE FUNCTION pricing.refetch_whole(wanted_type text, wanted_symbol text, from_day date) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.refetch_whole(text,text,date) TO pricing_worker;

-- What is to be asked for once more, and is neither queued nor planned: bars and absent days that are due, and histories, with the provider that would be asked, the bytes that it would take, and why that cannot be now: retired, no_history, paused or no_provider.
CREATE FUNCTION pricing.refetches() RETURNS TABLE(data_type text, symbol text, from_day date, to_day date, is_history boolean, since timestamp with time zone, provider text, est_bytes bigint, waits_for text) LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.refetches() TO pricing_reader, pricing_worker;

-- Wanted symbols that a provider refuses as unknown or left out of the plan, by data type: how many, how many of them had a price before, one of them and why. is_fault: the provider is to blame, and not the symbols. Of those wanted that had a price it refuses several that were priced within one day: all, or at least five and more than 5 %. Or it refuses at least five, and no symbol of the type ever had a price.
CREATE FUNCTION pricing.refused_symbols() RETURNS TABLE(provider text, data_type text, refused bigint, vanished bigint, is_fault boolean, example text, reason text) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.refused_symbols() TO pricing_reader, pricing_worker;

-- A worker says which keys it holds; new ones get a row. Returns how many are new.
CREATE FUNCTION pricing.register_keys(wanted_provider text, names text[]) RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.register_keys(text,text[]) TO pricing_worker;

-- Counts the change, so that the sensor reloads the code location.
TRIGGER FUNCTION pricing.registry_changed() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Closes holdings; returns how many were open. What nobody else wants is no longer fetched.
CREATE FUNCTION pricing.release(user_id text, data_types text[], symbols text[]) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=2s;
GRANT EXECUTE ON FUNCTION pricing.release(text,text[],text[]) TO pricing_worker;

-- Says that the user of this session no longer holds these pairs. Returns how many holdings ended.
CREATE FUNCTION pricing.release(data_types text[], symbols text[]) RETURNS integer LANGUAGE sql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.release(text[],text[]) TO pricing_client, pricing_worker;

-- Removes the split or spin-off of a day, or its payments of one kind (and of one currency, if it is given), whoever reported them. They stay as revisions, and the provider is not believed if it reports the same again. Values that a recognized change of face value has released are quarantined again. Returns removed or unknown.
CREATE FUNCTION pricing.remove_action(wanted_class text, wanted_symbol text, day date, wanted_kind text, by_whom text, why text DEFAULT NULL::text, of_currency text DEFAULT NULL::text) RETURNS text LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.remove_action(text,text,date,text,text,text,text) TO pricing_worker;

-- Forgets a stored key and makes its name inactive; false when none is stored.
CREATE FUNCTION pricing.remove_credential(wanted_provider text, wanted_key text) RETURNS boolean LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.remove_credential(text,text) TO pricing_worker;

-- Takes instruments out: ends what is watched and held of them, cancels what waits, settles what has failed, and removes those without history; others are retired, so that nothing is fetched of them and their history stays. Says which, and how many users that concerns.
CREATE FUNCTION pricing.remove_instruments(symbols text[], only_class text DEFAULT NULL::text) RETURNS TABLE(asset_class text, symbol text, outcome text, viewers bigint, holders bigint) LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.remove_instruments(text[],text) TO pricing_worker;

-- Makes pairs due again, and owed since they were, that wait for a task that is not there: cancelled or pruned by hand, ended while another session had the pair locked, or never queued because another session queues the same. Of all pairs, or of those that the lists name.
CREATE FUNCTION pricing.repair_demand(data_types text[] DEFAULT NULL::text[], symbols text[] DEFAULT NULL::text[]) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.repair_demand(text[],text[]) TO pricing_worker;

-- How long after recipients were told of an alert that lasts they are told again.
CREATE FUNCTION pricing.repeat_after(severity text) RETURNS interval LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.repeat_after(text) TO pricing_reader, pricing_worker;

-- Asks workers to serve pairs as soon as this transaction is committed. Locks nothing that anybody waits for.
CREATE FUNCTION pricing.request_pairs(wanted_kind text, data_types text[], symbols text[], user_id text DEFAULT NULL::text) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.request_pairs(text,text[],text[],text) TO pricing_worker;

-- What a worker's read asks for: queues those of the pairs that are missing or stale, as for one viewer. Instruments that are unknown or paused, and pairs that back off, are passed over. Returns the number queued.
CREATE FUNCTION pricing.request_prices(data_types text[], symbols text[]) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.request_prices(text[],text[]) TO pricing_worker;

-- What a client's read asks for: what request_prices does, as a request, within the caps of the user. What goes past them is not asked for, and a notice says so; the read itself is answered.
CREATE FUNCTION pricing.request_reads(user_id text, data_types text[], symbols text[]) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.request_reads(text,text[],text[]) TO pricing_worker;

-- What note_views does, as a request.
CREATE FUNCTION pricing.request_views(data_types text[], symbols text[]) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.request_views(text[],text[]) TO pricing_worker;

-- Refuses a read of days with moved values if the caller did not bring these.
CREATE FUNCTION pricing.require_archived(wanted_type text, wanted_symbol text, first_day date, last_day date, archived pricing.price_revisions[]) RETURNS void LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.require_archived(text,text,date,date,pricing.price_revisions[]) TO pricing_reader, pricing_worker;

-- Refuses a total return between two days if payments between them cannot be counted, and lists them.
CREATE FUNCTION pricing.require_payments(wanted_symbol text, first_day date, last_day date, lacks jsonb) RETURNS void LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.require_payments(text,date,date,jsonb) TO pricing_reader, pricing_worker;

-- Refuses a read replica, before anything half-works there.
CREATE FUNCTION pricing.require_primary() RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.require_primary() TO pricing_worker;

-- What tells when a pair should have values: since when its type keeps history, its fetcher and its calendar. Refuses, in a sentence, pairs of which that is not known.
CREATE FUNCTION pricing.require_sessions(wanted_type text, wanted_symbol text, OUT history_from date, OUT fetcher text, OUT calendar text) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.require_sessions(text,text) TO pricing_reader, pricing_worker;

-- Gives waiting tasks of a data type to the provider that is to be asked now, and notes in their history who was passed over and why. Returns how many it has touched.
CREATE FUNCTION pricing.reroute_tasks(wanted_type text, symbols text[] DEFAULT NULL::text[]) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.reroute_tasks(text,text[]) TO pricing_worker;

-- Gives what waits to the provider that is to be asked now. Returns how many tasks it has touched.
CREATE FUNCTION pricing.reroute_waiting() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.reroute_waiting() TO pricing_worker;

-- Puts the same secret, sealed anew, in the place of found_version; false when the row is no longer that one.
CREATE FUNCTION pricing.reseal_credential(wanted_provider text, wanted_key text, found_version bigint, version bigint, master_key_id text, nonce_of_key bytea, key_wrapped bytea, nonce_of_secret bytea, secret_sealed bytea) RETURNS boolean LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.reseal_credential(text,text,bigint,bigint,text,bytea,bytea,bytea,bytea) TO pricing_worker;

-- Notes which dead tasks are settled: cancelled ones, those of removed instruments, those whose work has succeeded since, and those whose pair has failed alike since. Returns how many.
CREATE FUNCTION pricing.resolve_tasks() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.resolve_tasks() TO pricing_worker;

-- Cancels the tasks of data types that were retired or deleted: nobody fetches them any more. What another session has locked is left for the next time. Returns how many.
CREATE FUNCTION pricing.retire_tasks() RETURNS integer LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.retire_tasks() TO pricing_worker;

-- Queues dead operations again, with all their attempts, their errors and the same idempotency key; their recipients' breakers are closed. Returns their ids.
CREATE FUNCTION pricing.retry_operations(ids bigint[]) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.retry_operations(bigint[]) TO pricing_worker;

-- Makes dead tasks pending again by hand, with all their attempts and by today's route, and ends their pairs' back-off. Says of each: retried, live_already (live_id is the task that does the same work), not_dead, retired, removed or paused (its instrument), misconfigured, unknown.
CREATE FUNCTION pricing.retry_tasks(wanted bigint[]) RETURNS TABLE(task_id bigint, outcome text, live_id bigint) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.retry_tasks(bigint[]) TO pricing_worker;

-- Returns operations to the queue whose worker is stopped before they end: due at once, and the attempt does not count. Returns the ids that the claim still owned; what another session has locked is left to its lease.
CREATE FUNCTION pricing.return_operations(ids bigint[], token uuid) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.return_operations(bigint[],uuid) TO pricing_worker;

-- Returns claimed tasks to the queue, without costing an attempt: at once (a deadlock, or a worker that stops) or after a pause (because of a lock). A task that another session has locked returns when its lease ends. Returns how many.
CREATE FUNCTION pricing.return_tasks(ids bigint[], token uuid, kind text DEFAULT 'worker_stopped'::text, message text DEFAULT 'returned by its worker'::text, pause interval DEFAULT NULL::interval) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.return_tasks(bigint[],uuid,text,text,interval) TO pricing_worker;

-- The provider answers again: what has failed since the outage began, and waits, is due now. Returns how many pairs and tasks.
CREATE FUNCTION pricing.return_waiting(over pricing.outages) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.return_waiting(pricing.outages) TO pricing_worker;

-- What merge_bars does where bars of the same days are stored: compares, keeps the old value of what changed, and adds what is new.
CREATE FUNCTION pricing.revise_bars(wanted_type text, from_provider text, from_call bigint, wanted_symbol text, named_currency text, basis text, times timestamp with time zone[], amounts bigint[], open_amounts bigint[], high_amounts bigint[], low_amounts bigint[], scales smallint[], volumes numeric[], texts text[], qualities text[], OUT added bigint, OUT revised bigint) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_nestloop=off;
GRANT EXECUTE ON FUNCTION pricing.revise_bars(text,text,bigint,text,text,text,timestamp with time zone[],bigint[],bigint[],bigint[],bigint[],smallint[],numeric[],text[],text[]) TO pricing_worker;

-- Puts dead tasks, which the caller has locked, back into the queue by today's route; of several of the same work the last. Returns which; NULL = none.
CREATE FUNCTION pricing.revive_tasks(wanted bigint[]) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.revive_tasks(bigint[]) TO pricing_worker;

-- How many pairs the reads of a user may still have fetched now, beside so many that wait to be.
CREATE FUNCTION pricing.room_for_reads(user_id text, waiting bigint) RETURNS bigint LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.room_for_reads(text,bigint) TO pricing_reader, pricing_worker;

-- The provider to be asked for a pair: by the symbol's own rules, then the type's, in their order, but first one that is not in trouble and has not refused the pair. With why those before it were passed over, as entries of a task's history. NULL = no active provider serves it.
CREATE FUNCTION pricing.route(wanted_type text, wanted_symbol text, OUT provider text, OUT passed_over jsonb) RETURNS record LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.route(text,text) TO pricing_reader, pricing_worker;

-- Another provider may serve what failed: ends the back-off of the pairs that the rule is about, and moves their waiting tasks.
TRIGGER FUNCTION pricing.route_changed() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Pairs of active data types, each once, with the provider that is to be asked (NULL = none), the bytes of the answer, and the task that is live for the pair already, if that is looked for.
CREATE FUNCTION pricing.routed_pairs(data_types text[], symbols text[], priorities integer[], window_starts date[], window_ends date[], are_looked_for boolean) RETURNS TABLE(data_type text, symbol text, window_start date, window_end date, priority integer, cadence_minutes integer, provider text, est_bytes bigint, live_id bigint) LANGUAGE plpgsql STABLE SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.routed_pairs(text[],text[],integer[],date[],date[],boolean) TO pricing_reader, pricing_worker;

-- Runs the periodic duties that are overdue, one process at a time; one that failed is tried again after its own interval, at most a minute, and one that waited for a lock of another session ends the round. Returns the names of those that succeeded.
CREATE FUNCTION pricing.run_duties() RETURNS text[] LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.run_duties() TO pricing_worker;

-- The local days that an answer lists whole, without those that it lists with a slot whose id cannot be read, and those that the answer to a later call has listed already: it knows better.
CREATE FUNCTION pricing.said_days(from_call bigint, days jsonb) RETURNS TABLE(symbol text, day date) LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.said_days(bigint,jsonb) TO pricing_reader, pricing_worker;

-- What the listed slots of an answer offer to whom; a slot that offers nothing has a row without a category.
CREATE FUNCTION pricing.said_offers(from_provider text, from_call bigint, days jsonb, slots jsonb, offers jsonb) RETURNS TABLE(slot_key bigint, category_key bigint, minimum integer, maximum integer, remaining integer, is_primary boolean, final_price bigint, original_price bigint, has_price boolean, currency text, scale smallint) LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.said_offers(text,bigint,jsonb,jsonb,jsonb) TO pricing_reader, pricing_worker;

-- The slots of an answer, numbered; offsets from UTC are in seconds.
CREATE FUNCTION pricing.said_slots(slots jsonb) RETURNS TABLE(n integer, symbol text, option_id text, slot_id text, local_start timestamp without time zone, local_end timestamp without time zone, utc_offset integer, end_utc_offset integer, bookable_until timestamp with time zone, status text, remaining integer, capacity integer, currency text, scale smallint) LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.said_slots(jsonb) TO pricing_reader, pricing_worker;

-- Whether two sources report the same action of a day, however they spell it.
CREATE FUNCTION pricing.same_action(one pricing.corporate_actions, other pricing.corporate_actions) RETURNS boolean LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.same_action(pricing.corporate_actions,pricing.corporate_actions) TO pricing_reader, pricing_worker;

-- Compares by value: 12.30 is 12.300.
CREATE FUNCTION pricing.same_amount(a bigint, a_scale smallint, b bigint, b_scale smallint) RETURNS boolean LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.same_amount(bigint,smallint,bigint,smallint) TO pricing_reader, pricing_worker;

-- Whether a value comes as it is stored, with all its parts.
CREATE FUNCTION pricing.same_bar(old pricing.price_history, amount bigint, open_amount bigint, high_amount bigint, low_amount bigint, scale smallint, volume numeric, currency text, quality text) RETURNS boolean LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.same_bar(pricing.price_history,bigint,bigint,bigint,bigint,smallint,numeric,text,text) TO pricing_reader, pricing_worker;

-- Whether a part of a bar comes as it is stored; one that was dropped from the answer says nothing against it.
CREATE FUNCTION pricing.same_part(old bigint, old_scale smallint, given bigint, given_scale smallint, quality text) RETURNS boolean LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.same_part(bigint,smallint,bigint,smallint,text) TO pricing_reader, pricing_worker;

-- Notes how each watched type serves its viewers now. Returns of how many types.
CREATE FUNCTION pricing.sample_freshness() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.sample_freshness() TO pricing_worker;

-- Has a claim leave units to the most urgent task that has waited for a minute and needs more than are left: nothing after it is picked, in the second and third of each five minutes that it waits. Only if it fits as soon as calls are a minute old. Otherwise each unit that comes free would go to cheaper work.
CREATE FUNCTION pricing.save_units(wanted_provider text, allowed pricing.call_allowance, now_ timestamp with time zone) RETURNS pricing.call_allowance LANGUAGE plpgsql STABLE SET search_path=pg_temp, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.save_units(text,pricing.call_allowance,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Why a pair is doubtful or refused, as a sentence; NULL if it is neither.
CREATE FUNCTION pricing.say_answer(answer pricing.pair_answer) RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.say_answer(pricing.pair_answer) TO pricing_reader, pricing_worker;

-- A proposal of judge_symbols as a question; NULL = there is none.
CREATE FUNCTION pricing.say_meant(proposal text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.say_meant(text) TO pricing_reader, pricing_worker;

-- Slots that passed before a type had this schedule, or while it was retired, are not owed.
TRIGGER FUNCTION pricing.schedule_changed() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- For each provider that may be asked for a data type: how many of its instruments a schedule may queue now, 500 at most, while 1,000 tasks of that provider are live or its quota is used none; why none, and whether that is trouble.
CREATE FUNCTION pricing.schedule_rooms(wanted_type text) RETURNS TABLE(provider text, room integer, reason text, is_trouble boolean) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.schedule_rooms(text) TO pricing_worker;

-- How many instruments of a data type a schedule may queue now at one provider at most, and why some of its providers, or all, can take none.
CREATE FUNCTION pricing.schedule_stop(wanted_type text, OUT room integer, OUT reason text, OUT is_trouble boolean) RETURNS record LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.schedule_stop(text) TO pricing_worker;

-- Who is asked about a value besides the provider that sent it: the next of the pair's routes that serves it. NULL = nobody.
CREATE FUNCTION pricing.second_provider(wanted_type text, wanted_symbol text, besides text) RETURNS text LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.second_provider(text,text,text) TO pricing_reader, pricing_worker;

-- Does what a request of this kind asks for: adds demand, judges and queues at once what is missing or stale, notes views. What another session has locked is passed over. Returns the number queued.
CREATE FUNCTION pricing.serve_pairs(kind text, data_types text[], symbols text[]) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.serve_pairs(text,text[],text[]) TO pricing_worker;

-- Queues those of the pairs whose prices are missing or stale. The reader counts as a viewer until it is served: what finds no room in a quota stays due. Returns the number queued.
CREATE FUNCTION pricing.serve_reads(data_types text[], symbols text[]) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.serve_reads(text[],text[]) TO pricing_worker;

-- Serves what clients have asked for, at most so many requests (what walks ask for is served by walk_requested), and reads within the caps of their user; those that another session serves are passed over. Returns the number queued.
CREATE FUNCTION pricing.serve_requests(at_most integer DEFAULT 5000) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.serve_requests(integer) TO pricing_worker;

-- Serves requests one by one, so that those that fail are warned of and the others are served. Returns the number queued.
CREATE FUNCTION pricing.serve_singly(kind text, data_types text[], symbols text[]) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.serve_singly(text,text[],text[]) TO pricing_worker;

-- Sessions between two days that had ended at a time, and of which a pair has no final value.
CREATE FUNCTION pricing.sessions_to_ask(wanted_type text, wanted_symbol text, wanted_calendar text, from_day date, to_day date, at timestamp with time zone) RETURNS SETOF date LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.sessions_to_ask(text,text,text,date,date,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Says what a key's own plan allows, for limits of its provider by name.
CREATE FUNCTION pricing.set_key_limits(wanted_provider text, wanted_key text, names text[], units integer[]) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.set_key_limits(text,text,text[],integer[]) TO pricing_worker;

-- Sets the time zone of a product by hand, which counts instead of what its provider says; NULL takes it back. Places its coming slots anew that have no offset. Returns how many, NULL if there is no such product.
CREATE FUNCTION pricing.set_product_zone(wanted_symbol text, zone text) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.set_product_zone(text,text) TO pricing_worker;

-- Closes a call and books its wire bytes, once; false when it was closed before. A page of it that is still open is closed with it.
CREATE FUNCTION pricing.settle_call(settled bigint, result text, status integer, bytes bigint, message text DEFAULT NULL::text, kind text DEFAULT NULL::text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp, lock_timeout=500ms;
GRANT EXECUTE ON FUNCTION pricing.settle_call(bigint,text,integer,bigint,text,text) TO pricing_worker;

-- Closes the pages of a call that are still open, booking their estimate: none outlasts its call.
CREATE FUNCTION pricing.settle_pages(of_call bigint) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.settle_pages(bigint) TO pricing_worker;

-- All that becomes of a call for latest prices of which every one is believed: stored, its tasks finished, the call settled. Returns how many values were added and revised; no row, with nothing changed, when the claim has lost any task.
CREATE FUNCTION pricing.settle_prices(ids bigint[], token uuid, http_status integer, wire_bytes bigint, stated_left integer, shown_units integer, shown_seconds integer, wanted_type text, from_provider text, from_call bigint, symbols text[], times timestamp with time zone[], amounts bigint[], open_amounts bigint[], high_amounts bigint[], low_amounts bigint[], scales smallint[], currencies text[], volumes numeric[], texts text[], adjustments text[]) RETURNS TABLE(added bigint, revised bigint) LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, lock_timeout=500ms;
GRANT EXECUTE ON FUNCTION pricing.settle_prices(bigint[],uuid,integer,bigint,integer,integer,integer,text,text,bigint,text[],timestamp with time zone[],bigint[],bigint[],bigint[],bigint[],smallint[],text[],numeric[],text[],text[]) TO pricing_worker;

-- Closes a call that never left, because no connection to its provider could be made, and gives its units back; false when it was closed before. For the breaker it is a fault.
CREATE FUNCTION pricing.settle_unsent(unsent bigint, message text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp, lock_timeout=500ms;
GRANT EXECUTE ON FUNCTION pricing.settle_unsent(bigint,text) TO pricing_worker;

-- Keeps the bases of some histories as they are until the transaction ends; many may do so at a time.
CREATE FUNCTION pricing.share_basis(wanted_type text, symbols text[]) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.share_basis(text,text[]) TO pricing_worker;

-- Of these pairs with so many viewers, those for which so many bytes of room suffice, when all that is due of a provider, of any type, is served by the number of its viewers. NULL = none.
CREATE FUNCTION pricing.share_of(wanted_provider text, room bigint, wanted_type text, symbols text[], viewers integer[]) RETURNS text[] LANGUAGE sql SET search_path=pg_temp, jit=off;
GRANT EXECUTE ON FUNCTION pricing.share_of(text,bigint,text,text[],integer[]) TO pricing_worker;

-- What stops each provider that several of these pairs have their price from, or wait for. So it is asked once, and not for each pair.
CREATE FUNCTION pricing.shared_stops(data_types text[], symbols text[], providers text[]) RETURNS pricing.provider_stop[] LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.shared_stops(text[],text[],text[]) TO pricing_reader, pricing_worker;

-- A word that people look something up by, as it is; an error for one of more than 200 characters, which would be compared with every row.
CREATE FUNCTION pricing.short_word(word text) RETURNS text LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.short_word(text) TO pricing_reader, pricing_worker;

-- Makes the newest of each symbol's values its latest price, where none that is newer is stored, and notes it for price alerts. Returns the symbols where it did.
CREATE FUNCTION pricing.show_latest(given pricing.price_history[], confirmed_at timestamp with time zone) RETURNS text[] LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.show_latest(pricing.price_history[],timestamp with time zone) TO pricing_worker;

-- Makes the newest of released values the latest price of its pair, if it is the newest of all. Returns its id; NULL = it is not.
CREATE FUNCTION pricing.show_released(wanted_type text, wanted_symbol text, ids bigint[]) RETURNS bigint LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.show_released(text,text,bigint[]) TO pricing_worker;

-- Units that a limit allows to a key, as its provider has shown within a day. NULL = it has shown no lower limit than the written one, or one that pays for no call.
CREATE FUNCTION pricing.shown_units(wanted pricing.provider_limits, key text, now_ timestamp with time zone) RETURNS integer LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.shown_units(pricing.provider_limits,text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- A row while no notifier has looked for trouble, or for messages to send, for two minutes: the older of its last signs, and what that means in a sentence.
CREATE FUNCTION pricing.silent_notifier(started timestamp with time zone) RETURNS TABLE(since timestamp with time zone, says text) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.silent_notifier(timestamp with time zone) TO pricing_reader, pricing_worker;

-- Local days of a product: when the slots of each were last confirmed, whether that is within the TTL that the product has in the data type that asks for it most often, and which type that is; NULL = none does, as of the past.
CREATE FUNCTION pricing.slot_days(wanted_symbol text, first_day date, last_day date) RETURNS TABLE(day date, fetched_at timestamp with time zone, fresh boolean, data_type text) LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.slot_days(text,date,date) TO pricing_reader, pricing_worker;

-- The data types that a reader of a product's slots up to a day is to ask for: that of the product, and the widest one of slots that is stale and no wider than needed.
CREATE FUNCTION pricing.slot_types_to_request(wanted_symbol text, last_day date) RETURNS text[] LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.slot_types_to_request(text,date) TO pricing_reader, pricing_worker;

-- The slots of a product on local days, as they were believed at a time; NULL = as they are now.
CREATE FUNCTION pricing.slots_as_of(wanted_symbol text, first_day date, last_day date, as_of timestamp with time zone) RETURNS SETOF pricing.slots LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.slots_as_of(text,date,date,timestamp with time zone) TO pricing_reader, pricing_worker;

-- The slots of a product on local days, a row for each category (one without, if a slot has none): exact prices, places, and whether so many people can be booked. With a currency, only what has prices in it.
CREATE FUNCTION pricing.slots_to_read(wanted_symbol text, first_day date, last_day date, pax integer, only_currency text, only_sellable boolean, as_of timestamp with time zone) RETURNS TABLE(local_day date, option_id text, option_name text, slot_id text, local_start timestamp without time zone, local_end timestamp without time zone, starts_at timestamp with time zone, ends_at timestamp with time zone, utc_offset interval, time_zone text, status text, remaining integer, capacity integer, sellable boolean, category_id text, category text, is_primary boolean, minimum integer, maximum integer, pax_remaining integer, final numeric, original numeric, discount numeric, currency text, provider text, recorded_at timestamp with time zone) LANGUAGE plpgsql STABLE SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, enable_mergejoin=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.slots_to_read(text,date,date,integer,text,boolean,timestamp with time zone) TO pricing_reader, pricing_worker;

-- A name as it stands in an address: Medical Supplies is medical-supplies.
CREATE FUNCTION pricing.slug_of(name text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.slug_of(text) TO pricing_reader, pricing_worker;

-- One trial is enough for an instrument that nobody has ever priced: when a provider does not know it for these claimed tasks, its waiting tasks of other data types and windows there go the same way without a call.
CREATE FUNCTION pricing.spare_calls(ids bigint[], entry jsonb, message text) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.spare_calls(bigint[],jsonb,text) TO pricing_worker;

-- A symbol as its instruments are spelled, in whatever class they are.
CREATE FUNCTION pricing.spelled(symbol text) RETURNS text LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.spelled(text) TO pricing_reader, pricing_worker;

-- Symbols as judge_symbols spells them; those that it refuses as they were given.
CREATE FUNCTION pricing.spelled(data_types text[], symbols text[]) RETURNS text[] LANGUAGE plpgsql STABLE SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.spelled(text[],text[]) TO pricing_reader, pricing_worker;

-- Symbols as their instruments are spelled, of any class, each once; with data types, each pair once.
CREATE FUNCTION pricing.spelled_once(INOUT symbols text[], INOUT data_types text[]) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.spelled_once(text[],text[]) TO pricing_reader, pricing_worker;

-- A provider may know under the new spelling what it did not know: ends the back-off of the instrument's pairs, as a change of their route does.
TRIGGER FUNCTION pricing.spelling_changed() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- All spellings of a share, from its one spelling, that our tables can write: with each name of its exchange, and each sign before its class.
CREATE FUNCTION pricing.spellings_of(symbol text) RETURNS text[] LANGUAGE plpgsql STABLE SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.spellings_of(text) TO pricing_reader, pricing_worker;

-- How much of a user's allowance its reads of the last minute have used up, and so many pairs beside them. In a minute they have as many fetched as the user may begin to watch, and no more than it may watch at once.
CREATE FUNCTION pricing.spent_by_reads(user_id text, pairs bigint) RETURNS interval LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.spent_by_reads(text,bigint) TO pricing_reader, pricing_worker;

-- When a pair that was confirmed at a time is due again: by the calendar of its instrument where its type follows calendars, else by the TTL.
CREATE FUNCTION pricing.stale_at(kind pricing.data_type_registry, symbol text, stamp timestamp with time zone, ttl_minutes integer) RETURNS timestamp with time zone LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.stale_at(pricing.data_type_registry,text,timestamp with time zone,integer) TO pricing_reader, pricing_worker;

-- Since when a pair is stale; NULL = it is fresh. A pair that nobody ever answered for is stale since the given time.
CREATE FUNCTION pricing.stale_since(wanted_type text, wanted_symbol text, at_least timestamp with time zone) RETURNS timestamp with time zone LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.stale_since(text,text,timestamp with time zone) TO pricing_worker;

-- Providers that may be called, where what people watch has been due for ten minutes, and nothing was completed in that time: how many tasks wait there, and since when.
CREATE FUNCTION pricing.stalled_providers(started timestamp with time zone DEFAULT '-infinity'::timestamp with time zone) RETURNS TABLE(provider text, tasks bigint, since timestamp with time zone) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.stalled_providers(timestamp with time zone) TO pricing_reader, pricing_worker;

-- Midnight UTC of a day.
CREATE FUNCTION pricing.start_of(day date) RETURNS timestamp with time zone LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.start_of(date) TO pricing_reader, pricing_worker;

-- Why a provider may not be asked now, whatever the work: provider_off, no_client, breaker_open, key_refused, throttled or rate_limited, with a sentence and when that ends; and how much of its quota is used.
CREATE FUNCTION pricing.stop_of(wanted_provider text) RETURNS pricing.provider_stop LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.stop_of(text) TO pricing_reader, pricing_worker;

-- Cancels what waits for paused instruments, or for one. Returns how many.
CREATE FUNCTION pricing.stop_paused(only_class text DEFAULT NULL::text, only_symbol text DEFAULT NULL::text) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.stop_paused(text,text) TO pricing_worker;

-- Cancels those of the tasks that wait again and whose instrument was paused while they were in work. Returns how many.
CREATE FUNCTION pricing.stop_paused_tasks(ids bigint[]) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.stop_paused_tasks(bigint[]) TO pricing_worker;

-- Cancels those of the tasks that still wait, and keeps them visible with the reason. Returns how many.
CREATE FUNCTION pricing.stop_tasks(ids bigint[], kind text, message text) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.stop_tasks(bigint[],text,text) TO pricing_worker;

-- Providers that are routed to, and are not called now or do not answer, whatever their rate limits allow: for which data types, and why.
CREATE FUNCTION pricing.stopped_providers() RETURNS TABLE(provider text, data_types text[], says text) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.stopped_providers() TO pricing_reader, pricing_worker;

-- Stores a sealed key, new or in the place of another, and makes its name usable: active, without pauses. True when it replaced one.
CREATE FUNCTION pricing.store_credential(wanted_provider text, wanted_key text, version bigint, master_key_id text, nonce_of_key bytea, key_wrapped bytea, nonce_of_secret bytea, secret_sealed bytea) RETURNS boolean LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.store_credential(text,text,bigint,text,bytea,bytea,bytea,bytea) TO pricing_worker;

-- Stores the days of a calendar on which the second source disagrees, in place of those stored before, without those that bars or corrections decide. Returns how many are left.
CREATE FUNCTION pricing.store_disagreements(wanted_calendar text, days date[], are_open boolean[], reasons text[]) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.store_disagreements(text,date[],boolean[],text[]) TO pricing_worker;

-- Writes the sessions of FX (Monday to Friday, each from 17:00 in New York on the day before) or of 24/7 (every day of UTC). Returns how many.
CREATE FUNCTION pricing.store_own_sessions(wanted_calendar text, from_day date, to_day date) RETURNS integer LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.store_own_sessions(text,date,date) TO pricing_worker;

-- Stores quarantined values in the history exactly as they were sent, with the provider and call that brought each; of several of one time the one that came last.
CREATE FUNCTION pricing.store_released(ids bigint[]) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.store_released(bigint[]) TO pricing_worker;

-- Moves values of one call into history, and the old ones of what changed into price_revisions. Returns when, the symbol of each row that was added and revised, and whether another session has changed some of them in the same moment, so that they are to be stored once more.
CREATE FUNCTION pricing.store_rows(wanted_type text, from_call bigint, given pricing.price_history[], OUT stored_at timestamp with time zone, OUT added text[], OUT revised text[], OUT is_overtaken boolean) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.store_rows(text,bigint,pricing.price_history[]) TO pricing_worker;

-- Writes the sessions of a calendar between two days, in place of those that were known, with the corrections of people and of this version; warns when they end within a fortnight. Returns how many.
CREATE FUNCTION pricing.store_sessions(wanted_calendar text, from_day date, to_day date, days date[], opens timestamp with time zone[], closes timestamp with time zone[]) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.store_sessions(text,date,date,date[],timestamp with time zone[],timestamp with time zone[]) TO pricing_worker;

-- The streamed pairs whose stored price differs from what was last told, or whose judgement is due: what was told, what is stored, the TTL, whether staleness follows from it alone, whether the source is old, whether the pair is new, its last judgement is still good, and its price is new.
CREATE FUNCTION pricing.streams_to_judge(now_ timestamp with time zone, at_most interval) RETURNS TABLE(told pricing.streamed_pairs, price pricing.latest_prices, ttl interval, is_by_ttl boolean, is_source_old boolean, is_first boolean, is_judged boolean, is_new_price boolean) LANGUAGE plpgsql STABLE SET search_path=pg_temp, plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.streams_to_judge(timestamp with time zone,interval) TO pricing_reader, pricing_worker;

-- By how much TTLs are to be stretched, if watched pairs and what is in the background need so many bytes an hour at their TTLs, and so many in all can be sustained.
CREATE FUNCTION pricing.stretch_factors(watched double precision, background double precision, sustained double precision, OUT watched_factor double precision, OUT background_factor double precision) RETURNS record LANGUAGE plpgsql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.stretch_factors(double precision,double precision,double precision) TO pricing_reader, pricing_worker;

-- By how much the TTL of a pair is stretched now, first while it is watched, then while it is not: the least of the providers of its route that are not in trouble and have not refused it. Without a symbol, of one without rules of its own.
CREATE FUNCTION pricing.stretch_of(wanted_type text, wanted_symbol text, now_ timestamp with time zone) RETURNS double precision[] LANGUAGE plpgsql STABLE SET search_path=pg_temp, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.stretch_of(text,text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Works out by how much TTLs are stretched, of providers that have used a twentieth of their quota. Where it is less than before, what waits because of it is judged anew at once: returns how many pairs.
CREATE FUNCTION pricing.stretch_ttls() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.stretch_ttls() TO pricing_worker;

-- By how much TTLs are stretched at a moment. What has not been looked at for long stretches nothing: the hard steps remain.
CREATE FUNCTION pricing.stretches_in_force(now_ timestamp with time zone) RETURNS SETOF pricing.ttl_stretches LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.stretches_in_force(timestamp with time zone) TO pricing_reader, pricing_worker;

-- The most bytes an hour at which used bytes are never past a target at the end of any of the next 30 days.
CREATE FUNCTION pricing.sustained_rate(leaving bigint[], used bigint, target bigint) RETURNS double precision LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.sustained_rate(bigint[],bigint,bigint) TO pricing_reader, pricing_worker;

-- The instruments of some data types that somebody means who names symbols for them, each as it is spelled. A symbol that no one of the types has is refused, in words that say the way out.
CREATE FUNCTION pricing.symbols_by_type(data_types text[], symbols text[]) RETURNS TABLE(data_type text, symbol text) LANGUAGE plpgsql STABLE SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.symbols_by_type(text[],text[]) TO pricing_reader, pricing_worker;

-- Takes the new prices of so many alerts, in the order in which they were stored, at most 200 of one; of alerts that another session has locked, nothing. Rows of one alert come together, with its state, and with the splits since it last looked. An alert of every price gets the newest of each symbol, of all, once its pace allows it. An alert that has not caught up gets the latest price, too, and has caught up when all transactions have ended that were open at its first look.
CREATE FUNCTION pricing.take_price_events(most integer) RETURNS TABLE(price_alert_id bigint, recipient text, user_id text, is_told boolean, data_type text, condition text, threshold numeric, hysteresis numeric, hysteresis_in text, told_at timestamp with time zone, is_beyond boolean, seen_at timestamp with time zone, reference numeric, reference_at timestamp with time zone, split_days date[], split_new numeric[], split_old numeric[], symbol text, price numeric, currency text, observed_at timestamp with time zone, provider text, call_id bigint) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.take_price_events(integer) TO pricing_worker;

-- The bytes of room that are to be shared out (share_of), for a producer that wants to queue so many; NULL = sixteen such producers fit beside each other. One session at a time, until its transaction ends, may fill the room; each other has a sixteenth of it. So the queue goes past the room only while several do not commit, each by a sixteenth.
CREATE FUNCTION pricing.take_room(wanted_provider text, least_priority integer, more_bytes bigint) RETURNS bigint LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.take_room(text,integer,bigint) TO pricing_worker;

-- Alerts whose pair has become stale for longer than they allow, which it notes as told, with why it is so; those whose pair is fresh again may be told once more.
CREATE FUNCTION pricing.take_stale_pairs() RETURNS TABLE(price_alert_id bigint, recipient text, user_id text, data_type text, symbol text, lasts interval, since timestamp with time zone, sentence text, price numeric, currency text, observed_at timestamp with time zone, provider text, call_id bigint) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.take_stale_pairs() TO pricing_worker;

-- Takes the turn at some work until the transaction ends; false, without waiting, when another session has it. Clients and readers cannot take it.
CREATE FUNCTION pricing.take_turn(wanted text) RETURNS boolean LANGUAGE plpgsql SET search_path=pg_temp, lock_timeout=100ms;
GRANT EXECUTE ON FUNCTION pricing.take_turn(text) TO pricing_worker;

-- Symbols of no instrument under which some provider is asked for another one: two would get one answer. Warns of them.
CREATE FUNCTION pricing.taken_symbols(data_types text[], symbols text[]) RETURNS text[] LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.taken_symbols(text[],text[]) TO pricing_worker;

-- Whether so many people can be booked in a category: its units, their bounds and what is left; NULL = no bound.
CREATE FUNCTION pricing.takes(pax integer, pax_count integer, minimum integer, maximum integer, remaining integer) RETURNS boolean LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.takes(integer,integer,integer,integer,integer) TO pricing_reader, pricing_worker;

-- Seconds up to which task_times.buckets count. More may be added at the end only.
CREATE FUNCTION pricing.task_time_bounds() RETURNS double precision[] LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.task_time_bounds() TO pricing_reader, pricing_worker;

-- While viewers wait for a provider in an outage, has it asked about once a minute, ahead of the pauses of tasks and pairs; once it has answered, brings back at once all that waits for it. Returns how many pairs and tasks came back.
CREATE FUNCTION pricing.tend_outages() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.tend_outages() TO pricing_worker;

-- What a terminal (its symbol, code or name) trades, as pricing.commodity tells it: the version that people play first, then by name.
CREATE FUNCTION pricing.terminal(wanted text, as_of timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS TABLE(commodity text, slug text, quality text, buy numeric, sell numeric, stock bigint, demand bigint, game_version text, is_of_other_version boolean, modified_at timestamp with time zone, recorded_at timestamp with time zone, provider text) LANGUAGE sql STABLE SECURITY DEFINER SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.terminal(text,timestamp with time zone) TO pricing_client, pricing_reader, pricing_worker;

-- The symbol of the terminal of this symbol, code or name; of several the one that is listed. NULL if there is none.
CREATE FUNCTION pricing.terminal_of(word text) RETURNS text LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.terminal_of(text) TO pricing_reader, pricing_worker;

-- Thins quotes older than their type's thin_after_days to the last one of every thin_to_minutes, about so many rows at most in one go. Returns how many it has deleted.
CREATE FUNCTION pricing.thin_history(at_most integer DEFAULT 20000) RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.thin_history(integer) TO pricing_worker;

-- Stops all workers' calls with a key for as long as the provider asked (1 h at most), or for a growing pause. Returns how long until one of the provider's keys is free, or this one if none is active.
CREATE FUNCTION pricing.throttle(wanted_provider text, wanted_key text, pause interval, reason text) RETURNS interval LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.throttle(text,text,interval,text) TO pricing_worker;

-- What is traded, of one commodity or at one terminal (NULL = of all), as it is believed now (NULL) or was at a time: the version that people play, or played then, first; of one commodity then the cheapest and the dearest. Terminals and commodities are named as now, and a terminal is open or closed as now.
CREATE FUNCTION pricing.traded_prices(only_commodity bigint, only_terminal text, as_of timestamp with time zone) RETURNS TABLE(commodity text, slug text, symbol text, terminal text, code text, system text, place text, is_available boolean, quality text, buy numeric, sell numeric, stock bigint, demand bigint, game_version text, is_of_other_version boolean, modified_at timestamp with time zone, recorded_at timestamp with time zone, provider text) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.traded_prices(bigint,text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- How much each market trades in the week from then on: sessions an hour, and the share of the time in which new prices come.
CREATE FUNCTION pricing.trading_ahead(now_ timestamp with time zone) RETURNS TABLE(calendar text, sessions numeric, share numeric) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.trading_ahead(timestamp with time zone) TO pricing_reader, pricing_worker;

-- When, between two times, the quotes that are watched at a provider can change: the sessions of their calendars, or always where those are not known.
CREATE FUNCTION pricing.trading_hours(wanted_provider text, since timestamp with time zone, until timestamp with time zone) RETURNS tstzmultirange LANGUAGE sql STABLE SET search_path=pg_temp, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.trading_hours(text,timestamp with time zone,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Makes a new TTL or staleness function take effect at the next staleness check, and starts what is wanted of a revived type.
TRIGGER FUNCTION pricing.ttl_changed() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- The TTL in minutes that counts for a pair. While it is watched: its own TTL if that is positive, else the TTL of its type. While it is only held: the background TTL of its type.
CREATE FUNCTION pricing.ttl_of(kind pricing.data_type_registry, own_minutes integer, is_watched boolean DEFAULT true) RETURNS integer LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.ttl_of(pricing.data_type_registry,integer,boolean) TO pricing_reader, pricing_worker;

-- The active data type with the freshest prices of an asset class; NULL = there is none.
CREATE FUNCTION pricing.type_for(asset_class text) RETURNS text LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.type_for(text) TO pricing_reader, pricing_worker;

-- Cancels what is queued of a data type that is retired or deleted.
TRIGGER FUNCTION pricing.type_retired() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_temp;

-- Other data types that hold the same of the same instruments, perhaps of other providers; NULL = none.
CREATE FUNCTION pricing.types_alike(wanted_type text) RETURNS text[] LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.types_alike(text) TO pricing_reader, pricing_worker;

-- Of quotes the data types that hold daily bars of the same instruments, and the other way round; NULL = none.
CREATE FUNCTION pricing.types_of_a_day(wanted_type text) RETURNS text[] LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.types_of_a_day(text) TO pricing_reader, pricing_worker;

-- Removes the corrections of a day by a person or from evidence, so that the library and shipped corrections count again. Returns their origins; NULL = there was none.
CREATE FUNCTION pricing.undo_correction(wanted_calendar text, on_day date) RETURNS text[] LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.undo_correction(text,date) TO pricing_worker;

-- The last decimal of an amount with so many decimals, 0 to 18.
CREATE FUNCTION pricing.unit_of(scale smallint) RETURNS numeric LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.unit_of(smallint) TO pricing_reader, pricing_worker;

-- Units a minute that the limits of a provider's keys allow while what is watched trades; NULL = no limit, or none that is known.
CREATE FUNCTION pricing.units_a_minute(wanted_provider text, now_ timestamp with time zone) RETURNS double precision LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.units_a_minute(text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Units that a provider may be charged now, over all its active keys that are not blocked.
CREATE FUNCTION pricing.units_available(wanted_provider text, now_ timestamp with time zone) RETURNS bigint LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.units_available(text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Units that a key may be charged in the window of a limit: as written, or as shown by the provider, if that is less.
CREATE FUNCTION pricing.units_in_force(wanted pricing.provider_limits, key text, now_ timestamp with time zone) RETURNS integer LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.units_in_force(pricing.provider_limits,text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- The units that a call may be charged now (units_left), and at most until a time (units) if nobody else uses any, with the limit that allows so few and when that is renewed.
CREATE FUNCTION pricing.units_within_reach(call pricing.collector_call_log, until timestamp with time zone, now_ timestamp with time zone, OUT name text, OUT units bigint, OUT units_left bigint, OUT renewed_at timestamp with time zone) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.units_within_reach(pricing.collector_call_log,timestamp with time zone,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Units that a limit allows to a key, as a person has written.
CREATE FUNCTION pricing.units_written(wanted pricing.provider_limits, key text) RETURNS integer LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.units_written(pricing.provider_limits,text) TO pricing_reader, pricing_worker;

-- Notes which products their provider does not have, or no longer, as one call has said; the answer to a later call knows better. Products of other providers stay.
CREATE FUNCTION pricing.unlist_products(refused text[], from_provider text, from_call bigint) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.unlist_products(text[],text,bigint) TO pricing_worker;

-- Those of the pairs that are on their way, and for which no reader is known to wait: their tasks would be cancelled when who watches them leaves.
CREATE FUNCTION pricing.unnoted_reads(INOUT data_types text[], INOUT symbols text[]) RETURNS record LANGUAGE sql STABLE SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.unnoted_reads(text[],text[]) TO pricing_reader, pricing_worker;

-- Those of the pairs of which no view was noted in the last ten minutes.
CREATE FUNCTION pricing.unnoted_views(data_types text[], symbols text[]) RETURNS TABLE(data_type text, symbol text) LANGUAGE sql SET search_path=pg_temp, enable_seqscan=off;
GRANT EXECUTE ON FUNCTION pricing.unnoted_views(text[],text[]) TO pricing_worker;

-- How many pairs are due and not queued, where the quota of their provider has no room for all that are.
CREATE FUNCTION pricing.unqueued_pairs() RETURNS TABLE(provider text, data_type text, pairs bigint) LANGUAGE plpgsql STABLE SET search_path=pg_temp, jit=off;
GRANT EXECUTE ON FUNCTION pricing.unqueued_pairs() TO pricing_reader, pricing_worker;

-- Removes subscriptions on leave, and notes the views: at_once, or by a request. Returns how many there were.
CREATE FUNCTION pricing.unsubscribe(user_id text, data_types text[], symbols text[], at_once boolean DEFAULT true) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off, plan_cache_mode=force_generic_plan;
GRANT EXECUTE ON FUNCTION pricing.unsubscribe(text,text[],text[],boolean) TO pricing_worker;

-- Says that the user of this session has left these pairs. Returns how many subscriptions ended.
CREATE FUNCTION pricing.unsubscribe(data_types text[], symbols text[]) RETURNS integer LANGUAGE sql SECURITY DEFINER SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.unsubscribe(text[],text[]) TO pricing_client, pricing_worker;

-- Steps of prices as traded, between two days, that look like a split of which nobody has told: their days, and so many new shares for old ones. Adjusted histories jump there until a person enters it, or knows that it was a true move.
CREATE FUNCTION pricing.untold_splits(wanted_type text, wanted_symbol text, first_day date, last_day date) RETURNS TABLE(ex_on date, new_shares integer, old_shares integer) LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.untold_splits(text,text,date,date) TO pricing_reader, pricing_worker;

-- The most requests and units that a call for these symbols, or for some of them, has used within a week without being done; how many there were that made pages (tries), and from when on the next may (again_at); and the units that this one has used itself (own).
CREATE FUNCTION pricing.used_in_vain(call pricing.collector_call_log, now_ timestamp with time zone, OUT requests bigint, OUT units bigint, OUT tries bigint, OUT again_at timestamp with time zone, OUT own bigint) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.used_in_vain(pricing.collector_call_log,timestamp with time zone) TO pricing_reader, pricing_worker;

-- The units that a key has used since a time, and when the last of them was.
CREATE FUNCTION pricing.used_since(wanted_provider text, key text, since timestamp with time zone, OUT units bigint, OUT last_at timestamp with time zone) RETURNS record LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.used_since(text,text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- When a calendar would open and close on a day, by the hours of a full session near it.
CREATE FUNCTION pricing.usual_hours(wanted_calendar text, on_day date, OUT opens_at timestamp with time zone, OUT closes_at timestamp with time zone) RETURNS record LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.usual_hours(text,date) TO pricing_reader, pricing_worker;

-- How long after the close a daily value is looked for while nothing was learned. Funds are valued in the evening.
CREATE FUNCTION pricing.usual_publish_lag(fetcher text) RETURNS interval LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.usual_publish_lag(text) TO pricing_reader, pricing_worker;

-- The first day of the UTC month of a time.
CREATE FUNCTION pricing.utc_month(at timestamp with time zone) RETURNS date LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.utc_month(timestamp with time zone) TO pricing_reader, pricing_worker;

-- What other providers say of the same times: of the pair itself, or of the instrument in a data type like this one.
CREATE FUNCTION pricing.values_of_others(wanted_type text, besides text, alike text[], fetcher text, wanted_class text, wanted_symbol text, first_at timestamp with time zone, last_at timestamp with time zone, wanted_currency text, are_own_of_others boolean) RETURNS TABLE(times timestamp with time zone[], given numeric[], providers text[]) LANGUAGE sql STABLE;
GRANT EXECUTE ON FUNCTION pricing.values_of_others(text,text,text[],text,text,text,timestamp with time zone,timestamp with time zone,text,boolean) TO pricing_reader, pricing_worker;

-- What everybody is told of a pair. stale: it is to be fetched for a viewer. unjudged: its staleness function fails, and it was fetched within its TTL. source_old: it was confirmed, and its source has nothing as new as it should. fresh: none of these.
CREATE FUNCTION pricing.verdict_on(wanted_type text, wanted_symbol text) RETURNS text LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.verdict_on(text,text) TO pricing_reader, pricing_worker;

-- Notes that a provider had values of these symbols, and in which currency; of what another session has locked, the next answer does.
CREATE FUNCTION pricing.verify_instruments(wanted_type text, symbols text[], currencies text[]) RETURNS void LANGUAGE sql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.verify_instruments(text,text[],text[]) TO pricing_worker;

-- The numbers of a version of a game, by which versions have an order: 4.10 is after 4.9.
CREATE FUNCTION pricing.version_numbers(version text) RETURNS integer[] LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.version_numbers(text) TO pricing_reader, pricing_worker;

-- How many histories and bars wait to be asked for once more, and what for: what refetches says, or room in the quota of their provider.
CREATE FUNCTION pricing.waiting_refetches() RETURNS TABLE(provider text, data_type text, waits_for text, histories bigint, bars bigint) LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.waiting_refetches() TO pricing_reader, pricing_worker;

-- For each scheduled type whose providers, or some of them, can take no more: the slot served last, how many instruments it has not been able to queue yet, and why.
CREATE FUNCTION pricing.waiting_schedules() RETURNS TABLE(data_type text, slot timestamp with time zone, instruments bigint, reason text) LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.waiting_schedules() TO pricing_worker;

-- Wakes whoever listens for work once this transaction is committed. A hint, which must not cost the work: it is left out while the server's queue of notifications is half full, or another session writes into it.
CREATE FUNCTION pricing.wake_workers() RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.wake_workers() TO pricing_worker;

-- Queues what walks could not queue when they came by it, at most 500 a time, as far as its providers can take it; the rest waits a minute. Returns the number queued.
CREATE FUNCTION pricing.walk_requested() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp, enable_seqscan=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.walk_requested() TO pricing_worker;

-- Queues the next 500 instruments of a walk, by key, or fewer: no more than one provider of the type can take. While none can take any, the walk stays where it is. Returns the number queued.
CREATE FUNCTION pricing.walk_schedule(wanted_type text) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.walk_schedule(text) TO pricing_worker;

-- Goes on with every walk that is under way, by one chunk. Returns the number queued.
CREATE FUNCTION pricing.walk_schedules() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.walk_schedules() TO pricing_worker;

-- Whether the walk of a scheduled type has not come to a symbol yet, or could not queue it when it did.
CREATE FUNCTION pricing.walk_waits(wanted_type text, wanted_symbol text) RETURNS boolean LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.walk_waits(text,text) TO pricing_reader, pricing_worker;

-- How many drains have work: from 1 to the most that are allowed. A drain makes ten calls at once, so one is wanted for every ten calls that would be in flight through the next 15 s. How many these are follows, for each provider, from the tasks that wait for it, the units that its limits leave now, the averages of its last hundred calls, and max_in_flight.
CREATE FUNCTION pricing.wanted_drains(most integer) RETURNS integer LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.wanted_drains(integer) TO pricing_reader, pricing_worker;

-- Since when there is something for drains to do: what is watched, queued or asked for, and with_background what is held or scheduled, too. NULL = there is nothing. What is older than ten minutes need not be the oldest. If it lies ahead of the clock, which was set back, since the start.
CREATE FUNCTION pricing.wanted_since(now_ timestamp with time zone, started timestamp with time zone, with_background boolean) RETURNS timestamp with time zone LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.wanted_since(timestamp with time zone,timestamp with time zone,boolean) TO pricing_reader, pricing_worker;

-- Notes what went wrong without stopping anything else: in the table, and as a notice. The program that hears it counts it even if the transaction is rolled back; the server's log does not have it.
CREATE FUNCTION pricing.warn(from_source text, about text, message text, state text) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.warn(text,text,text,text) TO pricing_worker;

-- Warns of prices whose source sends ever newer times with the same value. They are not refused: one answer cannot tell a quiet market from a frozen source. Returns how many.
CREATE FUNCTION pricing.warn_frozen() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.warn_frozen() TO pricing_worker;

-- Warns, once an hour, of rows in a table of one's own whose TTL is not positive. Such a row counts as one without a TTL of its own.
CREATE FUNCTION pricing.warn_ttls(wanted_type text, own_table text, symbol_column text) RETURNS void LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.warn_ttls(text,text,text) TO pricing_worker;

-- Notes which providers are in such trouble that others should be asked. Returns for how many that has changed; reroute_waiting moves what waits.
CREATE FUNCTION pricing.watch_providers() RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.watch_providers() TO pricing_worker;

-- The calendars of the quotes that are watched at a provider: as noted within two minutes, or, where none is noted, as they are.
CREATE FUNCTION pricing.watched_calendars_of(wanted_provider text) RETURNS SETOF text LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.watched_calendars_of(text) TO pricing_reader, pricing_worker;

-- Each watched pair of the active data types, or of those that are named, with its state: paused; late, owed a price for more than 30 s (where there is one, for more than a quarter of the TTL if that is longer, unless it is outdated), whatever keeps it away; due, owed for less; refused, its task died of a fault of the symbol and it backs off; source_old, confirmed in time by a source that has nothing as new as it should; fresh. Outdated is what was too old already when somebody came to look at it, and is not fetched since.
CREATE FUNCTION pricing.watched_pairs(only_types text[] DEFAULT NULL::text[]) RETURNS TABLE(data_type text, symbol text, state text, owed_since timestamp with time zone, fetched_at timestamp with time zone, is_outdated boolean) LANGUAGE plpgsql STABLE SET search_path=pg_temp, enable_nestloop=off;
GRANT EXECUTE ON FUNCTION pricing.watched_pairs(text[]) TO pricing_reader, pricing_worker;

-- Makes days sessions if two instruments of a calendar, or two providers, have quarantined bars of them. Returns how many days.
CREATE FUNCTION pricing.weigh_closed_days(wanted_type text, symbols text[]) RETURNS integer LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.weigh_closed_days(text,text[]) TO pricing_worker;

-- Why a pair's price is as old as it is, as the HTTP API answers it.
CREATE FUNCTION pricing.why_as_json(data_type text, symbol text, stops pricing.provider_stop[]) RETURNS json LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_as_json(text,text,pricing.provider_stop[]) TO pricing_reader, pricing_worker;

-- Why a pair backs off, by its last dead task: a fault of its symbol, or trouble, of which it is late; a state in one word and a sentence.
CREATE FUNCTION pricing.why_backing_off(pair pricing.demand, dead pricing.api_call_queue_dead, stops pricing.provider_stop[], OUT state text, OUT sentence text) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_backing_off(pricing.demand,pricing.api_call_queue_dead,pricing.provider_stop[]) TO pricing_reader, pricing_worker;

-- Why a pair that counts as fresh is as old as it is: by its TTL, its market, its source or its staleness function.
CREATE FUNCTION pricing.why_judged_fresh(kind pricing.data_type_registry, thing pricing.instruments, price pricing.latest_prices, pair pricing.demand, fetched_at timestamp with time zone, ttl interval, verdict text, OUT state text, OUT sentence text, OUT since timestamp with time zone, OUT next_at timestamp with time zone) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_judged_fresh(pricing.data_type_registry,pricing.instruments,pricing.latest_prices,pricing.demand,timestamp with time zone,interval,text) TO pricing_reader, pricing_worker;

-- Why no worker asks a provider, however long its tasks wait: nobody stands for it in the sandbox, or its client cannot be made. NULL = some worker asks it, or none is at the queue.
CREATE FUNCTION pricing.why_no_client(wanted_provider text) RETURNS text LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_no_client(text) TO pricing_reader, pricing_worker;

-- Why no key of a provider can be used now: key_refused or throttled, with a sentence and when that ends. NULL = one can, as far as the provider has said.
CREATE FUNCTION pricing.why_no_key(wanted_provider text, OUT state text, OUT sentence text, OUT next_at timestamp with time zone) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_no_key(text) TO pricing_reader, pricing_worker;

-- Of a provider without a unit left now: which limit is used up, or that others use the key, and when the next unit comes if that is known.
CREATE FUNCTION pricing.why_no_units(wanted_provider text, OUT sentence text, OUT next_at timestamp with time zone) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_no_units(text) TO pricing_reader, pricing_worker;

-- The value of a pair that was sent since its last good answer and is not believed, in a sentence; NULL = there is none.
CREATE FUNCTION pricing.why_not_believed(wanted_type text, wanted_symbol text, failure text, fetched_at timestamp with time zone, OUT sentence text, OUT since timestamp with time zone) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_not_believed(text,text,text,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Why work of this priority that needs so many bytes may not be asked of a provider now: provider_off, no_client, breaker_open, key_refused, throttled, quota_spent or rate_limited, with a sentence and when that ends. NULL = it may.
CREATE FUNCTION pricing.why_not_called(wanted_provider text, priority integer, needed bigint, OUT state text, OUT sentence text, OUT next_at timestamp with time zone) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_not_called(text,integer,bigint) TO pricing_reader, pricing_worker;

-- Why a stale pair has no task: nobody wants it, its TTL is stretched, its schedule has not come to it, there is no room, or the next check will queue it.
CREATE FUNCTION pricing.why_not_queued(kind pricing.data_type_registry, thing pricing.instruments, pair pricing.demand, fetched_at timestamp with time zone, OUT state text, OUT sentence text, OUT since timestamp with time zone, OUT next_at timestamp with time zone) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_not_queued(pricing.data_type_registry,pricing.instruments,pricing.demand,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Why a stale pair that only a schedule refreshes has no task: the symbol is left out, the schedule has not come to it, or its next slot is still to come.
CREATE FUNCTION pricing.why_not_scheduled(kind pricing.data_type_registry, wanted_symbol text, wanted_provider text, needed bigint, fetched_at timestamp with time zone, OUT state text, OUT sentence text, OUT since timestamp with time zone, OUT next_at timestamp with time zone) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_not_scheduled(pricing.data_type_registry,text,text,bigint,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Why a pair's price is as old as it is: a state in one word, a sentence with times and what to do, when it was last confirmed, since when it is so and when that may change. docs/operations.md lists the states. stops = what is known to stop providers, of which else each pair asks.
CREATE FUNCTION pricing.why_old(wanted_type text, wanted_symbol text, stops pricing.provider_stop[] DEFAULT '{}'::pricing.provider_stop[], OUT state text, OUT sentence text, OUT observed_at timestamp with time zone, OUT fetched_at timestamp with time zone, OUT since timestamp with time zone, OUT next_at timestamp with time zone) RETURNS record LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_old(text,text,pricing.provider_stop[]) TO pricing_reader, pricing_worker;

-- Why a live task has brought no price yet. It is queued only if a worker takes it when its turn comes.
CREATE FUNCTION pricing.why_queued(task pricing.api_call_queue_live, stops pricing.provider_stop[], OUT state text, OUT sentence text, OUT since timestamp with time zone, OUT next_at timestamp with time zone) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_queued(pricing.api_call_queue_live,pricing.provider_stop[]) TO pricing_reader, pricing_worker;

-- One of the sentences that say why a price is old, with these words in it.
CREATE FUNCTION pricing.why_sentence(said text, VARIADIC words text[] DEFAULT '{}'::text[]) RETURNS text LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_sentence(text,text[]) TO pricing_reader, pricing_worker;

-- Why a pair that counts as stale has no newer value: what was sent is not believed, its task has not ended, it backs off, its market is closed, or it has no task.
CREATE FUNCTION pricing.why_stale(kind pricing.data_type_registry, thing pricing.instruments, pair pricing.demand, fetched_at timestamp with time zone, ttl interval, stops pricing.provider_stop[], OUT state text, OUT sentence text, OUT since timestamp with time zone, OUT next_at timestamp with time zone) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_stale(pricing.data_type_registry,pricing.instruments,pricing.demand,timestamp with time zone,interval,pricing.provider_stop[]) TO pricing_reader, pricing_worker;

-- The same of work of this priority that needs so many bytes, which the quota may have no room for: then it is quota_spent. NULL = its provider may be asked.
CREATE FUNCTION pricing.why_stopped(stop pricing.provider_stop, priority integer, needed bigint, OUT state text, OUT sentence text, OUT next_at timestamp with time zone) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_stopped(pricing.provider_stop,integer,bigint) TO pricing_reader, pricing_worker;

-- Why a pair, or without a data type a symbol, has no prices that could be read: a state in one word and a sentence.
CREATE FUNCTION pricing.why_strange(symbol text, wanted_type text, OUT state text, OUT sentence text) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_strange(text,text) TO pricing_reader, pricing_worker;

-- Why messages of a priority to a recipient wait now: quiet = its quiet hours, or an attempt might last into them; failing = its breaker is open. NULL = they may be sent.
CREATE FUNCTION pricing.why_waiting(of_type text, to_recipient text, with_priority integer, limit_seconds integer, now_ timestamp with time zone) RETURNS text LANGUAGE sql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.why_waiting(text,text,integer,integer,timestamp with time zone) TO pricing_reader, pricing_worker;

-- Takes live tasks out of the queue, those in work too: their finish is refused. Returns which were live.
CREATE FUNCTION pricing.withdraw(wanted bigint[], kind text, message text) RETURNS bigint[] LANGUAGE plpgsql SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.withdraw(bigint[],text,text) TO pricing_worker;

-- Withdraws payments that their provider no longer reports of days that it reports again; they stay as revisions. Returns how many.
CREATE FUNCTION pricing.withdraw_payments(were pricing.corporate_actions[], until timestamp with time zone, by_call bigint) RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_temp, lock_timeout=1s;
GRANT EXECUTE ON FUNCTION pricing.withdraw_payments(pricing.corporate_actions[],timestamp with time zone,bigint) TO pricing_worker;

-- Of the latest prices that a producer wants to queue, those that the quotas of their providers have room for, by the highest priority, and those that they have none for. What no provider serves fits.
CREATE FUNCTION pricing.within_quota(wanted_type text, symbols text[], priorities integer[], OUT fitting text[], OUT fitting_priorities integer[], OUT left_out text[]) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp, jit=off;
GRANT EXECUTE ON FUNCTION pricing.within_quota(text,text[],integer[]) TO pricing_worker;

-- As many symbols, the first one among them, as so many units suffice for, and the quarantined values that are of them.
CREATE FUNCTION pricing.within_units(INOUT value_ids bigint[], INOUT symbols text[], first_symbol text, units_left bigint, units_per_symbol integer) RETURNS record LANGUAGE plpgsql STABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.within_units(bigint[],text[],text,bigint,integer) TO pricing_reader, pricing_worker;

-- A message as a part of another sentence: without its own full stop.
CREATE FUNCTION pricing.without_full_stop(message text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.without_full_stop(text) TO pricing_reader, pricing_worker;

-- The rows of an answer that are about other products.
CREATE FUNCTION pricing.without_products(rows_ jsonb, symbols text[]) RETURNS jsonb LANGUAGE sql IMMUTABLE SET search_path=pg_temp;
GRANT EXECUTE ON FUNCTION pricing.without_products(jsonb,text[]) TO pricing_reader, pricing_worker;

-- Writes the slots of an answer that are new or changed, and marks those that a listed day no longer has. Returns the keys of both.
CREATE FUNCTION pricing.write_slots(from_provider text, from_call bigint, now_ timestamp with time zone, days jsonb, slots jsonb, OUT added_slots bigint[], OUT changed_slots bigint[]) RETURNS record LANGUAGE plpgsql SET search_path=pg_temp, plan_cache_mode=force_generic_plan, enable_seqscan=off, enable_mergejoin=off, jit=off;
GRANT EXECUTE ON FUNCTION pricing.write_slots(text,bigint,timestamp with time zone,jsonb,jsonb) TO pricing_worker;

-- The time zone that counts for a product; NULL = none is known.
CREATE FUNCTION pricing.zone_of(product pricing.products) RETURNS text LANGUAGE sql IMMUTABLE;
GRANT EXECUTE ON FUNCTION pricing.zone_of(pricing.products) TO pricing_reader, pricing_worker;
