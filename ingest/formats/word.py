"""Word documents (.docx) -> a reading, by way of the HTML that mammoth makes of them.

Mammoth knows headings, lists, tables, footnotes and text boxes; it drops equations, so those are written out as text
before it sees them. Comments, headers, footers and deleted text are no part of what a document says.
"""

import io
import re
import zipfile
from collections import defaultdict

from ingest.formats import elements, package, tree
from ingest.formats.elements import Element
from ingest.formats.reading import Reading

_STYLES = """
p[style-name='Title'] => h1:fresh
p[style-name='Subtitle'] => p:fresh
"""
_BODY = "word/document.xml"
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_FUNCTION_APPLICATION = "\u2061"
_LARGE_OPERATOR = "∫"
"""What an operator without a sign of its own is."""


def read(content: bytes) -> Reading:
    """Read a Word document's bytes."""
    import mammoth  # type: ignore[import-untyped]  # it ships no types

    archive = package.opened(content)
    said = package.properties(archive)
    with io.BytesIO(_with_written_equations(archive, content)) as file:
        markup = mammoth.convert_to_html(file, style_map=_STYLES, convert_image=mammoth.images.img_element(_no_image))
    return Reading(items=tree.items(markup.value), fallback_title=said.title, date=said.modified)


def _no_image(_image: object) -> dict[str, str]:
    return {}


def _with_written_equations(archive: zipfile.ZipFile, content: bytes) -> bytes:
    if _BODY not in archive.namelist() or b"oMath" not in archive.read(_BODY):
        return content
    body = elements.xml(archive.read(_BODY))
    for equation in list(body.iter(f"{_MATH}oMath")):
        run = elements.child(equation.getparent(), f"{_WORD}r", before=equation)
        elements.child(run, f"{_WORD}t").text = f" {written(equation).strip()} "
        equation.getparent().remove(equation)
    for paragraph in list(body.iter(f"{_MATH}oMathPara")):
        for run in list(paragraph):
            paragraph.addprevious(run)
    return _replaced(archive, elements.serialized(body))


def _replaced(archive: zipfile.ZipFile, body: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as copy:
        for part in archive.namelist():
            copy.writestr(part, body if part == _BODY else archive.read(part))
    return made.getvalue()


def written(math: Element) -> str:
    """An equation of Office's on one line, as a person would type it: `x = (-b ± √(b^2 - 4ac))/(2a)`."""
    tag = math.tag.removeprefix(_MATH)
    if tag == "t":
        return (math.text or "").replace(_FUNCTION_APPLICATION, " ")
    if shape := _SHAPES.get(tag):
        parts = {part.tag.removeprefix(_MATH): _Part(written(part)) for part in math}
        return shape.format_map(defaultdict(_Part, parts, n=_sign(math)))
    return "".join(written(part) for part in math)


_SHAPES = {
    "f": "{num:one}/{den:one}",
    "sSup": "{e:one}^{sup:one}",
    "sSub": "{e:one}_{sub:one}",
    "sSubSup": "{e:one}_{sub:one}^{sup:one}",
    "rad": "{deg}√{e:one}",
    "nary": "{n}_{sub:one}^{sup:one} {e}",
    "d": "({e})",
    "func": "{fName} {e}",
}


class _Part(str):
    """A part of an equation; formatted as `one` it stands in brackets unless it is one word or number."""

    __slots__ = ()

    def __format__(self, how: str) -> str:
        return f"({self})" if how and not re.fullmatch(r"[\w.]*|\(.*\)", self) else str(self)


def _sign(math: Element) -> str:
    sign = math.find(f"{_MATH}naryPr/{_MATH}chr")
    return _LARGE_OPERATOR if sign is None else str(sign.get(f"{_MATH}val", _LARGE_OPERATOR))
