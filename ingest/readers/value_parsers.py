"""Parse untrusted dates, YAML and XML without exhausting memory and without access to files or the network."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time
from email.utils import parsedate_to_datetime
from typing import Any

import lxml.etree  # type: ignore[import-untyped]  # it ships no types
import yaml

from storage.language.lazy_pattern import lazy_compile
from storage.language.months import MONTHS, SHORT_MONTHS
from storage.language.words import fold_spelling

_PDF_DATE = lazy_compile(r"(?:D:)?(\d{4})(\d{2})?(\d{2})?(\d{2})?(\d{2})?(\d{2})?(?:(Z)|([+-]\d{2})'?(\d{2})?'?)?")
_MONTH_NUMBERS = {name[:most]: at for name, at in MONTHS.items() for most in (3, 4)} | SHORT_MONTHS | MONTHS
_WRITTEN_DATES = tuple(
    lazy_compile(form, re.IGNORECASE)
    for form in (
        r"(?P<day>\d{1,2})\. ?(?P<month>\d{1,2})\. ?(?P<year>\d{4})",
        r"(?P<year>\d{4})/(?P<month>\d{1,2})/(?P<day>\d{1,2})",
        r"(?P<year>\d{4})-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2}))?",
        r"(?P<day>\d{1,2})(?:st|nd|rd|th|er|\.|º)? (?:de )?(?P<name>[^\W\d_]{3,10})\.?,? (?:del? )?(?P<year>\d{4})",
        r"(?P<name>[^\W\d_]{3,10})\.? (?P<day>\d{1,2})(?:st|nd|rd|th)?,? (?P<year>\d{4})",
    )
)
"""Dates as people write them; not `02/03/2024`, which is ambiguous."""


def parse_date(written: object) -> datetime | None:
    """Parse a date in ISO 8601, as in e-mail, or as people write it. Without a zone it is in UTC; None if invalid."""
    if isinstance(written, datetime):
        return _with_zone(written)
    if isinstance(written, date):
        return datetime.combine(written, time(), UTC)
    text = " ".join(str(written or "").split())
    for parse in (_parse_written_date, datetime.fromisoformat, parsedate_to_datetime):
        try:
            return _with_zone(parse(text))
        except (ValueError, OverflowError):
            continue
    return None


def parse_first_date(written: Iterable[object]) -> datetime | None:
    """Return the first of several values that can be parsed as a date; None if none can."""
    return next(filter(None, map(parse_date, written)), None)


def parse_full_date(written: str) -> datetime | None:
    """Parse a full date as people write it; None for a month or year alone, or if other text is around the date."""
    whole = any(match["day"] for form in _WRITTEN_DATES if (match := form.fullmatch(written)))
    return parse_date(written) if whole else None


def parse_pdf_date(written: str) -> datetime | None:
    """Parse a date of a PDF, such as `D:20240131120000+01'00'`; the end is often missing."""
    match = _PDF_DATE.fullmatch(written.strip())
    if not match:
        return None
    year, month, day, hour, minute, second, _, zone_hours, zone_minutes = match.groups()
    zone = f"{zone_hours}:{zone_minutes or '00'}" if zone_hours else "+00:00"
    iso = f"{year}-{month or '01'}-{day or '01'}T{hour or '00'}:{minute or '00'}:{second or '00'}{zone}"
    return parse_date(iso)


def _parse_written_date(text: str) -> datetime:
    match = next(filter(None, (form.fullmatch(text) for form in _WRITTEN_DATES)), None)
    if match is None:
        raise ValueError(f"{text!r} is not a written date")
    parts = match.groupdict()
    month = _MONTH_NUMBERS.get(fold_spelling(parts["name"]), 0) if "name" in parts else int(parts["month"])
    return datetime(int(parts["year"]), month, int(parts["day"] or 1), tzinfo=UTC)


def _with_zone(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


_DEEPEST_YAML = 100  # nested collections
_MOST_MERGED_KEYS = 10_000
"""Keys that a mapping may merge from others by `<<`, which may merge keys themselves."""


class _SafeYamlLoader(yaml.SafeLoader):
    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._depth += 1
        if self._depth > _DEEPEST_YAML:
            raise yaml.composer.ComposerError(None, None, "collections are nested too deeply", None)
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        if len(node.value) > _MOST_MERGED_KEYS:
            raise yaml.constructor.ConstructorError(None, None, "mappings merge too much", node.start_mark)


def load_yaml(text: str) -> Any:
    return yaml.load(text, _SafeYamlLoader)  # noqa: S506 - a safe loader


def load_yaml_documents(text: str) -> Iterator[Any]:
    return iter(yaml.load_all(text, _SafeYamlLoader))


Element = Any  # an lxml element, with tag, text, tail, attributes and children


def parse_xml(content: bytes) -> Element:
    """Parse XML without expanding its own entities and without network access. Raises `ValueError` if it is broken."""
    parser = lxml.etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
    try:
        root = lxml.etree.fromstring(content, parser=parser)
    except lxml.etree.XMLSyntaxError as error:
        raise ValueError(str(error)) from error
    lxml.etree.strip_elements(root, lxml.etree.Entity, with_tail=False)
    return root


def local_name(element: Element) -> str:
    """Return the name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


def element_text(element: Element) -> str:
    """Return the whole text of an element on one line."""
    return " ".join("".join(element.itertext()).split())


def primary_language(tag: str) -> str:
    """Return the two letters at the start of a language tag: `en` for `en-GB`."""
    return re.split(r"[-_]", tag)[0].lower()[:2]


def add_child(parent: Element, tag: str, *, before: Element | None = None) -> Element:
    """Add a child to `parent`, at the end or directly before `before`."""
    child = lxml.etree.SubElement(parent, tag)
    if before is not None:
        before.addprevious(child)
    return child


def serialize_xml(element: Element) -> bytes:
    content: bytes = lxml.etree.tostring(element, xml_declaration=True, encoding="UTF-8", standalone=True)
    return content
