"""For load balancers: does this server reach its database?"""

import time

from django.db import Error as DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from ..queries.health import ping
from .door import own_transactions


@own_transactions
@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    began = time.perf_counter()
    try:
        ping()
    except DatabaseError:
        return JsonResponse({"ok": False, "database": "does not answer"}, status=503)
    return JsonResponse({"ok": True, "database_ms": round((time.perf_counter() - began) * 1000, 2)})
