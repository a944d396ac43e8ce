"""Admin, login and logout; everything else is the dashboard's."""

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path

login = LoginView.as_view(template_name="rekindle/login.html", redirect_authenticated_user=True)

urlpatterns = [
    path("admin/", admin.site.urls),
    path("login/", login, name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("", include("recovery.urls")),
]

handler403 = "recovery.views.errors.permission_denied"
handler404 = "recovery.views.errors.page_not_found"
handler500 = "recovery.views.errors.server_error"
