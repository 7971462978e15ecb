-- Names in the registry, and words for everything. Roles and grants are applied by each upgrade: pricing_pipeline/db/grants.sql.

-- ── Names in the registry ──────────────────────────────────────────────────────────────────────────────

CREATE OR REPLACE FUNCTION pricing.check_data_type() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    own_view text := 'latest_price_' || NEW.data_type;
    missing text;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF NEW.data_type <> OLD.data_type THEN
            RAISE EXCEPTION 'data type % cannot be renamed', OLD.data_type
                USING HINT = 'Add the new name and retire this one.', ERRCODE = 'invalid_parameter_value';
        ELSIF (NEW.table_name, NEW.symbol_column, NEW.timestamp_column, NEW.staleness_function, NEW.schedule_timezone)
              = (OLD.table_name, OLD.symbol_column, OLD.timestamp_column, OLD.staleness_function, OLD.schedule_timezone)
              AND NEW.is_active <= OLD.is_active THEN
            RETURN NEW; -- a type whose table has vanished can still be retired
        END IF;
    ELSIF EXISTS (SELECT FROM pg_catalog.pg_class c
                  WHERE c.relnamespace = 'pricing'::pg_catalog.regnamespace AND c.relname::text = 'price_history_' || NEW.data_type
                    AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits i
                                    WHERE i.inhrelid = c.oid AND i.inhparent = 'pricing.price_history'::pg_catalog.regclass)) THEN
        -- The index of one type's history could be called as another type's history.
        RAISE EXCEPTION 'data type %: the name pricing.price_history_% is taken', NEW.data_type, NEW.data_type
            USING HINT = 'Choose another name for the data type.', ERRCODE = 'duplicate_table';
    END IF;

    IF NEW.table_name IN ('', own_view) THEN
        NEW.table_name := own_view;
        NEW.symbol_column := 'symbol';
        NEW.timestamp_column := 'fetched_at';
    END IF;
    -- What may be named: a table or view of this schema that its owner made, in the shape that staleness can be judged by.
    -- Of the pipeline's own tables only latest_prices has that shape, and it holds all types.
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_class c
                   WHERE c.relnamespace = 'pricing'::pg_catalog.regnamespace AND c.relname::text = NEW.table_name) THEN
        IF NEW.table_name <> own_view OR TG_OP = 'UPDATE' THEN
            RAISE EXCEPTION 'data type %: table pricing.% does not exist', NEW.data_type, NEW.table_name
                USING HINT = 'Create the table first, or leave table_name empty to get one.', ERRCODE = 'undefined_table';
        END IF;
    ELSE
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                       WHERE n.nspname = 'pricing' AND c.relname::text = NEW.table_name AND c.relowner = n.nspowner
                         AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NEW.table_name <> 'latest_prices') THEN
            RAISE EXCEPTION 'data type %: pricing.% is no table or view that a data type may name', NEW.data_type, NEW.table_name
                USING HINT = 'Name a table or view of your own that the owner of the schema made.', ERRCODE = 'wrong_object_type';
        END IF;
        SELECT pg_catalog.string_agg(wanted.name, ', ' ORDER BY wanted.name) INTO missing
        FROM (VALUES (NEW.symbol_column, ARRAY['text', 'varchar']), (NEW.timestamp_column, ARRAY['timestamptz']),
                     ('cache_ttl_minutes', ARRAY['integer'])) AS wanted (name, types)
        WHERE NOT EXISTS (
            SELECT FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
            WHERE c.relnamespace = 'pricing'::pg_catalog.regnamespace AND c.relname::text = NEW.table_name
              AND a.attname::text = wanted.name AND a.attnum > 0 AND NOT a.attisdropped
              AND a.atttypid = ANY (wanted.types::pg_catalog.regtype[]));
        IF missing IS NOT NULL THEN
            RAISE EXCEPTION 'data type %: pricing.% lacks column(s) %', NEW.data_type, NEW.table_name, missing
                USING HINT = 'symbol_column (text), timestamp_column (timestamptz) and cache_ttl_minutes (integer) must exist.',
                      ERRCODE = 'undefined_column';
        END IF;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
                   WHERE n.nspname = 'pricing' AND p.proname::text = NEW.staleness_function AND p.proowner = n.nspowner
                     AND p.proargtypes::text = '1184 23' AND p.prorettype = 'boolean'::pg_catalog.regtype
                     AND p.prokind = 'f' AND NOT p.proretset) THEN
        RAISE EXCEPTION 'data type %: staleness function pricing.%(timestamptz, integer) does not exist',
            NEW.data_type, NEW.staleness_function
            USING HINT = 'Use is_data_stale, or let the owner of the schema create the function, returning boolean, first.',
                  ERRCODE = 'undefined_function';
    END IF;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_timezone_names WHERE name = NEW.schedule_timezone) THEN
        RAISE EXCEPTION 'data type %: unknown time zone %', NEW.data_type, NEW.schedule_timezone
            USING HINT = 'Use a name such as UTC or Asia/Kolkata.', ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION pricing.check_data_type() IS
    'Refuses a registry row whose names are not on the list: a table or view of the owner in the right shape, a staleness function, a time zone.';

