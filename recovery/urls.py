"""The operator's pages. Everything but `healthz` asks for a login and a permission."""

from django.urls import path, re_path

from . import views

app_name = "rekindle"

urlpatterns = [
    path("", views.overview, name="overview"),
    path("rail", views.rail, name="rail"),
    path("workflows/", views.workflows, name="workflows"),
    path("workflows.csv", views.workflows_csv, name="workflows_csv"),
    path("workflows.jsonl", views.workflows_jsonl, name="workflows_jsonl"),
    path("workflows/behind", views.behind, name="behind"),
    path("views/new", views.keep_view, name="keep_view"),
    path("views/<int:pk>", views.saved_view, name="saved_view"),
    path("workflows/<uuid:pk>/ask/<slug:act>", views.ask, name="ask"),
    path("workflows/<uuid:pk>/", views.workflow, name="workflow"),
    path("workflows/<uuid:pk>/payload/<slug:what>.json", views.payload, name="payload"),
    path("workflows/ask/<slug:act>", views.ask_many, name="ask_many"),
    path("batches/", views.batches, name="batches"),
    path("batches/<int:pk>/", views.batch, name="batch"),
    path("batches/<int:pk>/stop", views.stop_batch, name="stop_batch"),
    path("batches/<int:pk>.csv", views.batch_csv, name="batch_csv"),
    path("notes/<slug:kind>/<str:pk>", views.notes, name="notes"),
    path("names/<path:name>/", views.name, name="name"),
    path("recovery/", views.recovery, name="recovery"),
    path("recovery/sweep", views.sweep, name="sweep"),
    path("recovery/mode", views.change_mode, name="change_mode"),
    path("recovery/rules/<int:pk>", views.change_rule, name="change_rule"),
    path("workers/", views.workers, name="workers"),
    path("workers/<int:pk>/kill", views.kill, name="kill"),
    path("demo/start", views.start_demo, name="start_demo"),
    path("audit/", views.audit, name="audit"),
    path("audit.csv", views.audit_csv, name="audit_csv"),
    re_path(r"^charts/(?P<name>[\w-]+)\.(?P<form>json|csv|html)$", views.chart, name="chart"),
    path("healthz", views.healthz, name="healthz"),
]
