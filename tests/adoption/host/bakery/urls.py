from django.contrib import admin
from django.contrib.auth.views import LoginView
from django.urls import include, path

urlpatterns = [
    path("", include("shop.urls")),
    path("people/enter/", LoginView.as_view(template_name="people/enter.html"), name="enter"),
    path("back-office/", admin.site.urls),
]