CREATE FUNCTION pricing.comment_columns(view_name text) RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT pg_catalog.format('COMMENT ON COLUMN pricing.%I.%I IS %L', view_name, a.attname,
                                 pg_catalog.col_description('pricing.latest_prices'::pg_catalog.regclass, a.attnum))
        FROM pg_catalog.pg_attribute v JOIN pg_catalog.pg_attribute a
            ON a.attrelid = 'pricing.latest_prices'::pg_catalog.regclass AND a.attname = v.attname
        WHERE v.attrelid = pg_catalog.format('pricing.%I', view_name)::pg_catalog.regclass
        ORDER BY v.attnum
    LOOP
        EXECUTE statement;
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.comment_columns(text) IS 'Gives the columns of a view of latest prices the words of the table.';

-- With the owner's rights, so that what it makes is the owner's also when a member of the owner adds the type.
CREATE OR REPLACE FUNCTION pricing.make_storage() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
DECLARE
    history text := 'price_history_' || NEW.data_type;
BEGIN
    -- LIKE + ATTACH: CREATE ... PARTITION OF would lock out every writer of price_history meanwhile.
    IF pg_catalog.to_regclass(pg_catalog.format('pricing.%I', history)) IS NULL THEN
        EXECUTE pg_catalog.format('CREATE TABLE pricing.%I (LIKE pricing.price_history INCLUDING ALL)', history);
        EXECUTE pg_catalog.format('ALTER TABLE pricing.price_history ATTACH PARTITION pricing.%I FOR VALUES IN (%L)',
                                  history, NEW.data_type);
        EXECUTE pg_catalog.format('COMMENT ON TABLE pricing.%I IS %L', history, 'History of ' || NEW.data_type || '.');
    END IF;
    IF pg_catalog.to_regclass(pg_catalog.format('pricing.%I', NEW.table_name)) IS NULL THEN
        EXECUTE pg_catalog.format(
            'CREATE VIEW pricing.%I AS SELECT symbol, amount, scale, currency, observed_at, fetched_at, provider, '
            'call_id, source_text, cache_ttl_minutes FROM pricing.latest_prices WHERE data_type = %L',
            NEW.table_name, NEW.data_type);
        EXECUTE pg_catalog.format('COMMENT ON VIEW pricing.%I IS %L', NEW.table_name,
                                  'Latest prices of ' || NEW.data_type || '.');
        PERFORM pricing.comment_columns(NEW.table_name);
    END IF;
    -- Without a route nothing would be fetched; the first provider able to serve the fetcher gets a visible rule.
    INSERT INTO pricing.provider_routing (data_type, provider)
    SELECT NEW.data_type, c.provider
    FROM pricing.provider_capabilities c JOIN pricing.data_collectors d USING (provider)
    WHERE c.fetcher = NEW.fetcher AND d.is_active
    ORDER BY c.provider LIMIT 1
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;


