-- How symbols are spelled: what fits an asset class, and one spelling for each instrument, for all who name a symbol.

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
    'Currencies that an exchange rate may name: the three-letter codes of providers/currencies.py (a test compares '
    'them).';


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
    'Whether a symbol can belong to an asset class: tickers for equities, numbers for funds, pairs for coins and '
    'exchange rates, anything for a class of your own.';


CREATE OR REPLACE FUNCTION pricing.describe_shape(asset_class text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = '' AS $$
    SELECT CASE asset_class
        WHEN 'equity' THEN 'shares have tickers without a slash, such as AAPL or BRK.B'
        WHEN 'fund' THEN 'funds have the numbers of their schemes, such as 118632'
        WHEN 'crypto' THEN 'coins stand beside what they are priced in, as in BTC/USD'
        WHEN 'fx' THEN 'exchange rates are of two known currencies, such as EUR/USD' END
$$;
COMMENT ON FUNCTION pricing.describe_shape(text) IS 'How symbols of an asset class look, for people; NULL = any way.';


CREATE OR REPLACE FUNCTION pricing.is_sane_symbol(symbol text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = '' AS $$
    SELECT length(symbol) BETWEEN 1 AND 40
       AND symbol ~ '^[A-Za-z0-9^]([A-Za-z0-9./:=^_&''-]*|( ?[A-Za-z0-9.&''-])*:[A-Z0-9]{4})$'
$$;
COMMENT ON FUNCTION pricing.is_sane_symbol(text) IS 'Whether an instrument of any class may have this symbol.';


CREATE OR REPLACE FUNCTION pricing.describe_sane_symbol() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = '' AS $$
    SELECT 'a symbol has 1 to 40 letters, digits, spaces and . / : = ^ _ & '' -, and begins with a letter, a digit or ^'
$$;
COMMENT ON FUNCTION pricing.describe_sane_symbol() IS 'How symbols look in every class, for people.';


CREATE OR REPLACE FUNCTION pricing.coins() RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = '' AS $$
    SELECT '{ADA,BCH,BNB,BTC,DAI,DOT,EOS,ETC,ETH,LTC,SOL,TON,TRX,UNI,XLM,XMR,XRP,BUSD,FDUSD,TUSD,USDC,USDT}'::text[]
$$;
COMMENT ON FUNCTION pricing.coins() IS
    'Coins in which prices are quoted, as in providers/currencies.py (a test compares them).';


CREATE OR REPLACE FUNCTION pricing.read_pair(given text, OUT base text, OUT quote text)
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
DECLARE
    rest text := btrim(regexp_replace(given, '^(CURRENCY|FX|CRYPTO):|( CURNCY|=X)$', '', 'g'));
    codes text[] := pricing.known_currencies() || pricing.coins();
    parts text[];
BEGIN
    IF given ~ '^[A-Z]{3}=X$' AND rest <> 'USD' AND rest = ANY (codes) THEN
        base := 'USD';
        quote := rest;
        RETURN;
    END IF;
    parts := regexp_match(rest, '^([A-Z0-9]{1,20}) ?[/_-] ?([A-Z0-9]{3,5})$');
    IF parts IS NULL OR parts[2] <> ALL (codes) THEN
        -- EUR.USD, EURUSD
        parts := regexp_match(rest, '^([A-Z]{3})[. ]?([A-Z]{3})$');
        IF parts IS NULL OR NOT parts <@ codes THEN
            parts := regexp_match(rest, '^([A-Z]{3})(USDT|USDC)$');
        END IF;
        IF parts IS NULL OR NOT parts <@ codes THEN
            RETURN;
        END IF;
    END IF;
    base := parts[1];
    quote := parts[2];
END $$;
COMMENT ON FUNCTION pricing.read_pair(text) IS
    'The two sides of an obvious pair, in capital letters: EUR/USD, EURUSD, EUR.USD, EURUSD=X, BTC-USD; NULL = not a '
    'pair.';


CREATE OR REPLACE FUNCTION pricing.exchanges_marked(ending text) RETURNS text[]
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT array_agg(e.mic ORDER BY e.mic) FROM pricing.exchanges e
    WHERE exchanges_marked.ending = ANY (e.endings)
$$;
COMMENT ON FUNCTION pricing.exchanges_marked(text) IS
    'The MICs of the exchanges that this ending in capital letters means, such as .L, :LSE, :XLON, or LN after a '
    'space; NULL = none.';


CREATE OR REPLACE FUNCTION pricing.capital(given text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = '' AS $$
    SELECT translate(btrim(regexp_replace(given, ' +', ' ', 'g')),
                     'abcdefghijklmnopqrstuvwxyz', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ')
$$;
COMMENT ON FUNCTION pricing.capital(text) IS 'A typed symbol in ASCII capitals and with single spaces.';


CREATE OR REPLACE FUNCTION pricing.looks_like_identifier(given text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = '' AS $$
    SELECT given ~ '^[A-Z]{2}[A-Z0-9]{9}[0-9]$'
$$;
COMMENT ON FUNCTION pricing.looks_like_identifier(text) IS 'Whether this has the form of an ISIN or a FIGI.';


CREATE OR REPLACE FUNCTION pricing.read_share(
    given text, OUT symbol text, OUT doubt text, OUT fault text, OUT proposal text)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    parts text[];
    ticker text := given;
    class text;
    behind text[];
    before text[];
    mics text[];
    named text;
    place text;
BEGIN
    -- Indices, futures: ^GSPC, GC=F. They have one spelling.
    IF given ~ '[\^=]' THEN
        symbol := CASE WHEN given ~ '^(\^[A-Z0-9][A-Z0-9.&-]*|[A-Z0-9][A-Z0-9.&-]*=F)$'
                            AND pricing.is_sane_symbol(given)
                       THEN given END;
        fault := CASE WHEN symbol IS NULL THEN 'an index is written as ^GSPC, and a future as GC=F' END;
        RETURN;
    END IF;
    IF given LIKE '%:%' THEN
        given := regexp_replace(given, ' *: *', ':', 'g');
        parts := string_to_array(given, ':');
        behind := pricing.exchanges_marked(':' || parts[2]);
        before := pricing.exchanges_marked(':' || parts[1]);
        -- NYSE:ASX may be the share ASX in New York, or NYSE in Sydney; a MIC tells.
        IF behind <> ARRAY[parts[2]] AND before = ARRAY[parts[1]] THEN
            behind := NULL;
        ELSIF behind = ARRAY[parts[2]] THEN
            before := NULL;
        END IF;
        IF cardinality(parts) <> 2 OR '' = ANY (parts) THEN
            fault := 'a colon stands between a ticker and its exchange, as in VOD:XLON';
            RETURN;
        ELSIF behind IS NOT NULL AND before IS NOT NULL THEN
            fault := format('%s and %s are both names of exchanges; name the exchange by its MIC, after the colon',
                            parts[1], parts[2]);
            proposal := (pricing.read_share(parts[2] || ':' || before[1])).symbol;
            RETURN;
        ELSIF behind IS NULL AND before IS NULL THEN
            IF parts[2] !~ '^[A-Z0-9]{4}$' THEN
                fault := format('there is no exchange %s; the exchange stands after the colon by its MIC, as in '
                                'VOD:XLON', parts[2]);
                RETURN;
            END IF;
            doubt := format('the exchange %s is not in our table of exchanges, so no provider has its own spelling '
                            'of it', parts[2]);
            place := parts[2];
        END IF;
        mics := coalesce(behind, before);
        ticker := CASE WHEN behind IS NULL AND place IS NULL THEN parts[2] ELSE parts[1] END;
        named := CASE WHEN behind IS NULL AND place IS NULL THEN parts[1] ELSE parts[2] END;
    END IF;
    -- VOD.L, VOD LN
    parts := regexp_match(ticker, '^(.+)([. ][A-Z]{1,3})$');
    IF parts[2] !~ '^[. ][ABC]$' THEN
        behind := pricing.exchanges_marked(parts[2]);
        IF behind IS NOT NULL AND mics IS NOT NULL AND NOT behind && mics THEN
            fault := format('%s names two exchanges, %s and %s', given, btrim(parts[2], '. '), named);
            RETURN;
        ELSIF behind IS NOT NULL AND place IS NULL THEN
            ticker := parts[1];
            mics := behind;
            named := btrim(parts[2], '. ');
        ELSIF mics IS NULL AND parts[2] LIKE ' %' THEN
            fault := format('%s is not a code of an exchange that we know', btrim(parts[2]));
            RETURN;
        ELSIF mics IS NULL AND place IS NULL THEN
            doubt := format('no exchange in our table is marked by %s', parts[2]);
            named := substr(parts[2], 2);
            proposal := coalesce((pricing.read_share(parts[1] || ' ' || named)).symbol,
                                 (pricing.read_share(parts[1] || ':' || named)).symbol);
        END IF;
    END IF;

    ticker := rtrim(ticker, './_ -');
    parts := regexp_match(ticker, '^(.+)[-./_ ]([ABC])$');
    class := coalesce('.' || parts[2], '');
    ticker := coalesce(rtrim(parts[1], './_ -'), ticker);
    -- An ending that is in none of our tables may be one that a provider knows.
    IF mics IS NOT NULL OR place IS NOT NULL OR doubt IS NULL THEN
        ticker := regexp_replace(ticker, '[./_ -]+', '-', 'g');
    END IF;
    IF NOT mics <@ pricing.exchanges_marked(' US') THEN
        IF cardinality(mics) > 1 THEN
            fault := format('%s names several exchanges: %s. Name one by its MIC', named, array_to_string(mics, ', '));
            proposal := ticker || class || ':' || mics[1];
            RETURN;
        END IF;
        place := mics[1];
    END IF;
    IF place = 'XHKG' AND ticker ~ '^[0-9]+$' THEN
        ticker := lpad(ltrim(ticker, '0'), greatest(4, length(ltrim(ticker, '0'))), '0');
    ELSIF place IS NULL AND class = '' AND doubt IS NULL AND ticker ~ '^[0-9]+$' THEN
        fault := 'no share of the United States has a number for a ticker; elsewhere its exchange belongs to the '
                 'symbol, as in 7203:XTKS';
        RETURN;
    END IF;
    symbol := ticker || class || coalesce(':' || place, '');
    IF (mics IS NULL AND given ~ ' [A-Z0-9]{2,}$')
        OR ((mics IS NOT NULL OR doubt IS NULL) AND ticker !~ '^[A-Z0-9]+([&''-][A-Z0-9]+)*$')
        -- A symbol that is a pair or a number without an exchange is the same with one.
        OR pricing.looks_like_identifier(symbol) OR (pricing.read_pair(symbol)).base IS NOT NULL
        OR NOT (pricing.fits_class('equity', symbol) AND pricing.is_sane_symbol(symbol)) THEN
        symbol := NULL;
        doubt := NULL;
        proposal := NULL;
        fault := pricing.describe_shape('equity');
    ELSIF place IS NULL AND doubt IS NULL AND ticker ~ '^[A-Z0-9]{6,}' THEN
        doubt := 'a ticker of the United States has at most five letters; elsewhere the exchange belongs to the '
                 'symbol, as in RELIANCE:XNSE';
    END IF;
END $$;
COMMENT ON FUNCTION pricing.read_share(text) IS
    'The canonical spelling of a share from any spelling in capital letters that our table of exchanges knows, with '
    'doubts; or why it has none, with a proposal.';


CREATE OR REPLACE FUNCTION pricing.plain_class(given text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    pair record := pricing.read_pair(given);
    share record;
BEGIN
    IF pair.base IS NOT NULL THEN
        RETURN CASE WHEN pair.base = ANY (pricing.known_currencies()) AND pair.base <> ALL (pricing.coins()) THEN 'fx'
                    ELSE 'crypto' END;
    ELSIF given ~ '^[0-9]{5,6}$' THEN
        RETURN 'fund';
    ELSIF pricing.is_isin(given) OR pricing.is_figi(given) THEN
        RETURN NULL;
    END IF;
    share := pricing.read_share(given);
    RETURN CASE WHEN share.symbol IS NOT NULL AND share.doubt IS NULL AND given !~ '[/_]' THEN 'equity' END;
END $$;
COMMENT ON FUNCTION pricing.plain_class(text) IS
    'The asset class that a symbol in capital letters obviously has: fx, crypto, fund or equity; NULL = not obvious.';


CREATE OR REPLACE FUNCTION pricing.read_symbol(asset_class text, given text,
    OUT symbol text, OUT doubt text, OUT fault text, OUT other_class text, OUT proposal text)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    cleaned text := pricing.capital(given);
    form text;
    pair record;
    share record;
    parts text[];
BEGIN
    IF pricing.describe_shape(asset_class) IS NULL THEN
        symbol := CASE WHEN pricing.is_sane_symbol(given) THEN given END;
        fault := CASE WHEN symbol IS NULL THEN pricing.describe_sane_symbol() END;
        RETURN;
    ELSIF cleaned !~ '^[A-Z0-9^][A-Z0-9./:=^_&'' -]*$' OR length(cleaned) > 60 THEN
        fault := pricing.describe_sane_symbol();
        RETURN;
    END IF;
    cleaned := regexp_replace(cleaned, ' EQUITY$', '');
    pair := pricing.read_pair(cleaned);
    IF asset_class = 'equity' AND pair.base IS NULL THEN
        share := pricing.read_share(cleaned);
        symbol := share.symbol;
        doubt := share.doubt;
        fault := share.fault;
        proposal := share.proposal;
    ELSIF asset_class = 'fx' THEN
        symbol := CASE WHEN pricing.fits_class('fx', pair.base || '/' || pair.quote)
                       THEN pair.base || '/' || pair.quote END;
        IF pair.base = ANY (pricing.coins()) AND symbol IS NOT NULL THEN
            doubt := format('%s is a coin, and coins are of the class crypto', pair.base);
            other_class := 'crypto';
        END IF;
    ELSIF asset_class = 'crypto' THEN
        IF pair.base IS NULL THEN
            -- DOGEUSD; and coins that are priced in what we do not know: BTC/XYZ
            parts := coalesce(regexp_match(cleaned, '^([A-Z0-9]{2,20})(USDT|USDC|USD|EUR|GBP|JPY|INR|BTC|ETH)$'),
                              regexp_match(cleaned, '^([A-Z0-9]{1,20})[/_-]([A-Z0-9]{2,10})$'));
            symbol := CASE WHEN parts[1] <> parts[2] THEN parts[1] || '/' || parts[2] END;
            doubt := CASE WHEN symbol IS NOT NULL
                          THEN format('it was taken for %s priced in %s', parts[1], parts[2]) END;
        ELSIF pair.base <> pair.quote
              AND (pair.base = ANY (pricing.coins()) OR pair.base <> ALL (pricing.known_currencies())) THEN
            symbol := pair.base || '/' || pair.quote;
        END IF;
    ELSIF asset_class = 'fund' THEN
        symbol := substring(cleaned, '^[0-9]{1,12}$');
        proposal := CASE WHEN symbol IS NULL THEN substring(cleaned, '^[A-Z]+[ :_-]?([0-9]{5,6})$') END;
    END IF;
    -- Half of a pair.
    IF asset_class IN ('fx', 'crypto') AND symbol IS NULL
       AND cleaned = ANY (CASE asset_class WHEN 'crypto' THEN pricing.coins() ELSE pricing.known_currencies() END) THEN
        proposal := cleaned || CASE cleaned WHEN 'USD' THEN '/EUR' ELSE '/USD' END;
    END IF;
    IF symbol IS NULL THEN
        fault := coalesce(fault, pricing.describe_shape(asset_class));
        form := pricing.plain_class(cleaned);
        IF proposal IS NULL AND form <> asset_class THEN
            proposal := (pricing.read_symbol(form, cleaned)).symbol;
            other_class := CASE WHEN proposal IS NOT NULL THEN form END;
        END IF;
    END IF;
END $$;
COMMENT ON FUNCTION pricing.read_symbol(text, text) IS
    'The canonical spelling of a symbol of an asset class, known or not, with doubts; or why there is none, with a '
    'proposal.';


CREATE OR REPLACE FUNCTION pricing.check_digit(digits text) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT SET search_path = '' AS $$
    SELECT ((10 - sum(d.value / 10 + d.value % 10) % 10) % 10)::integer
    FROM (SELECT substr(digits, n, 1)::integer * (CASE WHEN (length(digits) - n) % 2 = 0 THEN 2 ELSE 1 END) AS value
          FROM generate_series(1, length(digits)) AS n) d
$$;
COMMENT ON FUNCTION pricing.check_digit(text) IS 'The check digit by Luhn''s rule.';


CREATE OR REPLACE FUNCTION pricing.is_isin(given text) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT SET search_path = '' AS $$
    -- Letters count as two digits: A is 10.
    SELECT CASE WHEN given ~ '^[A-Z]{2}[A-Z0-9]{9}[0-9]$' THEN
        right(given, 1)::integer = pricing.check_digit((
            SELECT string_agg(CASE WHEN c ~ '[0-9]' THEN c ELSE (ascii(c) - 55)::text END, '' ORDER BY n)
            FROM regexp_split_to_table(left(given, 11), '') WITH ORDINALITY AS u (c, n)))
    ELSE false END
$$;
COMMENT ON FUNCTION pricing.is_isin(text) IS 'Whether this is an ISIN (ISO 6166), with its check digit.';


CREATE OR REPLACE FUNCTION pricing.is_figi(given text) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT SET search_path = '' AS $$
    SELECT CASE WHEN given ~ '^(?!BS|BM|GG|GB|GH|KY|VG)[B-DF-HJ-NP-TV-Z]{2}G[B-DF-HJ-NP-TV-Z0-9]{8}[0-9]$' THEN
        right(given, 1)::integer = (
            SELECT (10 - sum(v.value / 10 + v.value % 10) % 10) % 10
            FROM (SELECT (CASE WHEN c ~ '[0-9]' THEN c::integer ELSE ascii(c) - 55 END)
                         * (CASE WHEN n % 2 = 0 THEN 2 ELSE 1 END) AS value
                  FROM regexp_split_to_table(left(given, 11), '') WITH ORDINALITY AS u (c, n)) v)
    ELSE false END
$$;
COMMENT ON FUNCTION pricing.is_figi(text) IS 'Whether this is a FIGI (ANSI X9.145), with its check digit.';


CREATE OR REPLACE FUNCTION pricing.check_identifiers(isin text, figi text) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
BEGIN
    IF NOT pricing.is_isin(isin) OR NOT pricing.is_figi(figi) THEN
        RAISE EXCEPTION '% is not a valid %: its form or its check digit is wrong',
            quote_literal(left(CASE WHEN pricing.is_isin(isin) IS FALSE THEN isin ELSE figi END, 60)),
            CASE WHEN pricing.is_isin(isin) IS FALSE THEN 'ISIN' ELSE 'FIGI' END
            USING HINT = 'Compare it with the document that it is from.', ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;
COMMENT ON FUNCTION pricing.check_identifiers(text, text) IS
    'Refuses identifiers with a wrong check digit; NULL = not given.';


CREATE OR REPLACE FUNCTION pricing.spellings_of(symbol text) RETURNS text[]
LANGUAGE plpgsql STABLE SET search_path = '' SET enable_seqscan = off AS $$
DECLARE
    ticker text := split_part(symbol, ':', 1);
    place text := nullif(split_part(symbol, ':', 2), '');
    mics text[] := CASE WHEN place IS NULL THEN pricing.exchanges_marked(' US') ELSE ARRAY[place] END;
    tickers text[] := ARRAY[ticker];
BEGIN
    IF ticker ~ '[.-]' THEN
        tickers := ARRAY(
            SELECT DISTINCT t FROM unnest(ARRAY['-', '/', '_', ' ', '.']) AS sign
            CROSS JOIN LATERAL unnest(ARRAY[ticker,
                                            regexp_replace(ticker, '[.]([ABC])$', sign || '\1'),
                                            replace(ticker, '-', sign),
                                            translate(ticker, '-.', sign || sign)]) AS t);
    END IF;
    RETURN CASE WHEN place IS NULL THEN tickers ELSE '{}' END || ARRAY(
        SELECT CASE WHEN b.before THEN substr(n.ending, 2) || ':' || t ELSE t || n.ending END
        FROM (SELECT e.mic, unnest(e.endings) AS ending FROM pricing.exchanges e) n
        CROSS JOIN unnest(tickers) AS t
        CROSS JOIN (VALUES (true), (false)) AS b (before)
        WHERE n.mic = ANY (mics) AND (n.ending LIKE ':%' OR NOT b.before));
END $$;
COMMENT ON FUNCTION pricing.spellings_of(text) IS
    'All spellings of a share that our tables can produce from the canonical one: each name of its exchange, and each '
    'sign before its class.';


CREATE OR REPLACE FUNCTION pricing.judge_symbols(data_types text[], symbols text[])
RETURNS TABLE (place integer, data_type text, given text, symbol text, outcome text, reason text, proposal text)
LANGUAGE plpgsql STABLE SET search_path = '' SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    pair record;
    read record;
    found_ text[];
    cleaned text;
    other text;
    spellings text[];
BEGIN
    FOR pair IN
        SELECT u.place, u.data_type, u.symbol AS given, r.asset_class,
               EXISTS (SELECT FROM pricing.instruments i
                       WHERE (i.asset_class, i.symbol) = (r.asset_class, u.symbol) OFFSET 0) AS is_known
        FROM unnest(data_types, symbols) WITH ORDINALITY AS u (data_type, symbol, place)
        LEFT JOIN pricing.data_type_registry r ON r.data_type = u.data_type ORDER BY u.place
    LOOP
        place := pair.place;
        data_type := pair.data_type;
        given := pair.given;
        symbol := CASE WHEN pair.is_known THEN pair.given END;
        outcome := 'accepted';
        reason := NULL;
        proposal := NULL;
        IF pair.is_known THEN
            RETURN NEXT;
            CONTINUE;
        ELSIF pair.asset_class IS NULL OR pair.given IS NULL THEN
            outcome := 'refused';
            reason := CASE WHEN pair.given IS NULL THEN 'it is NULL'
                           ELSE 'there is no such data type; `pricing-pipeline type list` lists them' END;
            RETURN NEXT;
            CONTINUE;
        END IF;
        SELECT a.symbol INTO symbol FROM pricing.symbol_aliases a
        WHERE a.asset_class = pair.asset_class AND a.alias IN (pair.given, pricing.capital(pair.given))
        ORDER BY a.alias <> pair.given LIMIT 1;
        IF symbol IS NOT NULL THEN
            RETURN NEXT;
            CONTINUE;
        END IF;
        -- An ISIN or a FIGI; in a class of your own it may be the symbol itself.
        cleaned := pricing.capital(pair.given);
        IF pricing.looks_like_identifier(cleaned) THEN
            SELECT array_agg(i.symbol ORDER BY i.symbol) INTO found_ FROM pricing.instruments i
            WHERE i.asset_class = pair.asset_class AND (i.isin = cleaned OR i.figi = cleaned);
            IF cardinality(found_) = 1 THEN
                symbol := found_[1];
                RETURN NEXT;
                CONTINUE;
            ELSIF cardinality(found_) > 1 OR pair.asset_class IN ('equity', 'fund') THEN
                SELECT pricing.type_for(i.asset_class) AS data_type, i.symbol, i.asset_class INTO read
                FROM pricing.instruments i
                WHERE found_ IS NULL AND (i.isin = cleaned OR i.figi = cleaned) ORDER BY 1, 2 LIMIT 1;
                outcome := 'refused';
                proposal := coalesce(read.data_type || ':' || read.symbol, found_[1]);
                reason := CASE
                    WHEN found_ IS NOT NULL
                        THEN format('it is the number of several instruments: %s', array_to_string(found_, ', '))
                    WHEN read.symbol IS NOT NULL
                        THEN format('it is the number of %s, which is of the class %s', read.symbol, read.asset_class)
                    WHEN NOT pricing.is_isin(cleaned) AND NOT pricing.is_figi(cleaned)
                        THEN 'it looks like an ISIN or a FIGI, but its check digit is wrong'
                    ELSE format('no instrument is known by this number. `pricing-pipeline instrument find %s` looks '
                                'for it, and `pricing-pipeline instrument add SYMBOL --asset-class CLASS %s %s` tells '
                                'which instrument it is of',
                                cleaned, CASE WHEN pricing.is_figi(cleaned) THEN '--figi' ELSE '--isin' END,
                                cleaned) END;
                RETURN NEXT;
                CONTINUE;
            END IF;
        END IF;
        read := pricing.read_symbol(pair.asset_class, pair.given);
        IF read.symbol IS NULL THEN
            outcome := 'refused';
            reason := read.fault;
            IF read.other_class IS NULL THEN
                proposal := read.proposal;
            ELSE
                other := pricing.type_for(read.other_class);
                proposal := other || ':' || read.proposal;
                reason := reason || format('. %s is of the class %s', read.proposal, read.other_class)
                    || CASE WHEN other IS NULL THEN ', which no data type is for' ELSE '' END;
            END IF;
            RETURN NEXT;
            CONTINUE;
        END IF;
        spellings := ARRAY[read.symbol, cleaned]
            || CASE WHEN pair.asset_class = 'equity' THEN pricing.spellings_of(read.symbol) END;
        -- An index lookup for each, however few instruments there were when this was planned.
        SELECT k.symbol INTO symbol
        FROM unnest(spellings) AS s (spelling)
        CROSS JOIN LATERAL (SELECT i.symbol FROM pricing.instruments i
                            WHERE (i.asset_class, i.symbol) = (pair.asset_class, s.spelling)
                            UNION ALL
                            SELECT a.symbol FROM pricing.symbol_aliases a
                            WHERE (a.asset_class, a.alias) = (pair.asset_class, s.spelling)) k
        ORDER BY k.symbol <> read.symbol, k.symbol LIMIT 1;
        IF symbol IS NULL THEN
            symbol := read.symbol;
            reason := read.doubt;
            outcome := CASE WHEN reason IS NULL THEN 'accepted' ELSE 'doubtful' END;
            proposal := coalesce(pricing.type_for(read.other_class) || ':' || read.symbol, read.proposal);
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.judge_symbols(text[], text[]) IS
    'What each pair of data type and symbol means: accepted, doubtful (accepted, with a reason) or refused (with a '
    'reason and a proposal), and the canonical symbol.';


CREATE OR REPLACE FUNCTION pricing.type_for(asset_class text) RETURNS text
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT r.data_type FROM pricing.data_type_registry r
    WHERE r.asset_class = type_for.asset_class AND r.is_active AND r.contents = 'prices'
    ORDER BY r.default_ttl_minutes, r.data_type LIMIT 1
$$;
COMMENT ON FUNCTION pricing.type_for(text) IS
    'The active data type with the freshest prices of an asset class; NULL = none.';


CREATE OR REPLACE FUNCTION pricing.describe_misfit(
    symbol text, wanted_type text DEFAULT NULL, wanted_class text DEFAULT NULL)
RETURNS text
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT CASE
        WHEN count(*) = 0 OR bool_or(j.outcome <> 'refused') THEN NULL
        WHEN coalesce(wanted_type, wanted_class) IS NOT NULL THEN min(j.reason)
        WHEN count(DISTINCT j.reason) FILTER (WHERE NOT j.is_of_shape) = 1
            THEN min(j.reason) FILTER (WHERE NOT j.is_of_shape)
        ELSE 'it looks like a symbol of no data type; `pricing-pipeline type list` lists them' END
    FROM (
        SELECT k.outcome, k.reason, starts_with(k.reason, pricing.describe_shape(r.asset_class)) AS is_of_shape
        FROM (SELECT coalesce(array_agg(t.data_type), '{}') AS names
              FROM (SELECT min(r.data_type) AS data_type FROM pricing.data_type_registry r
                    WHERE CASE WHEN wanted_type IS NOT NULL THEN r.data_type = wanted_type
                               WHEN wanted_class IS NOT NULL THEN r.asset_class = wanted_class
                               -- Any symbol fits the other classes, so its form decides nothing.
                               ELSE r.is_active AND pricing.describe_shape(r.asset_class) IS NOT NULL END
                    GROUP BY r.asset_class) t) types
        CROSS JOIN pricing.judge_symbols(types.names, array_fill(symbol, ARRAY[cardinality(types.names)])) k
        JOIN pricing.data_type_registry r USING (data_type)) j
$$;
COMMENT ON FUNCTION pricing.describe_misfit(text, text, text) IS
    'Why judge_symbols refuses a symbol for a data type or class, or for all if none is named; NULL = watching adds '
    'it.';


CREATE OR REPLACE FUNCTION pricing.check_shapes(data_types text[], symbols text[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    odd record;
BEGIN
    SELECT j.*, count(*) OVER () AS times INTO odd FROM pricing.judge_symbols(data_types, symbols) j
    WHERE j.outcome <> 'accepted' ORDER BY j.outcome = 'doubtful', j.given, j.data_type LIMIT 1;
    IF odd.outcome = 'refused' THEN
        RAISE EXCEPTION '% is not a symbol of %: %', left(odd.given, 60), odd.data_type, odd.reason
            USING HINT = coalesce(
                      pricing.say_meant(odd.proposal),
                      '`pricing-pipeline type list` shows the data types; another one may be meant.'),
                  ERRCODE = 'check_violation', CONSTRAINT = 'symbol_fits_class';
    ELSIF odd.outcome = 'doubtful' THEN
        RAISE NOTICE '%', format('%s is accepted, but doubtful: %s', odd.symbol, odd.reason)
            || CASE WHEN odd.times > 1 THEN format('; and so are %s more', odd.times - 1) ELSE '' END;
    END IF;
END $$;
COMMENT ON FUNCTION pricing.check_shapes(text[], text[]) IS
    'Refuses a new symbol that its data type cannot have, with a proposal, and warns of doubtful ones.';


CREATE OR REPLACE FUNCTION pricing.say_meant(proposal text) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT CASE WHEN proposal ~ '^[a-z]'
                THEN format('Did you mean %s of the data type %s?',
                            substr(proposal, strpos(proposal, ':') + 1), split_part(proposal, ':', 1))
                ELSE 'Did you mean ' || proposal || '?' END
$$;
COMMENT ON FUNCTION pricing.say_meant(text) IS 'A proposal of judge_symbols as a question; NULL = none.';


CREATE OR REPLACE FUNCTION pricing.check_user(user_id text) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
BEGIN
    IF length(user_id) BETWEEN 1 AND 200 IS NOT TRUE THEN
        RAISE EXCEPTION 'a user''s name has 1 to 200 characters, not %', coalesce(length(user_id)::text, 'NULL')
            USING HINT = 'Name the user; any name will do.', ERRCODE = 'check_violation',
                CONSTRAINT = 'user_is_sane';
    END IF;
END $$;
COMMENT ON FUNCTION pricing.check_user(text) IS 'Refuses an invalid user name.';


CREATE OR REPLACE FUNCTION pricing.spelled(data_types text[], symbols text[]) RETURNS text[]
LANGUAGE plpgsql STABLE SET search_path = '' SET enable_seqscan = off AS $$
BEGIN
    -- Nearly always all are known, and nothing is to be judged.
    IF NOT EXISTS (
        SELECT FROM unnest(data_types, symbols) AS u (data_type, symbol)
        LEFT JOIN pricing.data_type_registry r USING (data_type)
        WHERE NOT EXISTS (SELECT FROM pricing.instruments i
                          WHERE (i.asset_class, i.symbol) = (r.asset_class, u.symbol) OFFSET 0)) THEN
        RETURN symbols;
    END IF;
    RETURN (SELECT array_agg(coalesce(j.symbol, j.given) ORDER BY j.place)
            FROM pricing.judge_symbols(data_types, symbols) j);
END $$;
COMMENT ON FUNCTION pricing.spelled(text[], text[]) IS
    'Symbols as judge_symbols spells them; those that it refuses as they were given.';


CREATE OR REPLACE FUNCTION pricing.spelled(symbol text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    IF EXISTS (SELECT FROM pricing.instruments i WHERE i.symbol = spelled.symbol) THEN
        RETURN symbol;
    END IF;
    RETURN coalesce(
        (SELECT min(j.symbol)
         FROM (SELECT array_agg(t.data_type) AS data_types, array_agg(spelled.symbol) AS symbols
               FROM (SELECT min(r.data_type) AS data_type FROM pricing.data_type_registry r GROUP BY r.asset_class) t) u
         CROSS JOIN LATERAL pricing.judge_symbols(u.data_types, u.symbols) j
         WHERE EXISTS (SELECT FROM pricing.instruments i WHERE i.symbol = j.symbol)),
        symbol);
END $$;
COMMENT ON FUNCTION pricing.spelled(text) IS 'A symbol as its instruments are spelled, in any class.';


CREATE OR REPLACE FUNCTION pricing.symbols_by_type(data_types text[], symbols text[])
RETURNS TABLE (data_type text, symbol text)
LANGUAGE plpgsql STABLE SET search_path = '' SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    pairs record;
    known record;
    odd record;
BEGIN
    SELECT array_agg(t.data_type ORDER BY t.place, s.place) AS types,
           array_agg(s.symbol ORDER BY t.place, s.place) AS named INTO pairs
    FROM unnest(data_types) WITH ORDINALITY AS t (data_type, place)
    CROSS JOIN unnest(symbols) WITH ORDINALITY AS s (symbol, place);
    SELECT array_agg(u.data_type ORDER BY u.place) AS types, array_agg(u.symbol ORDER BY u.place) AS symbols,
           coalesce(array_agg(u.named), '{}') AS named INTO known
    FROM unnest(pairs.types, pairs.named, pricing.spelled(pairs.types, pairs.named))
        WITH ORDINALITY AS u (data_type, named, symbol, place)
    JOIN pricing.data_type_registry r USING (data_type)
    JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, u.symbol);
    SELECT count(*), (array_agg(s.symbol ORDER BY s.symbol))[:5] AS some, min(s.symbol) AS first INTO odd
    FROM (SELECT DISTINCT left(u, 60) AS symbol FROM unnest(symbols) u WHERE u <> ALL (known.named)) s;
    IF odd.count > 0 THEN
        RAISE EXCEPTION 'no % instrument is called %',
            (SELECT string_agg(DISTINCT r.asset_class, ' or ') FROM pricing.data_type_registry r
             WHERE r.data_type = ANY (data_types)),
            array_to_string(odd.some, ', ') || CASE WHEN odd.count > 5 THEN format(' and %s more', odd.count - 5)
                ELSE '' END
            USING HINT = (
                SELECT CASE WHEN j.symbol IS NOT NULL
                            THEN format('Watching it adds it: pricing-pipeline subscription watch %s --type %s',
                                        j.symbol, j.data_type)
                            ELSE concat_ws('. ',
                                           format('As a symbol of %s it is refused: %s', j.data_type, j.reason),
                                           pricing.say_meant(j.proposal)) END
                FROM pricing.judge_symbols(data_types, array_fill(odd.first, ARRAY[cardinality(data_types)])) j
                ORDER BY j.symbol IS NULL, j.proposal IS NULL, j.place LIMIT 1),
                ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY SELECT DISTINCT k.data_type, k.symbol FROM unnest(known.types, known.symbols) AS k (data_type, symbol)
        ORDER BY 1, 2;
END $$;
COMMENT ON FUNCTION pricing.symbols_by_type(text[], text[]) IS
    'The instruments of some data types that the given symbols mean, canonically spelled; refuses a symbol that no '
    'type has.';


CREATE OR REPLACE FUNCTION pricing.remove_instruments(symbols text[], only_class text DEFAULT NULL)
RETURNS TABLE (asset_class text, symbol text, outcome text, viewers bigint, holders bigint)
-- With the owner's rights: no worker deletes instruments otherwise.
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET lock_timeout = '1s' AS $$
#variable_conflict use_column
DECLARE
    thing record;
    types text[];
    changed_types text[];
BEGIN
    FOR thing IN
        SELECT i.asset_class, i.symbol, i.is_active FROM pricing.instruments i
        WHERE i.symbol = ANY (symbols) AND (only_class IS NULL OR i.asset_class = only_class) ORDER BY 1, 2
    LOOP
        asset_class := thing.asset_class;
        symbol := thing.symbol;
        types := ARRAY(SELECT r.data_type FROM pricing.data_type_registry r WHERE r.asset_class = thing.asset_class);
        -- Paused first, with the same lock order, which cancels waiting tasks.
        PERFORM pricing.pause_instruments(ARRAY[thing.symbol], true, thing.asset_class);
        WITH gone AS (
            DELETE FROM pricing.active_subscriptions a WHERE a.data_type = ANY (types) AND a.symbol = thing.symbol
            RETURNING a.user_id)
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
           -- Contents other than prices have a confirmation if anything was ever stored; a company may have one without
           -- a document.
           OR EXISTS (SELECT FROM pricing.confirmed_pairs c JOIN pricing.data_type_registry r USING (data_type)
                      WHERE c.data_type = ANY (types) AND c.symbol = thing.symbol AND r.contents <> 'documents')
           OR EXISTS (SELECT FROM pricing.corporate_actions c
                      WHERE (c.asset_class, c.symbol) = (thing.asset_class, thing.symbol))
        THEN
            outcome := CASE WHEN thing.is_active THEN 'retired' ELSE 'retired_already' END;
            UPDATE pricing.instruments i SET is_active = false
            WHERE (i.asset_class, i.symbol) = (thing.asset_class, thing.symbol);
            -- Its last price must not look current.
            WITH gone AS (
                DELETE FROM pricing.latest_prices l WHERE l.data_type = ANY (types) AND l.symbol = thing.symbol
                RETURNING l.data_type)
            SELECT array_agg(g.data_type) INTO changed_types FROM gone g;
            PERFORM pricing.note_latest_changes(t, 1) FROM unnest(changed_types) AS t;
        ELSE
            outcome := 'removed';
            -- The other pairs of a feed stay readable, and reading a list does not add the symbol again.
            DELETE FROM pricing.feed_pairs f WHERE f.data_type = ANY (types) AND f.symbol = thing.symbol;
            DELETE FROM pricing.listed_pairs p WHERE p.data_type = ANY (types) AND p.symbol = thing.symbol;
            DELETE FROM pricing.instruments i WHERE (i.asset_class, i.symbol) = (thing.asset_class, thing.symbol);
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.remove_instruments(text[], text) IS
    'Removes instruments without history and retires the others, ends their subscriptions, holdings and tasks, and '
    'counts the users concerned.';


CREATE OR REPLACE FUNCTION pricing.keep_class() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF EXISTS (
        SELECT FROM pricing.data_type_registry r
        WHERE r.asset_class = OLD.asset_class
          AND (EXISTS (SELECT FROM pricing.demand d WHERE (d.data_type, d.symbol) = (r.data_type, OLD.symbol))
               OR EXISTS (SELECT FROM pricing.active_subscriptions a
                          WHERE (a.data_type, a.symbol) = (r.data_type, OLD.symbol))
               OR EXISTS (SELECT FROM pricing.holdings h
                          WHERE (h.data_type, h.active_symbol) = (r.data_type, OLD.symbol))
               OR EXISTS (SELECT FROM pricing.latest_prices l WHERE (l.data_type, l.symbol) = (r.data_type, OLD.symbol))
               OR EXISTS (SELECT FROM pricing.price_history h
                          WHERE h.data_type = r.data_type AND h.symbol = OLD.symbol))) THEN
        RAISE EXCEPTION 'the % % is watched, held or priced, so it stays one', OLD.asset_class, OLD.symbol
            USING HINT = 'Add an instrument of the other class or name, watch that, and pause this one.',
                ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION pricing.keep_class() IS
    'Refuses to change the class or symbol of an instrument that is watched, held or priced: its pairs would be left '
    'without an instrument.';

CREATE TRIGGER keep_class
    BEFORE UPDATE OF asset_class, symbol ON pricing.instruments
    FOR EACH ROW WHEN (OLD.asset_class IS DISTINCT FROM NEW.asset_class OR OLD.symbol IS DISTINCT FROM NEW.symbol)
    EXECUTE FUNCTION pricing.keep_class();


CREATE OR REPLACE FUNCTION pricing.check_new_symbols() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    taken record;
BEGIN
    SELECT s.* INTO taken FROM pricing.provider_symbols s
    JOIN added a ON (a.asset_class, a.symbol) = (s.asset_class, s.spelling)
    WHERE a.symbol <> s.symbol AND a.is_active LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '% is asked for % (%) as %, so no other instrument can be called % (%)',
            taken.provider, taken.symbol, taken.asset_class, taken.spelling, taken.spelling, taken.asset_class
            USING HINT = pg_catalog.format(
                      '`pricing-pipeline instrument spell %s --at %s --undo` takes that spelling back.',
                      taken.symbol, taken.provider),
                  ERRCODE = 'check_violation', CONSTRAINT = 'spelling_is_free';
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.check_new_symbols() IS
    'Refuses an instrument whose symbol is another one''s spelling at a provider: two would get one answer.';

CREATE TRIGGER check_new_symbols
    AFTER INSERT ON pricing.instruments
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT
    EXECUTE FUNCTION pricing.check_new_symbols();


CREATE OR REPLACE FUNCTION pricing.check_given_spelling() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    taken record;
BEGIN
    -- A session that gives a spelling and one that adds an instrument would not see each other.
    LOCK TABLE pricing.instruments IN SHARE ROW EXCLUSIVE MODE;
    SELECT i.asset_class, i.symbol INTO taken FROM pricing.instruments i
    WHERE (i.asset_class, i.symbol) = (NEW.asset_class, NEW.spelling) AND i.symbol <> NEW.symbol AND i.is_active
      AND NOT EXISTS (SELECT FROM pricing.provider_symbols s
                      WHERE (s.provider, s.asset_class, s.symbol) = (NEW.provider, i.asset_class, i.symbol));
    IF FOUND THEN
        RAISE EXCEPTION '% is asked for % as %: two symbols would get one answer', NEW.provider, taken.symbol,
            NEW.spelling
            USING HINT = pg_catalog.format(
                      '`pricing-pipeline instrument spell %1$s --at %2$s --as SPELLING` gives %1$s another one.',
                      taken.symbol, NEW.provider),
                  ERRCODE = 'check_violation', CONSTRAINT = 'spelling_is_free';
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.check_given_spelling() IS
    'Refuses a spelling that is another instrument''s symbol, and waits for sessions that add instruments.';

CREATE TRIGGER check_given_spelling
    AFTER INSERT OR UPDATE OF spelling ON pricing.provider_symbols
    FOR EACH ROW
    EXECUTE FUNCTION pricing.check_given_spelling();


CREATE OR REPLACE FUNCTION pricing.spelling_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    spelled pricing.provider_symbols := CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
BEGIN
    -- Deleting the instrument deletes all that could wait.
    IF EXISTS (SELECT FROM pricing.instruments i
               WHERE (i.asset_class, i.symbol) = (spelled.asset_class, spelled.symbol)) THEN
        PERFORM pricing.forget_route(r.data_type, spelled.symbol) FROM pricing.data_type_registry r
        WHERE r.asset_class = spelled.asset_class;
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.spelling_changed() IS
    'Ends the back-off of an instrument''s pairs, because a provider may know the new spelling.';

CREATE TRIGGER spelling_changed
    AFTER INSERT OR UPDATE OR DELETE ON pricing.provider_symbols
    FOR EACH ROW
    EXECUTE FUNCTION pricing.spelling_changed();
