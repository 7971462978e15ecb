-- Assets show providers and routes, too: a change of theirs reloads the code location as one of a data type does.
CREATE TRIGGER registry_changed AFTER INSERT OR DELETE OR UPDATE ON pricing.provider_routing FOR EACH STATEMENT
    EXECUTE FUNCTION pricing.registry_changed();

CREATE TRIGGER registry_changed AFTER INSERT OR DELETE ON pricing.data_collectors FOR EACH ROW
    EXECUTE FUNCTION pricing.registry_changed();

-- Limits are changed more often, and no asset shows them.
CREATE TRIGGER provider_shown_anew AFTER UPDATE OF is_active, base_url ON pricing.data_collectors FOR EACH ROW
    WHEN ((OLD.is_active, OLD.base_url) IS DISTINCT FROM (NEW.is_active, NEW.base_url))
    EXECUTE FUNCTION pricing.registry_changed();

CREATE TRIGGER registry_changed AFTER INSERT OR DELETE ON pricing.provider_declarations FOR EACH ROW
    EXECUTE FUNCTION pricing.registry_changed();

CREATE TRIGGER declared_anew AFTER UPDATE ON pricing.provider_declarations FOR EACH ROW
    WHEN (OLD.content IS DISTINCT FROM NEW.content) EXECUTE FUNCTION pricing.registry_changed();