-- ── Words ──────────────────────────────────────────────────────────────────────────────────────────────

COMMENT ON SEQUENCE pricing.call_id_seq IS 'Numbers calls.';
COMMENT ON SEQUENCE pricing.task_id_seq IS 'Numbers tasks.';
COMMENT ON TABLE pricing.alembic_version IS 'Which migrations the database has had.';
COMMENT ON TABLE pricing.api_call_queue_live IS 'Tasks that are pending, scheduled or processing.';
COMMENT ON TABLE pricing.api_call_queue_dead IS 'Tasks that failed or were cancelled, with all their errors.';
COMMENT ON TABLE pricing.api_call_queue_completed IS 'Finished tasks: a ring of eight weeks, of which pruning empties the old ones.';

COMMENT ON COLUMN pricing.active_subscriptions.user_id IS 'Who looks: the login of a session, or whom a worker names.';
COMMENT ON COLUMN pricing.active_subscriptions.data_type IS 'What is looked at.';
COMMENT ON COLUMN pricing.active_subscriptions.symbol IS 'What is looked at.';
COMMENT ON COLUMN pricing.active_subscriptions.subscribed_at IS 'Since when, without a pause of five minutes.';
COMMENT ON COLUMN pricing.active_subscriptions.last_seen_at IS 'The last heartbeat, stamped by the database; nothing else changes it.';

COMMENT ON COLUMN pricing.alembic_version.version_num IS 'The last migration that was run.';

COMMENT ON COLUMN pricing.api_call_queue.id IS 'Rises with each task, over all states.';
COMMENT ON COLUMN pricing.api_call_queue.data_type IS 'What is fetched.';
COMMENT ON COLUMN pricing.api_call_queue.symbol IS 'What is fetched.';
COMMENT ON COLUMN pricing.api_call_queue.window_end IS 'Last day, included; see window_start.';
COMMENT ON COLUMN pricing.api_call_queue.provider IS 'Who is asked, by the route at the time of queueing; NULL only for what had no route.';
COMMENT ON COLUMN pricing.api_call_queue.status IS 'pending, processing, scheduled (waits until run_after), completed, failed or cancelled. docs/state-machine.md draws it.';
COMMENT ON COLUMN pricing.api_call_queue.cadence_minutes IS 'TTL of the type in minutes: among tasks of one priority the shorter goes first.';
COMMENT ON COLUMN pricing.api_call_queue.est_bytes IS 'Bytes on the wire that the answer is expected to take, reserved when it is claimed.';
COMMENT ON COLUMN pricing.api_call_queue.enqueued_at IS 'When it was queued.';
COMMENT ON COLUMN pricing.api_call_queue.run_after IS 'Scheduled tasks only: not to be claimed before.';
COMMENT ON COLUMN pricing.api_call_queue.max_attempts IS 'Claims after which a failure is final.';
COMMENT ON COLUMN pricing.api_call_queue.claimed_at IS 'When it was last claimed.';
COMMENT ON COLUMN pricing.api_call_queue.lease_until IS 'Until then the claim holds without a sign of life from its worker.';
COMMENT ON COLUMN pricing.api_call_queue.worker IS 'Who claimed it last: host and process.';
COMMENT ON COLUMN pricing.api_call_queue.call_id IS 'The call of its last claim, in collector_call_log.';
COMMENT ON COLUMN pricing.api_call_queue.backfill_id IS 'The backfill that queued it; NULL for live work.';
COMMENT ON COLUMN pricing.api_call_queue.finished_at IS 'When it was completed, failed or cancelled.';
COMMENT ON COLUMN pricing.api_call_queue.failure_kind IS 'Why it is dead, in one word; docs/state-machine.md lists them.';

