-- Bars come at the scale at which they are stored; what divided them is gone.

DROP FUNCTION IF EXISTS pricing.merge_bars(text, text, bigint, text, text, text, timestamptz[], bigint[], bigint[], bigint[], bigint[], bigint[], smallint[], numeric[]);
DROP FUNCTION IF EXISTS pricing.revise_bars(text, text, bigint, text, text, text, timestamptz[], bigint[], bigint[], bigint[], bigint[], bigint[], smallint[], numeric[]);
