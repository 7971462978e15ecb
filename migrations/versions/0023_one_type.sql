-- Advice that can be typed as it stands: without a WHERE it would have retired every data type.

CREATE OR REPLACE FUNCTION pricing.drop_storage() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF EXISTS (SELECT FROM pricing.price_history h WHERE h.data_type = OLD.data_type)
       OR EXISTS (SELECT FROM pricing.latest_prices l WHERE l.data_type = OLD.data_type)
       OR EXISTS (SELECT FROM pricing.document_pairs p WHERE p.data_type = OLD.data_type)
       OR EXISTS (SELECT FROM pricing.demand d WHERE d.data_type = OLD.data_type) THEN
        RAISE EXCEPTION 'data type % holds prices or documents or is watched and cannot be deleted', OLD.data_type
            USING HINT = pg_catalog.format('Retire it instead: UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = %L',
                                           OLD.data_type),
                  ERRCODE = 'restrict_violation';
    END IF;
    IF pricing.is_document(OLD.fetcher) THEN
        EXECUTE pg_catalog.format('DROP VIEW IF EXISTS pricing.%I', 'document_' || OLD.data_type);
    ELSE
        EXECUTE pg_catalog.format('DROP TABLE IF EXISTS pricing.%I', 'price_history_' || OLD.data_type);
        EXECUTE pg_catalog.format('DROP VIEW IF EXISTS pricing.%I', 'latest_price_' || OLD.data_type);
    END IF;
    RETURN OLD;
END $$;
