from django.db import connection
from django.http import HttpResponse
from django.shortcuts import render


def home(request):
    return render(request, "shop/home.html")


def patience(request):
    """How long the database lets a query of this project run."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        return HttpResponse(cursor.fetchone()[0])
