"""Minimal files of several formats."""

import io
import zipfile
from collections.abc import Iterable, Mapping

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def zipped(parts: Mapping[str, str | bytes]) -> bytes:
    """Pack parts into an archive."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return made.getvalue()


def docx(body: str, *, title: str = "", modified: str = "") -> bytes:
    """Make a Word document of the markup of its body (prefixes w and m)."""
    return zipped(
        {
            "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="xml" '
            'ContentType="application/xml"/><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
            f'Type="{_OFFICE}/officeDocument" Target="word/document.xml"/></Relationships>',
            "word/document.xml": f'<w:document xmlns:w="{_WORD}" xmlns:m="{_MATH}" '
            f'xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml">'
            f"<w:body>{body}</w:body></w:document>",
            "word/styles.xml": f'<w:styles xmlns:w="{_WORD}">'
            + "".join(
                f'<w:style w:type="paragraph" w:styleId="{name.replace(" ", "")}"><w:name w:val="{name}"/></w:style>'
                for name in ("Title", "heading 1", "heading 2")
            )
            + "</w:styles>",
            "word/_rels/document.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
            f'Type="{_OFFICE}/styles" Target="styles.xml"/></Relationships>',
            "docProps/core.xml": f'<c:coreProperties xmlns:c="{_PACKAGE}/metadata/core-properties" '
            'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/">'
            f"<dc:title>{title}</dc:title><dcterms:modified>{modified}</dcterms:modified></c:coreProperties>",
        }
    )


def paragraph(text: str, style: str = "") -> str:
    """Make the markup of a Word paragraph."""
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def epub(chapters: Iterable[str], *, title: str, modified: str) -> bytes:
    """Make a book of the bodies of its chapters."""
    bodies = list(chapters)
    items = "".join(
        f'<item id="c{n}" href="text/c{n}.xhtml" media-type="application/xhtml+xml"/>' for n in range(len(bodies))
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(bodies)))
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="book/content.opf"/></rootfiles></container>',
            "book/content.opf": '<package xmlns="http://www.idpf.org/2007/opf" '
            'xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
            f"<dc:title>{title}</dc:title><dc:language>en-GB</dc:language>"
            f'<meta property="dcterms:modified">{modified}</meta></metadata>'
            f"<manifest>{items}</manifest><spine>{spine}</spine></package>",
            **{
                f"book/text/c{n}.xhtml": '<?xml version="1.0" encoding="utf-8"?>'
                f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body>{body}</body></html>'
                for n, body in enumerate(bodies)
            },
        }
    )


def pdf(
    pages: Iterable[Iterable[tuple[float, float, float, str]]],
    *,
    title: str = "",
    modified: str = "",
    letters: str = "",
    drawing: bool = False,
) -> bytes:
    """Make a PDF of pages; each text has its distances from the left and the bottom, and its size, in points.

    `letters` replace `a`, `b` and so on as the extracted text; with a `drawing`, each page also has a shape.
    """
    contents = [_drawn(texts) + (b"\n20 20 99 99 re f" if drawing else b"") for texts in pages]
    numbers = range(len(contents))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{' '.join(f'{5 + 2 * n} 0 R' for n in numbers)}]/Count {len(contents)}>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding%s>>"
        % (b"/ToUnicode %d 0 R" % (5 + 2 * len(contents)) if letters else b""),
        f"<</Title({title})/ModDate({modified})>>".encode(),
    ]
    for n, content in enumerate(contents):
        objects += [
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>/Contents %d 0 R>>"
            % (6 + 2 * n),
            b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
        ]
    meant = "".join(f"<{ord('a') + n:02x}> <{ord(letter):04x}>\n" for n, letter in enumerate(letters))
    names = (
        f"begincmap\n1 begincodespacerange\n<00> <ff>\nendcodespacerange\n{len(letters)} beginbfchar\n{meant}endbfchar"
    )
    objects.append(b"<</Length %d>>stream\n%s\nendcmap\nendstream" % (len(names) + 8, names.encode()))
    return _numbered(objects)


def _drawn(texts: Iterable[tuple[float, float, float, str]]) -> bytes:
    drawn = (f"BT /F1 {size} Tf {x} {y} Td ({_escaped(text)}) Tj ET" for x, y, size, text in texts)
    return "\n".join(drawn).encode("cp1252")


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def _numbered(objects: Iterable[bytes]) -> bytes:
    made, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1)
    tail = b"trailer<</Size %d/Root 1 0 R/Info 4 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(places) + 1, len(made))
    return made + head + table + tail
