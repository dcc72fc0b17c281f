"""Square brackets of wikitext: links become their label; files, categories and links to other languages go."""

import re

SIMPLE = re.compile(r"\[\[(?:[^\[\]{}|:\n]*\|)?([^\[\]{}|:\n]*)\]\]")
"""A link without a colon, a template or another link in it: nearly all are. Its group is the label."""
_EXTERNAL = re.compile(r"\[(?:https?:|ftps?:|mailto:|news:|irc:|//)[^\s\[\]]*[ \t\xa0]*([^\[\]\n]*)\]", re.IGNORECASE)
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z]{2,8}){0,2}")
_SHOWN = frozenset("wikt wiktionary wikisource wikiquote wikibooks wikinews wikispecies commons meta mw doi rfc".split())
_PARENTHESIS = re.compile(r"\s*[(（][^()（）]*[)）]$")

HIDDEN = frozenset(
    # Files, media and categories, as Wikipedias in many languages call them, for links left from a translation.
    "file image media category datei bild kategorie fichier catégorie categorie archivo imagen categoría immagine "
    "categoria ficheiro imagem arquivo файл изображение категория файл зображення категорія plik grafika kategoria "
    "bestand afbeelding fil kategori tiedosto kuva luokka soubor obrázek kategória súbor fájl kép kategória dosya "
    "resim ファイル 画像 カテゴリ 文件 檔案 档案 圖像 图像 分类 分類 파일 그림 분류 ملف صورة تصنيف پرونده رده تصویر "
    "קובץ תמונה קטגוריה चित्र श्रेणी छवि চিত্র বিষয়শ্রেণী படிமம் பகுப்பு ไฟล์ หมวดหมู่ ภาพ tập_tin hình thể_loại berkas gambar "
    "kategori αρχείο εικόνα κατηγορία fails attēls kategorija kategoreja vaizdas kategorija slika datoteka kategorija "
    "слика датотека категорија датотека fișier imagine fitxer imatge categoria fitxategi irudi dosiero kategorio "
    "картинка катэгорыя pilt kategooria skrá flokkur պատկեր կատեգորիա ფაილი კატეგორია şəkil kateqoriya санат "
    "สื่อ medio media medya médias média файл категория".split()
)


def without_simple_links(text: str) -> str:
    """Text whose simple links are their labels."""
    # Splitting at a pattern with one group and joining again replaces each match by its group without a call for each.
    return "".join(SIMPLE.split(text))


def without_external_links(text: str) -> str:
    """Text whose links to the web are their labels."""
    return "".join(_EXTERNAL.split(text))


def label(body: str, hidden: frozenset[str]) -> str:
    """What the inside of any `[[...]]` shows; empty for files, categories and links to other languages.

    `hidden` are further names of such namespaces, in lower case, spaces as underscores.
    """
    target, pipe, shown = body.partition("|")
    target = target.strip()
    if target.startswith(":"):
        return shown.strip() or target.lstrip(":").strip()
    prefix, colon, rest = target.partition(":")
    if colon:
        name = prefix.strip().lower().replace(" ", "_")
        if name in HIDDEN or name in hidden:
            return ""
        if _LANGUAGE.fullmatch(prefix):
            return (shown or rest).strip() if prefix in _SHOWN else ""
        target = rest if name in _SHOWN or len(name) == 1 else target
    if pipe:
        return shown.strip("\n") or _PARENTHESIS.sub("", target)
    return target.lstrip("#/").rstrip("/")
