-- Rows that say what is believed and what was before move together.
DROP FUNCTION IF EXISTS pricing.move_rows(text, text[], text, text, text);
