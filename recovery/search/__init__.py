"""The search language: one for the page and the command line.

language    the words there are, and what each means
parsing     text becomes terms, each with its place; pure
known       what there is to name: workflow names, fields of inputs
troubles    ids of workflows in a certain trouble or place
matching    terms become a condition that an index answers, and hints about what was not understood
suggesting  what the search box offers
spelling    words become a search, for whoever links to one
"""

from .known import Known
from .language import LONGEST
from .matching import Search, search
from .parsing import Hint, Term, parse
from .spelling import spell
from .suggesting import suggestions

__all__ = ["LONGEST", "Hint", "Known", "Search", "Term", "parse", "search", "spell", "suggestions"]
