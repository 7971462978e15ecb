-- How symbols are spelled: what fits an asset class, and one spelling for each instrument. All who name a symbol come by here.

CREATE OR REPLACE FUNCTION pricing.known_currencies() RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = '' AS $$
    SELECT pg_catalog.regexp_split_to_array(pg_catalog.btrim('
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW
    CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL
    HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA
    MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD
    RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD
    USN UYI UYU UYW UZS VED VES VND VUV WST XAD XAF XAG XAU XBA XBB XBC XBD XCD XCG XDR XOF XPD XPF XPT XSU XUA YER ZAR
    ZMW ZWG ANG BGN BYR CUC EEK HRK LTL LVL MRO SLL STD TMM VEB VEF ZMK ZWL
    ADA BCH BNB BTC DAI DOT EOS ETC ETH LTC SOL TON TRX UNI XLM XMR XRP CNH', E' \n'), '\s+')
$$;
COMMENT ON FUNCTION pricing.known_currencies() IS
    'Currencies that an exchange rate may name: those of providers/currencies.py whose codes have three letters, as a test holds.';


CREATE OR REPLACE FUNCTION pricing.fits_class(asset_class text, symbol text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = '' AS $$
    SELECT CASE asset_class
        WHEN 'equity' THEN symbol ~ '^[A-Z0-9^]([A-Z0-9.:=^_&''-]*|( ?[A-Z0-9.&''-])*:[A-Z0-9]{4})$'
        WHEN 'fund' THEN symbol ~ '^[0-9]{1,12}$'
        WHEN 'crypto' THEN symbol ~ '^[A-Z0-9]{1,20}/[A-Z0-9]{2,10}$'
        WHEN 'fx' THEN symbol ~ '^[A-Z]{3}/[A-Z]{3}$' AND left(symbol, 3) <> right(symbol, 3)
                       AND ARRAY[left(symbol, 3), right(symbol, 3)] <@ pricing.known_currencies()
        ELSE true END
$$;
COMMENT ON FUNCTION pricing.fits_class(text, text) IS
    'Whether a symbol can be one of an asset class: equities by tickers, funds by numbers, coins and exchange rates as pairs. Any symbol fits a class of one''s own.';


CREATE OR REPLACE FUNCTION pricing.describe_shape(asset_class text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = '' AS $$
    SELECT CASE asset_class
        WHEN 'equity' THEN 'a ticker without a slash, such as AAPL or BRK.B'
        WHEN 'fund' THEN 'the number of its scheme, such as 118632'
        WHEN 'crypto' THEN 'a coin and what it is priced in, such as BTC/USD'
        WHEN 'fx' THEN 'two known currencies, such as EUR/USD' END
$$;
COMMENT ON FUNCTION pricing.describe_shape(text) IS 'How symbols of an asset class look, for people; NULL = any way.';


CREATE OR REPLACE FUNCTION pricing.is_sane_symbol(symbol text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = '' AS $$
    SELECT length(symbol) BETWEEN 1 AND 40
       AND symbol ~ '^[A-Za-z0-9^]([A-Za-z0-9./:=^_&''-]*|( ?[A-Za-z0-9.&''-])*:[A-Z0-9]{4})$'
$$;
COMMENT ON FUNCTION pricing.is_sane_symbol(text) IS 'Whether any instrument, of whatever class, may have this symbol.';


CREATE OR REPLACE FUNCTION pricing.describe_sane_symbol() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = '' AS $$
    SELECT 'a symbol has 1 to 40 letters, digits, spaces and . / : = ^ _ & '' -, and begins with a letter, a digit or ^'
$$;
COMMENT ON FUNCTION pricing.describe_sane_symbol() IS 'How symbols look in every class, for people.';


CREATE OR REPLACE FUNCTION pricing.describe_misfit(symbol text, wanted_type text DEFAULT NULL, wanted_class text DEFAULT NULL) RETURNS text
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT CASE
        WHEN NOT pricing.is_sane_symbol(symbol) THEN pricing.describe_sane_symbol()
        -- Small letters are taken for capitals where symbols have none.
        WHEN bool_or(pricing.fits_class(c.asset_class, symbol) OR pricing.fits_class(c.asset_class, upper(symbol))) THEN NULL
        WHEN wanted_type IS NULL AND wanted_class IS NULL THEN 'it looks like a symbol of no data type; `pricing-pipeline type list` shows those there are'
        ELSE pg_catalog.format('a symbol of %s is %s', coalesce(wanted_type, 'class ' || wanted_class), min(pricing.describe_shape(c.asset_class))) END
    FROM (SELECT wanted_class AS asset_class WHERE wanted_class IS NOT NULL
          UNION SELECT r.asset_class FROM pricing.data_type_registry r
          WHERE wanted_class IS NULL AND CASE WHEN wanted_type IS NULL THEN r.is_active ELSE r.data_type = wanted_type END) c
$$;
COMMENT ON FUNCTION pricing.describe_misfit(text, text, text) IS
    'Why watching does not make a symbol known: how symbols of a data type or of a class look, if this one cannot be one of them, or of no data type if none is named. NULL = watching makes it known.';


CREATE OR REPLACE FUNCTION pricing.meant_symbol(asset_class text, symbol text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = '' AS $$
    SELECT min(g.guess) FROM (
        SELECT CASE asset_class
            -- BRK/B; AAPL/
            WHEN 'equity' THEN replace(rtrim(upper(symbol), '/'), '/', '.')
            -- EURUSD, eur-usd, EURUSD=X; BTCUSD, btc_usd
            WHEN 'fx' THEN regexp_replace(upper(symbol), '^([A-Z]{3})[^A-Z0-9]?([A-Z]{3})(=X)?$', '\1/\2')
            WHEN 'crypto' THEN regexp_replace(upper(symbol), '^([A-Z0-9]+?)[^A-Z0-9]?(USDT|USDC|USD|EUR|GBP|JPY|INR|BTC|ETH)$', '\1/\2')
            WHEN 'fund' THEN regexp_replace(symbol, '[^0-9]', '', 'g') END) AS g (guess)
    WHERE EXISTS (SELECT FROM pricing.instruments i WHERE (i.asset_class, i.symbol) = (meant_symbol.asset_class, g.guess))
$$;
COMMENT ON FUNCTION pricing.meant_symbol(text, text) IS
    'The instrument of an asset class that somebody may have meant who spelled a symbol so; NULL = nobody knows.';


CREATE OR REPLACE FUNCTION pricing.say_meant(asset_class text, symbol text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = '' AS $$
    SELECT coalesce(
        (SELECT format('%s is an instrument of %s.', min(i.symbol), string_agg(r.data_type, ', ' ORDER BY r.data_type))
         FROM pricing.instruments i JOIN pricing.data_type_registry r USING (asset_class)
         WHERE i.symbol = pricing.spelled(say_meant.symbol) AND i.asset_class <> say_meant.asset_class AND r.is_active
         HAVING count(*) > 0),
        'Did you mean ' || pricing.meant_symbol(asset_class, symbol) || '?')
$$;
COMMENT ON FUNCTION pricing.say_meant(text, text) IS
    'What to say to somebody whose symbol does not fit an asset class: the data types of other classes that have it, or an instrument of this class with a like spelling; NULL = nobody knows.';


CREATE OR REPLACE FUNCTION pricing.check_shapes(data_types text[], symbols text[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = '' SET enable_seqscan = off AS $$
DECLARE
    odd record;
BEGIN
    -- What is an instrument already stays one.
    SELECT u.symbol, u.data_type, r.asset_class, pricing.say_meant(r.asset_class, u.symbol) AS meant INTO odd
    FROM unnest(data_types, symbols) AS u (data_type, symbol) JOIN pricing.data_type_registry r USING (data_type)
    WHERE NOT pricing.fits_class(r.asset_class, u.symbol)
      AND NOT EXISTS (SELECT FROM pricing.instruments i WHERE (i.asset_class, i.symbol) = (r.asset_class, u.symbol) OFFSET 0)
    ORDER BY 1, 2 LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '% is no symbol of %: that is %', left(odd.symbol, 60), odd.data_type, pricing.describe_shape(odd.asset_class)
            USING HINT = coalesce(odd.meant, '`pricing-pipeline type list` shows the data types; another one may be meant.'),
                  ERRCODE = 'check_violation', CONSTRAINT = 'symbol_fits_class';
    END IF;
END $$;
COMMENT ON FUNCTION pricing.check_shapes(text[], text[]) IS
    'Refuses, where somebody asks for it, a new symbol that cannot be one of its data type, and says how it should look.';


CREATE OR REPLACE FUNCTION pricing.judge_symbols(data_types text[], symbols text[])
RETURNS TABLE (place integer, data_type text, given text, symbol text, outcome text, reason text, proposal text)
LANGUAGE plpgsql STABLE SET search_path = '' SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT u.place::integer, u.data_type, u.given, CASE WHEN f.fits THEN u.symbol END,
           CASE WHEN f.fits THEN 'accepted' ELSE 'refused' END,
           CASE WHEN f.fits THEN NULL
                WHEN NOT pricing.is_sane_symbol(u.symbol) THEN pricing.describe_sane_symbol()
                ELSE pg_catalog.format('a symbol of %s is %s', u.data_type, pricing.describe_shape(r.asset_class)) END,
           CASE WHEN NOT f.fits THEN pricing.meant_symbol(r.asset_class, u.given) END
    FROM unnest(data_types, symbols, pricing.spelled(data_types, symbols)) WITH ORDINALITY AS u (data_type, given, symbol, place)
    JOIN pricing.data_type_registry r USING (data_type)
    CROSS JOIN LATERAL (
        SELECT EXISTS (SELECT FROM pricing.instruments i WHERE (i.asset_class, i.symbol) = (r.asset_class, u.symbol) OFFSET 0)
            OR (pricing.is_sane_symbol(u.symbol) AND pricing.fits_class(r.asset_class, u.symbol)) AS fits) f
    ORDER BY 1;
END $$;
COMMENT ON FUNCTION pricing.judge_symbols(text[], text[]) IS
    'What becomes of symbols that somebody names for data types: accepted, doubtful or refused, the canonical spelling, why, and what would do.';


CREATE OR REPLACE FUNCTION pricing.check_user(user_id text) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
BEGIN
    IF length(user_id) BETWEEN 1 AND 200 IS NOT TRUE THEN
        RAISE EXCEPTION 'a user''s name has 1 to 200 characters, not %', coalesce(length(user_id)::text, 'NULL')
            USING HINT = 'Give whose it is; any name will do.', ERRCODE = 'check_violation', CONSTRAINT = 'user_is_sane';
    END IF;
END $$;
COMMENT ON FUNCTION pricing.check_user(text) IS 'Refuses a name that no user has.';


CREATE OR REPLACE FUNCTION pricing.spelled(data_types text[], symbols text[]) RETURNS text[]
LANGUAGE plpgsql STABLE SET search_path = '' SET enable_seqscan = off AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM unnest(symbols) AS s WHERE s <> upper(s)) THEN
        RETURN symbols;
    END IF;
    RETURN (
        SELECT array_agg(CASE
            WHEN u.symbol = upper(u.symbol) OR r.asset_class IS NULL
              OR EXISTS (SELECT FROM pricing.instruments i WHERE (i.asset_class, i.symbol) = (r.asset_class, u.symbol) OFFSET 0) THEN u.symbol
            -- Of the classes that we know no symbol has small letters.
            WHEN (pricing.describe_shape(r.asset_class) IS NOT NULL AND pricing.fits_class(r.asset_class, upper(u.symbol)))
              OR EXISTS (SELECT FROM pricing.instruments i WHERE (i.asset_class, i.symbol) = (r.asset_class, upper(u.symbol)) OFFSET 0)
                THEN upper(u.symbol)
            ELSE u.symbol END ORDER BY u.place)
        FROM unnest(data_types, symbols) WITH ORDINALITY AS u (data_type, symbol, place)
        LEFT JOIN pricing.data_type_registry r USING (data_type));
END $$;
COMMENT ON FUNCTION pricing.spelled(text[], text[]) IS
    'Symbols as their instruments are spelled: aapl is AAPL where no instrument is called aapl. So nobody makes a second one by small letters.';


CREATE OR REPLACE FUNCTION pricing.spelled(symbol text) RETURNS text
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT CASE WHEN NOT EXISTS (SELECT FROM pricing.instruments i WHERE i.symbol = spelled.symbol)
                 AND EXISTS (SELECT FROM pricing.instruments i WHERE i.symbol = upper(spelled.symbol)) THEN upper(spelled.symbol)
                ELSE spelled.symbol END
$$;
COMMENT ON FUNCTION pricing.spelled(text) IS 'A symbol as its instruments are spelled, in whatever class they are.';


CREATE OR REPLACE FUNCTION pricing.symbols_by_type(data_types text[], symbols text[])
RETURNS TABLE (data_type text, symbol text)
LANGUAGE plpgsql STABLE SET search_path = '' SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    pairs record;
    known record;
    odd record;
BEGIN
    SELECT array_agg(t.data_type ORDER BY t.place, s.place) AS types, array_agg(s.symbol ORDER BY t.place, s.place) AS named INTO pairs
    FROM unnest(data_types) WITH ORDINALITY AS t (data_type, place) CROSS JOIN unnest(symbols) WITH ORDINALITY AS s (symbol, place);
    SELECT array_agg(u.data_type ORDER BY u.place) AS types, array_agg(u.symbol ORDER BY u.place) AS symbols,
           coalesce(array_agg(u.named), '{}') AS named INTO known
    FROM unnest(pairs.types, pairs.named, pricing.spelled(pairs.types, pairs.named)) WITH ORDINALITY AS u (data_type, named, symbol, place)
    JOIN pricing.data_type_registry r USING (data_type)
    JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, u.symbol);
    SELECT count(*), (array_agg(s.symbol ORDER BY s.symbol))[:5] AS some, min(s.symbol) AS first INTO odd
    FROM (SELECT DISTINCT left(u, 60) AS symbol FROM unnest(symbols) u WHERE u <> ALL (known.named)) s;
    IF odd.count > 0 THEN
        RAISE EXCEPTION 'no % instrument is called %',
            (SELECT string_agg(DISTINCT r.asset_class, ' or ') FROM pricing.data_type_registry r WHERE r.data_type = ANY (data_types)),
            array_to_string(odd.some, ', ') || CASE WHEN odd.count > 5 THEN format(' and %s more', odd.count - 5) ELSE '' END
            USING HINT = (
                SELECT CASE WHEN h.fits THEN format('Watching it makes it known: pricing-pipeline subscription watch %s --type %s', h.symbol, r.data_type)
                            ELSE format('A symbol of %s is %s', r.data_type, pricing.describe_shape(r.asset_class))
                                 || coalesce('. ' || h.meant, '') END
                FROM pricing.data_type_registry r
                CROSS JOIN LATERAL (SELECT (pricing.spelled(ARRAY[r.data_type::text], ARRAY[odd.first]))[1] AS symbol) s
                CROSS JOIN LATERAL (
                    SELECT s.symbol, pricing.fits_class(r.asset_class, s.symbol) AS fits, pricing.say_meant(r.asset_class, s.symbol) AS meant) h
                WHERE r.data_type = ANY (data_types)
                ORDER BY h.fits DESC, h.meant IS NULL, array_position(data_types, r.data_type::text) LIMIT 1),
                ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY SELECT DISTINCT k.data_type, k.symbol FROM unnest(known.types, known.symbols) AS k (data_type, symbol) ORDER BY 1, 2;
END $$;
COMMENT ON FUNCTION pricing.symbols_by_type(text[], text[]) IS
    'The instruments of some data types that somebody means who names symbols for them, each as it is spelled. A symbol that no one of the types has is refused, in words that say the way out.';


CREATE OR REPLACE FUNCTION pricing.remove_instruments(symbols text[], only_class text DEFAULT NULL)
RETURNS TABLE (asset_class text, symbol text, outcome text, viewers bigint, holders bigint)
-- With the owner's rights: no worker deletes instruments otherwise.
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET lock_timeout = '1s' AS $$
#variable_conflict use_column
DECLARE
    thing record;
    types text[];
BEGIN
    FOR thing IN
        SELECT i.asset_class, i.symbol, i.is_active FROM pricing.instruments i
        WHERE i.symbol = ANY (symbols) AND (only_class IS NULL OR i.asset_class = only_class) ORDER BY 1, 2
    LOOP
        asset_class := thing.asset_class;
        symbol := thing.symbol;
        types := ARRAY(SELECT r.data_type FROM pricing.data_type_registry r WHERE r.asset_class = thing.asset_class);
        -- Paused first, in the order of locks that pausing has: what waits is cancelled.
        PERFORM pricing.pause_instruments(ARRAY[thing.symbol], true, thing.asset_class);
        WITH gone AS (DELETE FROM pricing.active_subscriptions a WHERE a.data_type = ANY (types) AND a.symbol = thing.symbol RETURNING a.user_id)
        SELECT count(DISTINCT g.user_id) INTO viewers FROM gone g;
        WITH closed AS (
            UPDATE pricing.holdings h SET closed_at = pricing.clock(), status = 'closed'
            WHERE h.data_type = ANY (types) AND h.active_symbol = thing.symbol RETURNING h.user_id)
        SELECT count(DISTINCT c.user_id) INTO holders FROM closed c;
        DELETE FROM pricing.pair_requests p WHERE p.data_type = ANY (types) AND p.symbol = thing.symbol;
        DELETE FROM pricing.demand d WHERE d.data_type = ANY (types) AND d.symbol = thing.symbol;
        UPDATE pricing.api_call_queue_dead q SET resolved_at = pricing.clock()
        WHERE q.data_type = ANY (types) AND q.symbol = thing.symbol AND q.resolved_at IS NULL;
        IF EXISTS (SELECT FROM pricing.price_history h WHERE h.data_type = ANY (types) AND h.symbol = thing.symbol)
           OR EXISTS (SELECT FROM pricing.documents d WHERE d.data_type = ANY (types) AND d.symbol = thing.symbol)
           -- What is stored of other contents has been confirmed; of a company that may have brought no document.
           OR EXISTS (SELECT FROM pricing.confirmed_pairs c JOIN pricing.data_type_registry r USING (data_type)
                      WHERE c.data_type = ANY (types) AND c.symbol = thing.symbol AND r.contents <> 'documents')
           OR EXISTS (SELECT FROM pricing.corporate_actions c WHERE (c.asset_class, c.symbol) = (thing.asset_class, thing.symbol))
        THEN
            outcome := CASE WHEN thing.is_active THEN 'retired' ELSE 'retired_already' END;
            UPDATE pricing.instruments i SET is_active = false WHERE (i.asset_class, i.symbol) = (thing.asset_class, thing.symbol);
            -- Nobody shall take its last price for one of today.
            DELETE FROM pricing.latest_prices l WHERE l.data_type = ANY (types) AND l.symbol = thing.symbol;
        ELSE
            outcome := 'removed';
            DELETE FROM pricing.instruments i WHERE (i.asset_class, i.symbol) = (thing.asset_class, thing.symbol);
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.remove_instruments(text[], text) IS
    'Takes instruments out: ends what is watched and held of them, cancels what waits, settles what has failed, and removes those without history; others are retired, so that nothing is fetched of them and their history stays. Says which, and how many users that concerns.';
