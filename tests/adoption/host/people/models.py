import uuid

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models


class Bakers(BaseUserManager):
    def create_user(self, email, password=None, **more):
        baker = self.model(email=self.normalize_email(email), **more)
        baker.set_password(password)
        baker.save(using=self._db)
        return baker

    def create_superuser(self, email, password=None):
        return self.create_user(email, password, is_superuser=True, is_staff=True)


class Baker(AbstractBaseUser, PermissionsMixin):
    """Known by e-mail and by nothing else; the key is a UUID."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    email = models.EmailField(unique=True)
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)

    USERNAME_FIELD = "email"
    objects = Bakers()

    def __str__(self):
        return self.email
