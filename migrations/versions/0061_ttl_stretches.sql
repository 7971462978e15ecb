-- By how much TTLs are stretched, so that a provider's quota lasts; and which pairs wait because of that.
CREATE TABLE pricing.ttl_stretches (
    provider          text PRIMARY KEY REFERENCES pricing.data_collectors ON DELETE CASCADE,
    watched_factor    float8 NOT NULL CONSTRAINT watched_ttls_never_shrink CHECK (watched_factor >= 1),
    background_factor float8 NOT NULL CONSTRAINT background_ttls_never_shrink CHECK (background_factor >= 1),
    watched_need      float8 NOT NULL CONSTRAINT need_is_not_negative CHECK (watched_need >= 0),
    need_weight       float8 NOT NULL CONSTRAINT weight_is_a_share CHECK (need_weight > 0 AND need_weight <= 1),
    ends_at           timestamptz,
    noted_at          timestamptz NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.ttl_stretches IS
    'By how much the TTLs of what a provider serves are stretched, so that its quota of bytes lasts. A provider that has used less than a twentieth of its quota has no row. Noted every 5 min (stretch_ttls); a row of more than 15 min ago stretches nothing.';
COMMENT ON COLUMN pricing.ttl_stretches.provider IS 'Whose quota.';
COMMENT ON COLUMN pricing.ttl_stretches.watched_factor IS 'How many TTLs old a watched price gets before its pair is queued; 1 = its TTL.';
COMMENT ON COLUMN pricing.ttl_stretches.background_factor IS 'The same of what is held and not watched, and of schedules. These are stretched first.';
COMMENT ON COLUMN pricing.ttl_stretches.watched_need IS 'Bytes an hour that watched pairs need at their TTLs, averaged over about a day.';
COMMENT ON COLUMN pricing.ttl_stretches.need_weight IS 'How much of a day that average has seen, from 0 to 1.';
COMMENT ON COLUMN pricing.ttl_stretches.ends_at IS 'When the quota would end for viewers if nothing were stretched (quota_forecasts); NULL = it lasts.';
COMMENT ON COLUMN pricing.ttl_stretches.noted_at IS 'When this was worked out.';

ALTER TABLE pricing.demand ADD COLUMN stretched_from timestamptz;
COMMENT ON COLUMN pricing.demand.stretched_from IS
    'Since when the pair is due by its TTL, while it is queued later (due_at) because TTLs are stretched; NULL = it is not stretched. It counts as owed since then.';
CREATE INDEX demand_stretched ON pricing.demand (data_type) WHERE stretched_from IS NOT NULL;
