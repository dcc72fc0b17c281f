"""Whether a page only tells apart what shares its title, as Wikipedias in many languages mark it."""

import re

from ingest.wikitext.names import disambiguations

_LONGEST = 60_000
"""Characters. Such a page is a list; a longer one that names such a template speaks of it."""
_TITLE = re.compile(
    r"[(（](?:disambiguation|Begriffsklärung|homonymie|desambiguación|disambigua|desambiguação|"
    r"doorverwijspagina|olika betydelser|ujednoznacznienie|значения|значення|曖昧さ回避|消歧义|消歧義|동음이의|توضيح|"
    r"ابهام‌زدایی|פירושונים|anlam ayrımı|razdvojba|вишезначна одредница|dezambiguizare|täsmennyssivu)[)）]$",
    re.IGNORECASE,
)


_TEMPLATE = re.compile(r"\{\{\s*([^{}|\n]{2,60}?)\s*[|}]")


def is_disambiguation(title: str, wikitext: str) -> bool:
    """Tell by a template, the magic word, or the ending of the title."""
    if _TITLE.search(title):
        return True
    if len(wikitext) > _LONGEST:
        return False
    return "__DISAMBIG__" in wikitext or any(map(_marks, _TEMPLATE.findall(wikitext)))


def _marks(template: str) -> bool:
    name = template.lower().replace("_", " ").removeprefix("template:")
    return name in disambiguations() or name.endswith("disambiguation")