COMMENT ON COLUMN pricing.api_data_usage.provider IS 'Who was asked.';
COMMENT ON COLUMN pricing.api_data_usage.hour IS 'Beginning of the hour, UTC.';
COMMENT ON COLUMN pricing.api_data_usage.calls IS 'Calls settled in the hour.';
COMMENT ON COLUMN pricing.api_data_usage.units IS 'What they cost, in the provider''s units.';
COMMENT ON COLUMN pricing.api_data_usage.bytes IS 'Bytes on the wire; of calls whose worker was lost, their estimate.';

COMMENT ON COLUMN pricing.backfills.backfill_id IS 'Carried by its tasks.';
COMMENT ON COLUMN pricing.backfills.data_type IS 'What was asked for.';
COMMENT ON COLUMN pricing.backfills.window_start IS 'First day, included.';
COMMENT ON COLUMN pricing.backfills.window_end IS 'Last day, included.';
COMMENT ON COLUMN pricing.backfills.symbols IS 'Which instruments; NULL = all that a provider has confirmed.';
COMMENT ON COLUMN pricing.backfills.run_id IS 'Dagster''s id of the run that asked.';
COMMENT ON COLUMN pricing.backfills.requested_at IS 'When it was planned.';
COMMENT ON COLUMN pricing.backfills.finished_at IS 'When none of its tasks was open any more.';
COMMENT ON COLUMN pricing.backfills.tasks IS 'How many tasks it waits for, those of earlier backfills of the same days included.';

COMMENT ON COLUMN pricing.collector_call_log.call_id IS 'Rises with each call; prices carry it.';
COMMENT ON COLUMN pricing.collector_call_log.provider IS 'Who was asked.';
COMMENT ON COLUMN pricing.collector_call_log.data_type IS 'What was asked for.';
COMMENT ON COLUMN pricing.collector_call_log.symbols IS 'What was asked for, in the order of the request.';
COMMENT ON COLUMN pricing.collector_call_log.window_start IS 'First day asked for; -infinity = the latest price.';
COMMENT ON COLUMN pricing.collector_call_log.window_end IS 'Last day asked for, included; infinity = the latest price.';
COMMENT ON COLUMN pricing.collector_call_log.units IS 'What it costs, in the provider''s units.';
COMMENT ON COLUMN pricing.collector_call_log.reserved_bytes IS 'Bytes held against the quota until it is settled.';
COMMENT ON COLUMN pricing.collector_call_log.run_id IS 'Dagster''s id of the run that made it.';
COMMENT ON COLUMN pricing.collector_call_log.worker IS 'Who made it: host and process.';
COMMENT ON COLUMN pricing.collector_call_log.started_at IS 'When it was claimed, before it was made.';
COMMENT ON COLUMN pricing.collector_call_log.finished_at IS 'When it was settled; NULL = open.';
COMMENT ON COLUMN pricing.collector_call_log.http_status IS 'Status of the answer; NULL = no answer, or none known.';
COMMENT ON COLUMN pricing.collector_call_log.error IS 'Why it brought nothing, without secrets.';

COMMENT ON COLUMN pricing.data_collectors.provider IS 'Its name, as routes and calls have it.';
COMMENT ON COLUMN pricing.data_collectors.description IS 'For people.';
COMMENT ON COLUMN pricing.data_collectors.base_url IS 'Where it answers; the sandbox''s address takes its place while the sandbox is on.';
COMMENT ON COLUMN pricing.data_collectors.is_active IS 'False = it is not called; what it alone serves fails as misconfigured.';
COMMENT ON COLUMN pricing.data_collectors.max_in_flight IS 'Calls of one process that may be under way at once.';

