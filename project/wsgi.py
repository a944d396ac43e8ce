import gc
import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
settings.STATIC_ROOT.mkdir(mode=0o700, parents=True, exist_ok=True)  # WhiteNoise complains if it is not there
application = get_wsgi_application()
gc.collect()
gc.freeze()  # what is loaded by now stays: no collection walks through it in the middle of a page
