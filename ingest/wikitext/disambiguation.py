"""Whether a page only tells apart what shares its title, as Wikipedias in many languages mark it."""

import re

_LONGEST = 60_000
"""Characters. Such a page is a list; a longer one that names such a template speaks of it."""
_TEMPLATES = (
    "disambig[a-z]*|disamb|dab|hndis|geodis|geo-dis|numberdis|surname|given name|schooldis|hospitaldis|roaddis|shipindex|"
    "set index article|sia|letter-number combination disambiguation|"
    "begriffsklärung|homonymie|desambiguación|desambiguacion|des|disambigua|desambiguação|desambig|dp|"
    "doorverwijspagina|olika betydelser|förgrening|gren|flertydig|peker|pekerside|ujednoznacznienie|неоднозначность|"
    "багатозначність|пояснение|вишезначна одредница|čvor|razdvojba|rozcestník|rozlišovacia stránka|egyért|egyért-redir|"
    "dezambiguizare|täsmennyssivu|anlam ayrımı|anlamayrımı|desambiguació|αποσαφήνιση|disambigiliu|apartigilo|argipen|"
    "曖昧さ回避|aimai|人名の曖昧さ回避|地名の曖昧さ回避|消歧义|消歧義|消歧义页|동음이의|동명이인|توضيح|صفحة توضيح|ابهام‌زدایی|"
    "פירושונים|trang định hướng|định hướng|bahasa disambiguasi|disambiguasi|nyahkekaburan|แก้กำกวม|बहुविकल्पी शब्द|দ্ব্যর্থতা নিরসন|"
    "nuorodinis|täpsustuslehekülg|nozīmju atdalīšana|zeimeibu škiršona|мноогозначност|აზრთა სხვადასხვაობა|бир нече маани"
)
_MARK = re.compile(rf"\{{\{{\s*(?:template:)?(?:{_TEMPLATES})\s*(?:\||\}}\}})", re.IGNORECASE)
_TITLE = re.compile(
    r"[(（](?:disambiguation|Begriffsklärung|homonymie|desambiguación|disambigua|desambiguação|doorverwijspagina|"
    r"olika betydelser|ujednoznacznienie|значения|значення|曖昧さ回避|消歧义|消歧義|동음이의|توضيح|ابهام‌زدایی|פירושונים|"
    r"anlam ayrımı|razdvojba|вишезначна одредница|dezambiguizare|täsmennyssivu)[)）]$",
    re.IGNORECASE,
)


def is_disambiguation(title: str, wikitext: str) -> bool:
    """Tell by a template, the magic word, or the ending of the title."""
    if _TITLE.search(title):
        return True
    return len(wikitext) < _LONGEST and ("__DISAMBIG__" in wikitext or bool(_MARK.search(wikitext)))