COMMENT ON COLUMN pricing.data_type_registry.data_type IS 'Its name; it cannot be changed.';
COMMENT ON COLUMN pricing.data_type_registry.description IS 'For people.';
COMMENT ON COLUMN pricing.data_type_registry.symbol_column IS 'Column of table_name with the symbol, text.';
COMMENT ON COLUMN pricing.data_type_registry.timestamp_column IS 'Column of table_name that staleness is judged by, timestamptz.';
COMMENT ON COLUMN pricing.data_type_registry.staleness_function IS 'Function (timestamptz, integer) returning boolean in this schema; it gets the timestamp and the TTL in minutes.';
COMMENT ON COLUMN pricing.data_type_registry.refresh_strategy IS 'on-demand = while somebody watches; scheduled = by refresh_schedule too.';
COMMENT ON COLUMN pricing.data_type_registry.schedule_timezone IS 'Time zone of refresh_schedule.';
COMMENT ON COLUMN pricing.data_type_registry.is_active IS 'False = retired: not queued any more; its prices stay.';
COMMENT ON COLUMN pricing.data_type_registry.created_at IS 'When it was added.';

COMMENT ON COLUMN pricing.demand.data_type IS 'What is wanted.';
COMMENT ON COLUMN pricing.demand.symbol IS 'What is wanted.';
COMMENT ON COLUMN pricing.demand.failures IS 'Dead tasks in a row.';
COMMENT ON COLUMN pricing.demand.last_failure IS 'Why the last task died.';
COMMENT ON COLUMN pricing.demand.created_at IS 'Since when somebody wants it.';

COMMENT ON COLUMN pricing.drains.drain_id IS 'Its name.';
COMMENT ON COLUMN pricing.drains.run_id IS 'Dagster''s id of the run that drains.';
COMMENT ON COLUMN pricing.drains.worker IS 'Host and process.';
COMMENT ON COLUMN pricing.drains.started_at IS 'When it began.';
COMMENT ON COLUMN pricing.drains.ends_at IS 'When it hands over to a successor.';
COMMENT ON COLUMN pricing.drains.lease_until IS 'Alive until then without a sign of life.';
COMMENT ON COLUMN pricing.drains.finished_at IS 'When it ended in good order.';

COMMENT ON COLUMN pricing.provider_keys.provider IS 'Whose key.';
COMMENT ON COLUMN pricing.provider_keys.key_name IS 'Its name; the key itself is nowhere in the database.';
COMMENT ON COLUMN pricing.provider_keys.blocked_reason IS 'Why it is blocked, for people.';
COMMENT ON COLUMN pricing.provider_keys.reported_at IS 'When the provider said so.';
COMMENT ON COLUMN pricing.provider_keys.foreign_until IS 'Until when foreign_units are taken off.';

COMMENT ON COLUMN pricing.provider_key_limits.provider IS 'Whose limit.';
COMMENT ON COLUMN pricing.provider_key_limits.key_name IS 'The key that differs.';
COMMENT ON COLUMN pricing.provider_key_limits.name IS 'The limit''s name in provider_limits, which has its window.';
COMMENT ON COLUMN pricing.provider_key_limits.units IS 'Units allowed to this key in the window.';

COMMENT ON COLUMN pricing.provider_state.breaker_reason IS 'Why the breaker last opened, for people.';

COMMENT ON COLUMN pricing.size_estimates.provider IS 'Whose answers.';
COMMENT ON COLUMN pricing.size_estimates.data_type IS 'Of what.';
COMMENT ON COLUMN pricing.size_estimates.per IS 'What the bytes are of: a symbol''s latest price, or a day of a symbol''s history.';
COMMENT ON COLUMN pricing.size_estimates.bytes IS 'Bytes on the wire, as a moving average.';
COMMENT ON COLUMN pricing.size_estimates.measurements IS 'Answers measured.';
COMMENT ON COLUMN pricing.size_estimates.measured_at IS 'When the last of them came.';
COMMENT ON COLUMN pricing.size_estimates.last_overrun_at IS 'When an answer last took more than twice its estimate.';

