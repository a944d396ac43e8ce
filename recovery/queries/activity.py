"""What happened lately: recoveries by the worker that died, alerts, acts of people, batches, workers that joined."""

QUESTIONS = {
    "rescues": """SELECT worker_name AS worker, count(*) AS held, count(*) FILTER (WHERE resumed_at IS NOT NULL) AS running,
        count(*) FILTER (WHERE outcome = 'gave_up') AS given_up, count(*) FILTER (WHERE outcome = 'observed') AS observed,
        max(seconds_to_resume + COALESCE(seconds_to_detect, 0)) AS seconds, max(detected_at) AS at
        FROM (SELECT * FROM rekindle_recovery_recovery WHERE worker IS NOT NULL ORDER BY detected_at DESC LIMIT 2000) r
        GROUP BY worker, worker_name ORDER BY max(detected_at) DESC LIMIT 8""",
    "alerts": """SELECT rule_name AS name, opened_at, resolved_at, value, threshold FROM rekindle_recovery_alert
        ORDER BY opened_at DESC LIMIT 8""",
    "audit": """SELECT at, actor, act, subject, subject_name AS name, subject_id AS id, reason, refused
        FROM (SELECT * FROM rekindle_recovery_auditentry ORDER BY at DESC LIMIT 2000) a
        WHERE via <> 'batch' AND subject <> 'batch' ORDER BY at DESC LIMIT 8""",
    "batches": """SELECT act, by, reason, total, done, skipped, failed, begun_at, ended_at, stopped_by FROM rekindle_recovery_batch
        ORDER BY id DESC LIMIT 8""",
    "joined": """SELECT host, pid, slots, release, version, started_at AS at FROM rekindle_worker WHERE NOT alone
        ORDER BY id DESC LIMIT 8""",
}
