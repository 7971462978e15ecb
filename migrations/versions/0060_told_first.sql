-- It takes one argument more: whether a message is sent before others.
DROP FUNCTION IF EXISTS pricing.enqueue_message(text, text, text, boolean, jsonb);
