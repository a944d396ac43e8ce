"""Somebody else's project. It knows nothing of Rekindle; what docs/install.md adds is written below its last line."""

import os
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
SECRET_KEY = "the-bakery-keeps-its-own-secrets-and-they-are-long-enough-7391-QXZ"
ALLOWED_HOSTS = ["127.0.0.1"]
HTTPS = "BAKERY_HTTPS" in os.environ

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "csp",
    "django_q",
    "people",
    "shop",
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
    "csp.middleware.CSPMiddleware",
]

CONTENT_SECURITY_POLICY = {"DIRECTIVES": {"default-src": ["'self'", "https://bread.example"]}}

ROOT_URLCONF = "bakery.urls"
AUTH_USER_MODEL = "people.Baker"
LOGIN_URL = "/people/enter/"
LOGIN_REDIRECT_URL = "/"

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

# No pool, a connection that outlives a request, and a patience of its own for its slow reports.
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ["BAKERY_DATABASE"],
        "USER": os.environ["BAKERY_USER"],
        "HOST": os.environ["BAKERY_HOST"],
        "PORT": os.environ["BAKERY_PORT"],
        "ATOMIC_REQUESTS": True,
        "CONN_MAX_AGE": 600,
        "OPTIONS": {"options": "-c statement_timeout=77s"},
    }
}

Q_CLUSTER = {"name": "bakery", "orm": "default", "workers": 1, "timeout": 30, "retry": 60, "poll": 1}

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TIME_ZONE = "Europe/Vienna"
LANGUAGE_CODE = "de"
USE_TZ = True

STATIC_URL = "/assets/"
STATIC_ROOT = os.environ["BAKERY_STATIC"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"},
}

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
