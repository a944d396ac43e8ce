"""What Postgres promises beyond tables: run by the first migration. The audit is append-only, whoever connects."""

FORWARD = """
CREATE FUNCTION rekindle_audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' AND current_database() LIKE 'test\\_%' THEN
        RETURN NULL;  -- a test database is emptied between tests
    END IF;
    IF TG_OP = 'DELETE' AND OLD.at < now() - interval '30 days' AND current_setting('rekindle.retention', true) = 'audit' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'The audit is append-only: % on it is refused.', TG_OP USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER rekindle_append_only BEFORE UPDATE OR DELETE ON rekindle_recovery_auditentry
    FOR EACH ROW EXECUTE FUNCTION rekindle_audit_is_append_only();
CREATE TRIGGER rekindle_append_only_whole BEFORE TRUNCATE ON rekindle_recovery_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION rekindle_audit_is_append_only();
"""

BACKWARD = """
DROP TRIGGER rekindle_append_only ON rekindle_recovery_auditentry;
DROP TRIGGER rekindle_append_only_whole ON rekindle_recovery_auditentry;
DROP FUNCTION rekindle_audit_is_append_only();
"""
