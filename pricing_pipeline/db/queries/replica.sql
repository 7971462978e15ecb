-- name: mark
-- On the primary: which database it is, on which timeline, and how far its log is flushed. A replica that has replayed
-- this is as it is now.
SELECT c.system_identifier || '/' || d.oid AS identity,
       (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint AS flushed,
       ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::integer AS timeline
FROM pg_control_system() c CROSS JOIN pg_database d
WHERE d.datname = current_database();

-- name: state
-- On the replica: which database it copies, whether it still follows, on which timeline, and how far it has replayed.
SELECT c.system_identifier || '/' || d.oid AS identity, pg_is_in_recovery() AS is_following,
       (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint AS replayed,
       greatest((SELECT timeline_id FROM pg_control_checkpoint()),
                (SELECT min_recovery_end_timeline FROM pg_control_recovery())) AS timeline
FROM pg_control_system() c CROSS JOIN pg_database d
WHERE d.datname = current_database();

-- name: only_read
-- A session that writes nothing, also when its server was promoted meanwhile.
SELECT set_config('default_transaction_read_only', 'on', false);