COMMENT ON COLUMN pricing.warnings.warning_id IS 'Rises with each warning.';
COMMENT ON COLUMN pricing.warnings.at IS 'When it was given.';
COMMENT ON COLUMN pricing.warnings.sqlstate IS 'The error behind it, as PostgreSQL numbers errors; NULL = none.';
COMMENT ON COLUMN pricing.warnings.message IS 'What happened, in the database''s words.';

COMMENT ON COLUMN pricing.duties.last_failure_at IS 'NULL = never yet.';
COMMENT ON COLUMN pricing.duties.duty IS 'The function''s name.';

COMMENT ON COLUMN pricing.history_coverage.data_type IS 'What was asked for.';
COMMENT ON COLUMN pricing.history_coverage.symbol IS 'What was asked for.';
COMMENT ON COLUMN pricing.history_coverage.covered IS 'Days that were answered for.';

COMMENT ON COLUMN pricing.instruments.asset_class IS 'Which data types it belongs to: those of the same class.';
COMMENT ON COLUMN pricing.instruments.symbol IS 'Its name at the providers.';
COMMENT ON COLUMN pricing.instruments.name IS 'For people.';
COMMENT ON COLUMN pricing.instruments.currency IS 'ISO 4217 code of its prices; NULL = not known.';
COMMENT ON COLUMN pricing.instruments.update_mode IS 'api = refreshed; manual = left alone.';
COMMENT ON COLUMN pricing.instruments.is_active IS 'False = left alone.';
COMMENT ON COLUMN pricing.instruments.created_at IS 'When it became known.';

COMMENT ON COLUMN pricing.latest_prices.data_type IS 'What it is the price of.';
COMMENT ON COLUMN pricing.latest_prices.symbol IS 'What it is the price of.';
COMMENT ON COLUMN pricing.latest_prices.amount IS 'Price in units of 10^-scale.';
COMMENT ON COLUMN pricing.latest_prices.scale IS 'Decimals of amount.';
COMMENT ON COLUMN pricing.latest_prices.currency IS 'ISO 4217 code; NULL = the source names none.';
COMMENT ON COLUMN pricing.latest_prices.provider IS 'Who said so.';
COMMENT ON COLUMN pricing.latest_prices.source_text IS 'The price in the source''s own digits.';

COMMENT ON COLUMN pricing.price_history.data_type IS 'What it is the price of.';
COMMENT ON COLUMN pricing.price_history.symbol IS 'What it is the price of.';
COMMENT ON COLUMN pricing.price_history.observed_at IS 'The source''s time; midnight UTC of the trading day for daily values.';
COMMENT ON COLUMN pricing.price_history.amount IS 'Close, NAV or quote, in units of 10^-scale.';
COMMENT ON COLUMN pricing.price_history.open_amount IS 'Open of a daily bar, in units of 10^-scale.';
COMMENT ON COLUMN pricing.price_history.high_amount IS 'High of a daily bar, in units of 10^-scale.';
COMMENT ON COLUMN pricing.price_history.low_amount IS 'Low of a daily bar, in units of 10^-scale.';
COMMENT ON COLUMN pricing.price_history.scale IS 'Decimals of the amounts.';
COMMENT ON COLUMN pricing.price_history.currency IS 'ISO 4217 code; NULL = the source names none.';
COMMENT ON COLUMN pricing.price_history.volume IS 'Traded volume of a daily bar, in shares or contracts.';
COMMENT ON COLUMN pricing.price_history.provider IS 'Who said so.';
COMMENT ON COLUMN pricing.price_history.call_id IS 'The call that brought it.';
COMMENT ON COLUMN pricing.price_history.fetched_at IS 'When we came to believe it.';

