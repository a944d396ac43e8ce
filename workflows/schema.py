"""What Postgres promises beyond tables: run by the first migration.

The diary is append-only, whoever connects. Retention goes through one function that checks its own conditions. A start is
a function because its plan is kept then: planning it anew costs the server as much as carrying it out.
"""

FORWARD = """
-- Hot updates need room on the page; the step's end changes no indexed column.
ALTER TABLE rekindle_workflow SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
ALTER TABLE rekindle_step SET (fillfactor = 85, autovacuum_analyze_scale_factor = 0.05);
ALTER TABLE rekindle_worker SET (fillfactor = 50);

CREATE FUNCTION rekindle_diary_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' AND current_database() LIKE 'test\\_%' THEN
        RETURN NULL;  -- a test database is emptied between tests
    END IF;
    IF TG_OP = 'DELETE' AND current_setting('rekindle.retention', true) = OLD.workflow_id::text THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'The diary of a workflow is append-only: % on rekindle_event is refused.', TG_OP
        USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER rekindle_append_only BEFORE UPDATE OR DELETE ON rekindle_event
    FOR EACH ROW EXECUTE FUNCTION rekindle_diary_is_append_only();
CREATE TRIGGER rekindle_append_only_whole BEFORE TRUNCATE ON rekindle_event
    FOR EACH STATEMENT EXECUTE FUNCTION rekindle_diary_is_append_only();

-- Accept workflows of one name: those whose key is new, each with the first line of its diary. Called by moves.INSERT.
CREATE FUNCTION rekindle_start(rows json, of_name text, of_version int, of_priority smallint, of_persistence text,
    attempts int, stale float8, longest float8)
RETURNS TABLE (id uuid, status varchar, created_at timestamptz, due_at timestamptz, wake_at timestamptz,
    max_recovery_attempts int, stale_after float8, run_limit float8)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY WITH policy AS (
        SELECT max_recovery_attempts, stale_after, run_limit FROM rekindle_policy WHERE name = of_name
    ), asked AS (
        SELECT * FROM ROWS FROM (json_to_recordset(rows) AS (
            id uuid, key text, at timestamptz, input text, search json, variables text))
            WITH ORDINALITY AS t(id, key, at, input, search, variables, i)
    ), born AS (
        INSERT INTO rekindle_workflow (
            id, name, version, key, generation, status, pause_reason, priority, lane, due_at, wake_at, basket,
            fence, applied, seq, nudges, input, variables, search, ticket, refused_by, persistence,
            recovery_attempts, recoveries, max_recovery_attempts, stale_after, run_limit)
        SELECT id, of_name, of_version, key, 1, CASE WHEN at > now() THEN 'pending' ELSE 'queued' END, '', of_priority, '',
            COALESCE(at, now()), COALESCE(at, now()), '', 0, 0, 1, 0, input::jsonb, COALESCE(variables, '{}')::jsonb,
            CASE WHEN search IS NOT NULL THEN ARRAY(SELECT json_array_elements_text(search)) END, '', '', of_persistence,
            0, 0, COALESCE(policy.max_recovery_attempts, attempts), COALESCE(policy.stale_after, stale),
            COALESCE(policy.run_limit, longest)
        FROM asked LEFT JOIN policy ON true
        WHERE key IS NULL OR NOT EXISTS (SELECT FROM rekindle_workflow w WHERE w.name = of_name AND w.key = asked.key)
        ORDER BY key, i
        ON CONFLICT (name, key, generation) WHERE key IS NOT NULL DO NOTHING
        RETURNING id, status, created_at, due_at, wake_at, max_recovery_attempts, stale_after, run_limit
    ), told AS (
        INSERT INTO rekindle_event (workflow_id, seq, type, fence, path, step)
        SELECT id, 1, 'workflow.' || status, 0, '', '' FROM born
    )
    SELECT * FROM born;
END $$;

-- Remove one finished workflow with all that belongs to it. False if it is not finished, not old enough, or busy.
CREATE FUNCTION rekindle_forget(which uuid, older_than interval) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM rekindle_workflow WHERE id = which AND finished_at < now() - older_than FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM set_config('rekindle.retention', which::text, true);
    DELETE FROM rekindle_event WHERE workflow_id = which;
    DELETE FROM rekindle_step WHERE workflow_id = which;
    DELETE FROM rekindle_signal WHERE workflow_id = which;
    DELETE FROM rekindle_workflow WHERE id = which;
    PERFORM set_config('rekindle.retention', '', true);
    RETURN true;
END $$;
"""

BACKWARD = """
DROP FUNCTION rekindle_start(json, text, int, smallint, text, int, float8, float8);
DROP FUNCTION rekindle_forget(uuid, interval);
DROP TRIGGER rekindle_append_only ON rekindle_event;
DROP TRIGGER rekindle_append_only_whole ON rekindle_event;
DROP FUNCTION rekindle_diary_is_append_only();
"""
