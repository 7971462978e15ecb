-- Messages to recipients: each is a side effect of its recipient's channel.

CREATE OR REPLACE FUNCTION pricing.quiet_end(who pricing.recipients, now_ timestamptz) RETURNS timestamptz
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT (l.at::date + CASE WHEN l.at::time < who.quiet_until THEN 0 ELSE 1 END + who.quiet_until)
           AT TIME ZONE who.time_zone
    FROM (SELECT now_ AT TIME ZONE who.time_zone AS at) l
    WHERE CASE WHEN who.quiet_from < who.quiet_until
               THEN l.at::time >= who.quiet_from AND l.at::time < who.quiet_until
               ELSE l.at::time >= who.quiet_from OR l.at::time < who.quiet_until END
$$;
COMMENT ON FUNCTION pricing.quiet_end(pricing.recipients, timestamptz) IS
    'When a recipient''s present quiet hours end; NULL = it has none now.';


CREATE OR REPLACE FUNCTION pricing.enqueue_message(
    to_recipient text, title text, body text, is_urgent boolean DEFAULT false, data jsonb DEFAULT NULL,
    goes_first boolean DEFAULT false) RETURNS bigint
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    who pricing.recipients;
    kind pricing.operation_types;
    message jsonb := jsonb_build_object(
        'recipient', to_recipient, 'title', left(title, 200), 'body', left(body, 20000));
BEGIN
    SELECT * INTO who FROM pricing.recipients r WHERE r.recipient = to_recipient AND r.is_active;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no active recipient is called %', left(to_recipient, 60)
            USING HINT = 'There are: ' || coalesce((SELECT string_agg(r.recipient, ', ' ORDER BY 1)
                                                    FROM pricing.recipients r WHERE r.is_active), 'none yet'),
                  ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT * INTO STRICT kind FROM pricing.operation_types t WHERE t.operation_type = who.channel;
    IF data IS NOT NULL AND kind.payload_fields -> 'data' IS NOT NULL THEN
        message := message || jsonb_build_object('data', data);
    END IF;
    RETURN pricing.queue_operation(kind, message, NULL, CASE WHEN is_urgent THEN 0 WHEN goes_first THEN 1 ELSE 2 END);
END $$;
COMMENT ON FUNCTION pricing.enqueue_message(text, text, text, boolean, jsonb, boolean) IS
    'Queues a message to a recipient in the caller''s transaction, and returns the operation''s id; in quiet hours it '
    'waits unless it is urgent.';
