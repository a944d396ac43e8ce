import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
import django.db.models.functions.text
from django.db import migrations, models

from recovery import schema


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="AlertRule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=100, unique=True)),
                ("builtin", models.CharField(blank=True, max_length=40)),
                ("metric", models.CharField(max_length=60)),
                ("scope", models.CharField(blank=True, max_length=100)),
                (
                    "comparison",
                    models.CharField(
                        choices=[(">", ">"), (">=", ">="), ("<", "<"), ("<=", "<=")], default=">", max_length=2
                    ),
                ),
                ("threshold", models.FloatField()),
                ("window", models.FloatField(default=3600)),
                ("lasting", models.FloatField(default=0)),
                ("resolve_at", models.FloatField(blank=True, null=True)),
                (
                    "severity",
                    models.CharField(
                        choices=[("info", "info"), ("warning", "warning"), ("critical", "critical")],
                        default="warning",
                        max_length=8,
                    ),
                ),
                ("enabled", models.BooleanField(default=True)),
                ("breached_since", models.DateTimeField(editable=False, null=True)),
                ("value", models.FloatField(editable=False, null=True)),
                ("evaluated_at", models.DateTimeField(editable=False, null=True)),
                ("trouble", models.CharField(blank=True, editable=False, max_length=500)),
                ("changed_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("changed_by", models.CharField(blank=True, max_length=200)),
            ],
        ),
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), db_index=True)),
                ("actor", models.CharField(max_length=200)),
                ("via", models.CharField(max_length=10)),
                ("act", models.CharField(max_length=30)),
                ("subject", models.CharField(max_length=20)),
                ("subject_id", models.CharField(db_index=True, max_length=100)),
                ("subject_name", models.CharField(blank=True, max_length=320)),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("before", models.JSONField(null=True)),
                ("after", models.JSONField(null=True)),
                ("refused", models.CharField(blank=True, max_length=500)),
                ("token", models.CharField(blank=True, max_length=40)),
            ],
            options={
                "verbose_name_plural": "audit entries",
                "indexes": [
                    models.Index(fields=["actor", "id"], name="rekindle_audit_actor"),
                    models.Index(fields=["subject_name", "id"], name="rekindle_audit_subject"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Batch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("act", models.CharField(max_length=10)),
                ("chosen", models.CharField(max_length=500)),
                ("query", models.CharField(blank=True, max_length=3000)),
                ("basket", models.CharField(blank=True, max_length=80)),
                ("to", models.CharField(blank=True, max_length=80)),
                ("reason", models.CharField(max_length=500)),
                ("by", models.CharField(max_length=200)),
                ("via", models.CharField(max_length=10)),
                ("token", models.CharField(blank=True, max_length=40)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("running", "Running"),
                            ("stopped", "Stopped"),
                            ("done", "Done"),
                        ],
                        default="waiting",
                        max_length=7,
                    ),
                ),
                ("confirmed", models.PositiveIntegerField()),
                ("total", models.PositiveIntegerField(default=0)),
                ("done", models.PositiveIntegerField(default=0)),
                ("skipped", models.PositiveIntegerField(default=0)),
                ("failed", models.PositiveIntegerField(default=0)),
                ("begun_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("started_at", models.DateTimeField(null=True)),
                ("moved_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("stopped_by", models.CharField(blank=True, max_length=200)),
            ],
            options={
                "verbose_name_plural": "batches",
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ("waiting", "running"))),
                        fields=["id"],
                        name="rekindle_batch_open",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("token", ""), _negated=True),
                        fields=("token",),
                        name="rekindle_one_batch_a_form",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "total__gte",
                                django.db.models.expressions.CombinedExpression(
                                    django.db.models.expressions.CombinedExpression(
                                        models.F("done"), "+", models.F("skipped")
                                    ),
                                    "+",
                                    models.F("failed"),
                                ),
                            )
                        ),
                        name="rekindle_batch_adds_up",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ("waiting", "running")), ("ended_at__isnull", False), _connector="XOR"
                        ),
                        name="rekindle_batch_ends_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Duty",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=40)),
                ("ran_by", models.CharField(max_length=14)),
                ("began_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("ended_at", models.DateTimeField(null=True)),
                ("found", models.PositiveIntegerField(default=0)),
                ("recovered", models.PositiveIntegerField(default=0)),
                ("failed", models.PositiveIntegerField(default=0)),
                ("held", models.PositiveIntegerField(default=0)),
                ("skipped", models.PositiveIntegerField(default=0)),
                ("note", models.JSONField(null=True)),
                ("error", models.CharField(blank=True, max_length=500)),
            ],
            options={
                "verbose_name_plural": "duties",
                "indexes": [models.Index(fields=["name", "-began_at"], name="rekindle_duty_last")],
            },
        ),
        migrations.CreateModel(
            name="MetricMinute",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("grain", models.PositiveIntegerField(default=60)),
                ("minute", models.DateTimeField()),
                ("name", models.CharField(blank=True, max_length=100)),
                ("started", models.PositiveIntegerField(default=0)),
                ("completed", models.PositiveIntegerField(default=0)),
                ("rescued", models.PositiveIntegerField(default=0)),
                ("failed", models.PositiveIntegerField(default=0)),
                ("cancelled", models.PositiveIntegerField(default=0)),
                ("late", models.PositiveIntegerField(default=0)),
                ("recovered", models.PositiveIntegerField(default=0)),
                ("unrecovered", models.PositiveIntegerField(default=0)),
                ("given_up", models.PositiveIntegerField(default=0)),
                ("infrastructure_restart", models.PositiveIntegerField(default=0)),
                ("stale_detection", models.PositiveIntegerField(default=0)),
                ("manual", models.PositiveIntegerField(default=0)),
                (
                    "took",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.PositiveIntegerField(), null=True, size=None
                    ),
                ),
                (
                    "detect",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.PositiveIntegerField(), null=True, size=None
                    ),
                ),
                (
                    "resume",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.PositiveIntegerField(), null=True, size=None
                    ),
                ),
                ("running", models.PositiveIntegerField(null=True)),
                ("waiting", models.PositiveIntegerField(null=True)),
                ("due", models.PositiveIntegerField(null=True)),
                ("oldest", models.FloatField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("grain", "minute", "name"), name="rekindle_one_per_minute")
                ],
            },
        ),
        migrations.CreateModel(
            name="Note",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("author", models.CharField(max_length=200)),
                ("subject", models.CharField(max_length=20)),
                ("subject_id", models.CharField(max_length=100)),
                ("subject_name", models.CharField(blank=True, max_length=320)),
                ("text", models.CharField(max_length=300)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["subject_id", "-id"], name="rekindle_note_on"),
                    models.Index(fields=["at"], name="rekindle_note_at"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Recovery",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("workflow_id", models.UUIDField()),
                ("workflow_name", models.CharField(max_length=100)),
                ("workflow_key", models.CharField(blank=True, max_length=200)),
                ("fence", models.PositiveBigIntegerField()),
                ("seq", models.PositiveIntegerField(null=True)),
                (
                    "finding",
                    models.CharField(
                        choices=[
                            ("dead_worker", "Dead Worker"),
                            ("silent_worker", "Silent Worker"),
                            ("overdue", "Overdue"),
                            ("overrunning", "Overrunning"),
                            ("definition_missing", "Definition Missing"),
                            ("definition_changed", "Definition Changed"),
                            ("corrupt_state", "Corrupt State"),
                            ("by_hand", "By Hand"),
                        ],
                        max_length=20,
                    ),
                ),
                (
                    "reason",
                    models.CharField(
                        choices=[
                            ("infrastructure_restart", "Infrastructure Restart"),
                            ("stale_detection", "Stale Detection"),
                            ("manual", "Manual"),
                        ],
                        max_length=22,
                    ),
                ),
                (
                    "detected_by",
                    models.CharField(
                        choices=[
                            ("worker", "Worker"),
                            ("scheduled task", "Scheduled Task"),
                            ("start-up", "Start Up"),
                            ("operator", "Operator"),
                        ],
                        max_length=14,
                    ),
                ),
                ("actor", models.CharField(blank=True, max_length=200)),
                ("note", models.CharField(blank=True, max_length=500)),
                ("worker", models.BigIntegerField(null=True)),
                ("worker_name", models.CharField(blank=True, max_length=220)),
                ("step", models.CharField(blank=True, max_length=200)),
                ("in_step", models.BooleanField(default=False)),
                ("attempt", models.PositiveIntegerField()),
                ("max_attempts", models.PositiveIntegerField()),
                ("plan", models.JSONField(default=dict)),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("recovered", "Recovered"),
                            ("failed", "Failed"),
                            ("died_again", "Died Again"),
                            ("gave_up", "Gave Up"),
                            ("refused", "Refused"),
                            ("cancelled", "Cancelled"),
                            ("observed", "Observed"),
                        ],
                        default="pending",
                        max_length=10,
                    ),
                ),
                ("last_seen_at", models.DateTimeField(null=True)),
                ("detected_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("due_at", models.DateTimeField(null=True)),
                ("resumed_at", models.DateTimeField(null=True)),
                ("settled_at", models.DateTimeField(null=True)),
                ("seconds_to_detect", models.FloatField(null=True)),
                ("seconds_to_resume", models.FloatField(null=True)),
            ],
            options={
                "verbose_name_plural": "recoveries",
                "indexes": [
                    models.Index(fields=["detected_at"], name="rekindle_recovery_at"),
                    models.Index(fields=["attempt", "detected_at"], name="rekindle_recovery_attempt"),
                    models.Index(
                        condition=models.Q(("worker__isnull", False)),
                        fields=["worker", "id"],
                        name="rekindle_recovery_worker",
                    ),
                    models.Index(
                        condition=models.Q(("outcome", "recovered"), _negated=True),
                        fields=["outcome", "id"],
                        name="rekindle_recovery_open",
                    ),
                    models.Index(fields=["settled_at"], name="rekindle_recovery_settled"),
                ],
                "constraints": [models.UniqueConstraint(fields=("workflow_id", "fence"), name="rekindle_one_per_hold")],
            },
        ),
        migrations.CreateModel(
            name="SavedView",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=40)),
                ("owner", models.CharField(max_length=255)),
                ("owner_name", models.CharField(max_length=200)),
                ("shared", models.BooleanField(default=False)),
                ("view", models.CharField(max_length=20)),
                ("search", models.CharField(blank=True, max_length=500)),
                ("range", models.CharField(blank=True, max_length=80)),
                ("saved_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "indexes": [models.Index(fields=["owner"], name="rekindle_view_owner")],
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Lower("name"), models.F("owner"), name="rekindle_one_own_view"
                    ),
                    models.UniqueConstraint(
                        django.db.models.functions.text.Lower("name"),
                        condition=models.Q(("shared", True)),
                        name="rekindle_one_shared_view",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Alert",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("rule_name", models.CharField(max_length=100)),
                ("severity", models.CharField(max_length=8)),
                ("threshold", models.FloatField()),
                ("value", models.FloatField()),
                ("peak", models.FloatField()),
                ("details", models.JSONField(null=True)),
                ("opened_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("acknowledged_at", models.DateTimeField(null=True)),
                ("acknowledged_by", models.CharField(blank=True, max_length=200)),
                ("resolved_at", models.DateTimeField(null=True)),
                (
                    "rule",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="alerts",
                        to="rekindle_recovery.alertrule",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["-opened_at"], name="rekindle_alert_at")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("resolved_at", None)), fields=("rule",), name="rekindle_one_open_alert"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="BatchItem",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("workflow_id", models.UUIDField()),
                ("workflow_name", models.CharField(max_length=100)),
                ("workflow_key", models.CharField(blank=True, max_length=200)),
                ("fence", models.PositiveBigIntegerField()),
                (
                    "result",
                    models.CharField(
                        blank=True,
                        choices=[("done", "Done"), ("skipped", "Skipped"), ("failed", "Failed")],
                        max_length=7,
                    ),
                ),
                ("sentence", models.CharField(blank=True, max_length=500)),
                ("at", models.DateTimeField(null=True)),
                (
                    "batch",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="items",
                        to="rekindle_recovery.batch",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["batch", "result", "workflow_id"], name="rekindle_batch_results")],
                "constraints": [models.UniqueConstraint(fields=("batch", "workflow_id"), name="rekindle_once_a_batch")],
            },
        ),
        migrations.RunSQL(schema.FORWARD, schema.BACKWARD),
    ]
