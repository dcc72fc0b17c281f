"""Read reStructuredText: docutils converts it to HTML, which is then read."""

import functools
import re
from typing import Any, ClassVar

from docutils import nodes
from docutils.core import publish_doctree, publish_from_doctree
from docutils.parsers.rst import Directive, directives, roles
from docutils.utils import unescape

from ingest.readers import front_matter, html_tree, value_parsers
from ingest.readers.parsed_document import ParsedDocument
from storage.language.lazy_pattern import lazy_compile

_SETTINGS = {
    "_disable_config": True,
    "doctitle_xform": False,
    "embed_stylesheet": False,
    "file_insertion_enabled": False,
    "halt_level": 5,
    "initial_header_level": 1,
    "output_encoding": "unicode",
    "raw_enabled": False,
    "report_level": 5,
    "smart_quotes": False,
    "stylesheet_path": None,
    "syntax_highlight": "none",
    "toc_backlinks": False,
    "warning_stream": False,
}
_ROLES = (
    "abbr any attr class command const data dfn doc download envvar exc file func guilabel kbd keyword mailheader "
    "makevar manpage menuselection meth mimetype mod newsgroup numref obj option program py:attr py:class py:data "
    "py:exc py:func py:meth py:mod py:obj ref regexp samp term token"
)
_TEXTS = (
    "centered deprecated dropdown glossary grid grid-item grid-item-card hlist only rst-class seealso tab tab-item "
    "tab-set tabs versionadded versionchanged versionremoved"
)
_CODES = "code-block highlight-block literalinclude prompt sourcecode"
_GENERATED = (
    "autoattribute autoclass autodata autoexception autofunction automethod automodule autosummary contents "
    "currentmodule highlight image index include module tabularcolumns toctree"
)


_LONG_PARAGRAPH = 1 << 14
"""Characters of a paragraph above which it is parsed in pieces: an unclosed mark is searched for in the whole text."""
_PIECE = 1 << 10  # characters
_PARAGRAPH = lazy_compile(r"(?:^[^\s+=|.].*\n){2,}+", re.MULTILINE)


def read_restructured_text(text: str) -> ParsedDocument:
    return front_matter.read_with_fields(text, _read_body, any_fields=False)


def _read_body(text: str) -> ParsedDocument:
    _register_sphinx()
    document = publish_doctree(_split_paragraphs(text), settings_overrides=_SETTINGS)
    fields = _field_list(document)
    for unwanted in [*document.findall(nodes.system_message), *document.findall(nodes.image)]:
        unwanted.parent.remove(unwanted)
    stated = [fields[name] for name in ("updated", "date") if fields.get(name)]
    markup = publish_from_doctree(document, writer="html5", settings_overrides=_SETTINGS)
    return ParsedDocument(
        items=html_tree.read_html(markup),
        title=fields.get("title", ""),
        date=value_parsers.parse_first_date(stated),
        dated=bool(stated),
        revision=fields.get("revision") or fields.get("version") or "",
    )


def _split_paragraphs(text: str) -> str:
    """Insert blank lines into paragraphs that are too long."""
    return _PARAGRAPH.sub(
        lambda paragraph: paragraph[0] if len(paragraph[0]) < _LONG_PARAGRAPH else _split_lines(paragraph[0]), text
    )


def _split_lines(paragraph: str) -> str:
    pieces: list[str] = []
    size = 0
    for line in paragraph.splitlines(keepends=True):
        size += len(line)
        pieces.append(line)
        if size >= _PIECE:
            pieces.append("\n")
            size = 0
    return "".join(pieces)


def _field_list(document: nodes.document) -> dict[str, str]:
    """Remove the fields at the top of the document, or below its title, and return them."""
    field_list = next(iter(document.findall(nodes.docinfo)), None) or next(
        iter(document.findall(nodes.field_list)), None
    )
    before = field_list.parent.children[: field_list.parent.index(field_list)] if field_list is not None else ()
    if field_list is None or not all(isinstance(node, nodes.title | nodes.comment | nodes.target) for node in before):
        return {}
    field_list.parent.remove(field_list)
    fields = {}
    for field in field_list.children:
        if isinstance(field, nodes.field):
            fields[field[0].astext().lower()] = field[1].astext()
        else:
            fields[type(field).__name__] = field.astext()
    return fields


@functools.cache
def _register_sphinx() -> None:
    for name in _ROLES.split():
        roles.register_local_role(name, _role)
    for directive, names in ((_Text, _TEXTS), (_Code, _CODES), (_Generated, _GENERATED)):
        for name in names.split():
            directives.register_directive(name, directive)


def _role(_name: str, _raw: str, text: str, *_: Any, **__: Any) -> Any:
    """Read a role as text: `label <target>` becomes its label, and `~package.name` becomes `name`."""
    label = unescape(text).split("<")[0].strip() or text.strip("<>")
    if label.startswith("~"):
        label = label.rpartition(".")[2]
    return [nodes.inline(text=label.lstrip("!"))], []


class _AnyArguments(Directive):
    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True


class _Text(_AnyArguments):
    """Reads a directive whose argument and content are text."""

    option_spec = None

    def run(self) -> list[nodes.Node]:
        box = nodes.container()
        if self.arguments:
            box += nodes.paragraph(text=self.arguments[0])
        self.state.nested_parse(self.content, self.content_offset, box)
        return [box]


class _Code(_AnyArguments):
    """Reads a directive whose content is code."""

    option_spec: ClassVar[Any] = None

    def run(self) -> list[nodes.Node]:
        code = "\n".join(self.content)
        return [nodes.literal_block(code, code)] if code else []


class _Generated(_AnyArguments):
    """Omits a directive whose output would be generated from other files."""

    def run(self) -> list[nodes.Node]:
        return []
