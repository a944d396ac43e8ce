"""Finding among millions: exact words through an index, and no counting without end."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db.models import Model, Q, QuerySet
from django.utils.functional import cached_property

if TYPE_CHECKING:
    AnyPaginator = Paginator[Any]
else:  # generic only for the type checker
    AnyPaginator = Paginator

MOST = 10_000  # rows that can be paged through; who looks for more has a search for it


class Capped(AnyPaginator):
    """The stock one counts every row for each page."""

    object_list: QuerySet[Any]

    @cached_property
    def count(self) -> int:
        return self.object_list.order_by()[:MOST].count()


def exactly(rows: QuerySet[Any], fields: Iterable[str], word: str) -> QuerySet[Any]:
    """Rows of which one of these fields is the word; the stock search would compare texts in capitals, row by row."""
    wanted = Q(pk__in=[])
    for name in (field.removeprefix("=") for field in fields):
        try:
            wanted |= Q(**{name: _kind(rows.model, name).to_python(word)})
        except ValidationError:
            continue  # it cannot be one
    return rows.filter(wanted)


def _kind(model: type[Model], name: str) -> Any:
    field = model._meta.get_field(name.partition("__")[0])
    return field.target_field if field.is_relation else field  # type: ignore[union-attr]
