import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.fields.json
import django.db.models.functions.datetime
from django.db import migrations, models

import workflows.ids
import workflows.models.event
from workflows import schema


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Policy",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=100, unique=True)),
                ("paused", models.BooleanField(default=False)),
                ("concurrency", models.PositiveIntegerField(blank=True, null=True)),
                ("stale_after", models.FloatField(blank=True, null=True)),
                ("max_recovery_attempts", models.PositiveIntegerField(blank=True, null=True)),
                ("run_limit", models.FloatField(blank=True, null=True)),
                (
                    "on_run_limit",
                    models.CharField(
                        choices=[("flag", "flag"), ("extend", "extend"), ("recover", "recover"), ("fail", "fail")],
                        default="flag",
                        max_length=7,
                    ),
                ),
                (
                    "mode",
                    models.CharField(
                        blank=True,
                        choices=[("enforce", "enforce"), ("observe", "observe"), ("off", "off")],
                        max_length=7,
                    ),
                ),
                ("keep_finished", models.FloatField(blank=True, null=True)),
                ("changed_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("changed_by", models.CharField(blank=True, max_length=200)),
                ("reason", models.CharField(blank=True, max_length=500)),
            ],
            options={
                "verbose_name_plural": "policies",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("concurrency", None), ("concurrency__gte", 1), _connector="OR"),
                        name="rekindle_room_for_one",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Worker",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("host", models.CharField(max_length=200)),
                ("pid", models.PositiveIntegerField()),
                ("version", models.CharField(blank=True, max_length=40)),
                ("release", models.CharField(blank=True, max_length=200)),
                ("slots", models.PositiveIntegerField(default=1)),
                ("knows", models.JSONField(default=dict)),
                ("started_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("heartbeat_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("heartbeat_every", models.FloatField(default=10)),
                ("memory", models.PositiveBigIntegerField(default=0)),
                ("incarnation", models.CharField(blank=True, max_length=60)),
                ("pooled", models.BooleanField(default=False)),
                ("alone", models.BooleanField(default=False)),
                ("last_seen_at", models.DateTimeField(null=True)),
                ("lost", models.PositiveIntegerField(default=0)),
                ("ended_at", models.DateTimeField(null=True)),
                ("ended_why", models.CharField(blank=True, max_length=40)),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("ended_at", None)), fields=["id"], name="rekindle_worker_alive")
                ],
            },
        ),
        migrations.CreateModel(
            name="Workflow",
            fields=[
                (
                    "id",
                    models.UUIDField(default=workflows.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=100)),
                ("version", models.PositiveIntegerField(default=1)),
                ("key", models.CharField(max_length=200, null=True)),
                ("generation", models.PositiveIntegerField(default=1)),
                ("previous", models.UUIDField(null=True)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("paused", "Paused"),
                            ("completed", "Completed"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="queued",
                        max_length=9,
                    ),
                ),
                (
                    "pause_reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("sleep", "Sleep"),
                            ("retry", "Retry"),
                            ("pend", "Pend"),
                            ("suspended", "Suspended"),
                            ("blocked", "Blocked"),
                            ("lane", "Lane"),
                        ],
                        max_length=9,
                    ),
                ),
                ("asked", models.JSONField(null=True)),
                (
                    "priority",
                    models.PositiveSmallIntegerField(
                        choices=[(0, "Critical"), (1, "High"), (2, "Normal"), (3, "Low"), (4, "Idle")], default=2
                    ),
                ),
                ("lane", models.CharField(blank=True, max_length=200)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("due_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("wake_at", models.DateTimeField(null=True)),
                ("basket", models.CharField(blank=True, max_length=80)),
                ("running_at", models.DateTimeField(null=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("lateness", models.FloatField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("fence", models.PositiveBigIntegerField(default=0)),
                ("applied", models.PositiveIntegerField(default=0)),
                ("seq", models.PositiveIntegerField(default=1)),
                ("nudges", models.PositiveIntegerField(default=0)),
                ("input", models.JSONField(default=dict)),
                ("variables", models.JSONField(default=dict)),
                ("output", models.JSONField(null=True)),
                ("error", models.JSONField(null=True)),
                (
                    "search",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=300), null=True, size=None
                    ),
                ),
                ("progress", models.JSONField(null=True)),
                ("ticket", models.CharField(blank=True, max_length=80)),
                ("refused_by", models.CharField(blank=True, max_length=16)),
                ("persistence", models.CharField(default="aggressive", max_length=10)),
                ("recovery_attempts", models.PositiveIntegerField(default=0)),
                ("recoveries", models.PositiveIntegerField(default=0)),
                ("suspects", models.JSONField(null=True)),
                ("max_recovery_attempts", models.PositiveIntegerField(default=3)),
                ("stale_after", models.FloatField(null=True)),
                ("run_limit", models.FloatField(null=True)),
                (
                    "worker",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="held",
                        to="rekindle.worker",
                    ),
                ),
            ],
            options={
                "permissions": [
                    ("act_on_workflow", "Can recover, fail, cancel, pause, resume and revive workflows"),
                    ("see_payload", "Can see inputs, results and variables unredacted"),
                    ("configure", "Can change policies, rules and modes"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Step",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("path", models.CharField(default=".", max_length=400)),
                ("position", models.PositiveIntegerField()),
                ("name", models.CharField(max_length=200)),
                ("occurrence", models.PositiveIntegerField(default=1)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("step", "Step"),
                            ("sleep", "Sleep"),
                            ("pend", "Pend"),
                            ("signal", "Signal"),
                            ("parallel", "Parallel"),
                            ("value", "Value"),
                        ],
                        default="step",
                        max_length=8,
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("open", "Open"),
                            ("waiting", "Waiting"),
                            ("again", "Again"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("dropped", "Dropped"),
                        ],
                        default="open",
                        max_length=8,
                    ),
                ),
                (
                    "response",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("ok_proceed", "Ok Proceed"),
                            ("ok_pend", "Ok Pend"),
                            ("ok_pend_eor", "Ok Pend Eor"),
                            ("error_pend", "Error Pend"),
                        ],
                        max_length=11,
                    ),
                ),
                ("attempt", models.PositiveIntegerField(default=1)),
                ("failures", models.PositiveIntegerField(default=0)),
                ("on_crash", models.CharField(default="rerun", max_length=6)),
                ("idempotent", models.BooleanField(default=False)),
                ("fence", models.PositiveBigIntegerField(default=0)),
                ("began_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("wake_at", models.DateTimeField(null=True)),
                ("basket", models.CharField(blank=True, max_length=80)),
                ("result", models.JSONField(null=True)),
                ("error", models.JSONField(null=True)),
                (
                    "workflow",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="steps",
                        to="rekindle.workflow",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Signal",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=80)),
                ("uid", models.CharField(max_length=200)),
                ("data", models.JSONField(null=True)),
                ("by", models.CharField(blank=True, max_length=200)),
                ("sent_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("consumed_by", models.CharField(blank=True, max_length=400)),
                (
                    "workflow",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="inbox",
                        to="rekindle.workflow",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Event",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("seq", models.PositiveIntegerField()),
                ("at", models.DateTimeField(db_default=workflows.models.event.ClockTimestamp())),
                ("type", models.CharField(max_length=40)),
                ("fence", models.PositiveBigIntegerField(default=0)),
                ("worker", models.BigIntegerField(null=True)),
                ("path", models.CharField(blank=True, max_length=400)),
                ("step", models.CharField(blank=True, max_length=200)),
                ("attempt", models.PositiveIntegerField(null=True)),
                ("seconds", models.FloatField(null=True)),
                ("data", models.JSONField(null=True)),
                (
                    "workflow",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="events",
                        to="rekindle.workflow",
                    ),
                ),
            ],
            options={
                "ordering": ["workflow", "seq"],
            },
        ),
        migrations.AddIndex(
            model_name="workflow",
            index=models.Index(
                condition=models.Q(("wake_at__isnull", False)),
                fields=["name", "priority", "wake_at"],
                name="rekindle_due",
            ),
        ),
        migrations.AddIndex(
            model_name="workflow",
            index=models.Index(condition=models.Q(("worker__isnull", False)), fields=["worker"], name="rekindle_held"),
        ),
        migrations.AddIndex(
            model_name="workflow",
            index=models.Index(
                condition=models.Q(("recovery_attempts", 0), ("status", "running"), ("worker", None)),
                fields=["name"],
                name="rekindle_orphans",
            ),
        ),
        migrations.AddIndex(
            model_name="workflow",
            index=models.Index(
                condition=models.Q(
                    ("wake_at__isnull", False),
                    models.Q(
                        ("recovery_attempts__gte", 2),
                        models.Q(("recovery_attempts", 1), ("status", "running")),
                        models.Q(
                            ("max_recovery_attempts__lte", 1),
                            models.Q(("recovery_attempts", 1), ("status", "running"), _connector="OR"),
                        ),
                        _connector="OR",
                    ),
                ),
                fields=["wake_at"],
                name="rekindle_alone",
            ),
        ),
        migrations.AddIndex(
            model_name="workflow",
            index=models.Index(
                condition=models.Q(("finished_at__isnull", False)),
                fields=["name", "finished_at"],
                name="rekindle_finished",
            ),
        ),
        migrations.AddIndex(
            model_name="workflow",
            index=models.Index(
                condition=models.Q(("status", "failed")), fields=["finished_at"], name="rekindle_dead_letters"
            ),
        ),
        migrations.AddIndex(
            model_name="workflow",
            index=models.Index(condition=models.Q(("lateness__gte", 60)), fields=["started_at"], name="rekindle_late"),
        ),
        migrations.AddIndex(
            model_name="workflow",
            index=models.Index(condition=models.Q(("lateness__gte", 60)), fields=["-lateness"], name="rekindle_latest"),
        ),
        migrations.AddIndex(
            model_name="workflow",
            index=models.Index(
                condition=models.Q(("pause_reason__in", ["retry", "blocked", "suspended"])),
                fields=["pause_reason", "due_at"],
                name="rekindle_troubled",
            ),
        ),
        migrations.AddIndex(
            model_name="workflow",
            index=models.Index(
                condition=models.Q(("basket", ""), _negated=True), fields=["id"], name="rekindle_in_basket"
            ),
        ),
        migrations.AddIndex(
            model_name="workflow",
            index=models.Index(fields=["name", "id", "version"], name="rekindle_named"),
        ),
        migrations.AddIndex(
            model_name="workflow",
            index=models.Index(
                condition=models.Q(("status", "completed"), _negated=True),
                fields=["status", "id", "name"],
                name="rekindle_status",
            ),
        ),
        migrations.AddIndex(
            model_name="workflow",
            index=models.Index(condition=models.Q(("key__isnull", False)), fields=["key"], name="rekindle_key"),
        ),
        migrations.AddIndex(
            model_name="workflow",
            index=models.Index(
                condition=models.Q(("recovery_attempts__gt", 0)), fields=["recovery_attempts"], name="rekindle_attempts"
            ),
        ),
        migrations.AddIndex(
            model_name="workflow",
            index=models.Index(
                django.db.models.fields.json.KeyTextTransform("type", "error"),
                models.F("id"),
                condition=models.Q(("error__isnull", False)),
                name="rekindle_error",
            ),
        ),
        migrations.AddIndex(
            model_name="workflow",
            index=django.contrib.postgres.indexes.GinIndex(
                condition=models.Q(("search__isnull", False)), fields=["search"], name="rekindle_search"
            ),
        ),
        migrations.AddConstraint(
            model_name="workflow",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("basket", ""),
                        ("finished_at__isnull", False),
                        ("status__in", ("completed", "failed", "cancelled")),
                        ("wake_at", None),
                        ("worker", None),
                    ),
                    models.Q(
                        ("finished_at", None), ("status", "running"), ("wake_at", None), ("worker__isnull", False)
                    ),
                    models.Q(
                        ("finished_at", None),
                        ("wake_at__isnull", False),
                        ("worker", None),
                        models.Q(("status__in", ("completed", "failed", "cancelled")), _negated=True),
                    ),
                    models.Q(
                        ("finished_at", None),
                        ("status", "paused"),
                        ("wake_at", None),
                        ("worker", None),
                        models.Q(
                            models.Q(("basket", ""), _negated=True),
                            ("pause_reason__in", ["suspended", "lane"]),
                            _connector="OR",
                        ),
                    ),
                    _connector="OR",
                ),
                name="alive_means_someone_will_wake_it",
            ),
        ),
        migrations.AddConstraint(
            model_name="workflow",
            constraint=models.UniqueConstraint(
                condition=models.Q(("key__isnull", False)),
                fields=("name", "key", "generation"),
                name="rekindle_one_per_key",
            ),
        ),
        migrations.AddIndex(
            model_name="step",
            index=models.Index(
                condition=models.Q(("status", "waiting"), models.Q(("basket", ""), _negated=True)),
                fields=["basket", "workflow"],
                include=("began_at",),
                name="rekindle_pended",
            ),
        ),
        migrations.AddIndex(
            model_name="step",
            index=models.Index(
                condition=models.Q(("status__in", ["open", "waiting", "again", "failed"])),
                fields=["name", "workflow"],
                name="rekindle_standing",
            ),
        ),
        migrations.AddIndex(
            model_name="step",
            index=models.Index(
                django.db.models.fields.json.KeyTextTransform("type", "error"),
                models.F("workflow"),
                condition=models.Q(("error__isnull", False)),
                name="rekindle_step_error",
            ),
        ),
        migrations.AddConstraint(
            model_name="step",
            constraint=models.UniqueConstraint(fields=("workflow", "path", "position"), name="rekindle_one_step"),
        ),
        migrations.AddIndex(
            model_name="signal",
            index=models.Index(
                condition=models.Q(("consumed_by", "")), fields=["workflow", "id"], name="rekindle_inbox"
            ),
        ),
        migrations.AddConstraint(
            model_name="signal",
            constraint=models.UniqueConstraint(fields=("workflow", "uid"), name="rekindle_one_signal"),
        ),
        migrations.AddConstraint(
            model_name="event",
            constraint=models.UniqueConstraint(fields=("workflow", "seq"), name="rekindle_diary"),
        ),
        migrations.RunSQL(schema.FORWARD, schema.BACKWARD),
    ]
