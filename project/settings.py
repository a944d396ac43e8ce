"""Settings of this repository's own Django project. A host that installs the two apps has its own.

Without DATABASE_URL everything lives in one data directory, the embedded database too. With it, or with
REKINDLE_ENV=production, nothing is made up any more: a secret key has to be given. REKINDLE_ENV=production
also says that the site is reached over HTTPS.
"""

import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from project import database, postgres
from project.logs import logging_settings
from project.secret import kept


def words(name: str) -> list[str]:
    return os.environ.get(name, "").replace(",", " ").split()


BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = Path(os.environ.get("REKINDLE_DATA") or BASE_DIR / ".data").absolute()

DATABASE_URL = os.environ.get("DATABASE_URL", "")
EMBEDDED = not DATABASE_URL
PRODUCTION = os.environ.get("REKINDLE_ENV") == "production"
AT_HOME = EMBEDDED and not PRODUCTION

DEBUG = AT_HOME and os.environ.get("REKINDLE_DEBUG") == "1"
SECRET_KEY = os.environ.get("REKINDLE_SECRET_KEY") or os.environ.get("SECRET_KEY") or ""
if not SECRET_KEY:
    if not AT_HOME:
        raise ImproperlyConfigured(
            "Set REKINDLE_SECRET_KEY to a long random text: it is required in production and with DATABASE_URL."
        )
    SECRET_KEY = kept(DATA_DIR, "secret-key", 50)

ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", *words("REKINDLE_HOSTS")]
CSRF_TRUSTED_ORIGINS = words("REKINDLE_ORIGINS")

DATABASES = {"default": database.parse(DATABASE_URL or postgres.url(DATA_DIR))}

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_q",
    "django_htmx",
    "template_partials",
    "workflows.apps.WorkflowsConfig",
    "recovery.apps.RecoveryConfig",
    "project.apps.ProjectConfig",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "project.urls"
WSGI_APPLICATION = "project.wsgi.application"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"
CSRF_FAILURE_VIEW = "recovery.views.errors.csrf_failure"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
# At home, and until they are collected, files are served from where they lie: nothing to collect, nothing stale.
WHITENOISE_USE_FINDERS = AT_HOME or not (STATIC_ROOT / "staticfiles.json").exists()
WHITENOISE_AUTOREFRESH = DEBUG
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage" if AT_HOME else "project.static.Hashed"
    },
}

# The scheduler's tasks are short, each repeats by itself within a minute, and none is worth catching up on.
Q_CLUSTER = {
    "name": "rekindle",
    "orm": "default",
    "workers": 2,
    "timeout": 55,
    "retry": 120,
    "max_attempts": 1,
    "catch_up": False,
    "poll": 1,
    "bulk": 1,
    "queue_limit": 10,
    "save_limit": 100,
}

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = PRODUCTION
SECURE_HSTS_SECONDS = 31_536_000 if PRODUCTION else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = PRODUCTION
SECURE_REDIRECT_EXEMPT = [r"^healthz$"]  # asked from inside the host, before any proxy
X_FRAME_OPTIONS = "DENY"

LOGGING = logging_settings(os.environ.get("REKINDLE_LOG") or ("json" if PRODUCTION else "text"))

REKINDLE: dict[str, object] = {}
