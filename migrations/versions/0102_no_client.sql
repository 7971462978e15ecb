-- `not_asked` is a kind of gap in a history; that no worker asks a provider has a word of its own.
DROP FUNCTION IF EXISTS pricing.why_not_asked(text);