COMMENT ON COLUMN pricing.price_revisions.data_type IS 'What it was the price of.';
COMMENT ON COLUMN pricing.price_revisions.symbol IS 'What it was the price of.';
COMMENT ON COLUMN pricing.price_revisions.observed_at IS 'The source''s time.';
COMMENT ON COLUMN pricing.price_revisions.amount IS 'What we believed, in units of 10^-scale.';
COMMENT ON COLUMN pricing.price_revisions.open_amount IS 'Open, in units of 10^-scale.';
COMMENT ON COLUMN pricing.price_revisions.high_amount IS 'High, in units of 10^-scale.';
COMMENT ON COLUMN pricing.price_revisions.low_amount IS 'Low, in units of 10^-scale.';
COMMENT ON COLUMN pricing.price_revisions.scale IS 'Decimals of the amounts.';
COMMENT ON COLUMN pricing.price_revisions.currency IS 'ISO 4217 code.';
COMMENT ON COLUMN pricing.price_revisions.volume IS 'Traded volume.';
COMMENT ON COLUMN pricing.price_revisions.provider IS 'Who had said so.';
COMMENT ON COLUMN pricing.price_revisions.call_id IS 'The call that had brought it.';
COMMENT ON COLUMN pricing.price_revisions.recorded_at IS 'Since when we believed it.';
COMMENT ON COLUMN pricing.price_revisions.revised_at IS 'Until when we believed it.';
COMMENT ON COLUMN pricing.price_revisions.revised_by IS 'The call that brought another value.';

COMMENT ON COLUMN pricing.provider_capabilities.provider IS 'Who can.';
COMMENT ON COLUMN pricing.provider_capabilities.fetcher IS 'What it can be asked for.';
COMMENT ON COLUMN pricing.provider_capabilities.batch_size IS 'Symbols in one call for latest prices.';
COMMENT ON COLUMN pricing.provider_capabilities.units_per_call IS 'Cost of a call, in the provider''s units.';
COMMENT ON COLUMN pricing.provider_capabilities.units_per_symbol IS 'Cost of each symbol of a call, in the provider''s units.';
COMMENT ON COLUMN pricing.provider_capabilities.bytes_per_day IS 'Bytes on the wire for a day of history of one symbol, as an estimate.';

COMMENT ON COLUMN pricing.provider_limits.provider IS 'Whose limit.';
COMMENT ON COLUMN pricing.provider_limits.name IS 'Its name.';
COMMENT ON COLUMN pricing.provider_limits.units IS 'Units allowed in the window.';
COMMENT ON COLUMN pricing.provider_limits.window_seconds IS 'Length of a sliding window in seconds; NULL = a calendar day.';
COMMENT ON COLUMN pricing.provider_limits.day_timezone IS 'Time zone whose midnight ends the day; NULL = a sliding window.';

COMMENT ON COLUMN pricing.provider_routing.data_type IS 'What is routed.';
COMMENT ON COLUMN pricing.provider_routing.symbol IS 'The one symbol it is for; NULL = all that have no rule of their own.';
COMMENT ON COLUMN pricing.provider_routing.provider IS 'Who serves it.';
COMMENT ON COLUMN pricing.provider_routing.is_active IS 'False = the rule does not count.';

COMMENT ON COLUMN pricing.provider_state.provider IS 'Whose state.';

COMMENT ON COLUMN pricing.registry_state.singleton IS 'There is one row.';
COMMENT ON COLUMN pricing.registry_state.version IS 'Rises with every change of the registry.';

DO $$
DECLARE
    kind record;
BEGIN
    FOR leaf IN 0..7 LOOP
        EXECUTE format('COMMENT ON TABLE pricing.api_call_queue_completed_%1$s IS %2$L', leaf,
                       format('Tasks finished in weeks whose number since 1970 is %s modulo 8.', leaf));
    END LOOP;
    FOR kind IN SELECT r.table_name FROM pricing.data_type_registry r WHERE r.table_name = 'latest_price_' || r.data_type ORDER BY 1 LOOP
        PERFORM pricing.comment_columns(kind.table_name);
    END LOOP;
END $$;

-- Without a path of its own it is inlined wherever it is called for every row; all that it names is qualified.
ALTER FUNCTION pricing.clock() RESET search_path;
