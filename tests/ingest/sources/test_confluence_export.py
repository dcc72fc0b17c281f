"""Exports of Confluence: current pages that restrictions allow, and one clear line for every fault."""

import os
import stat
import zipfile
from pathlib import Path

import pytest

from ingest.sources.confluence.confluence_export import ConfluenceExport, ExportScope
from ingest.sources.filters import SelectionRules
from ingest.types import ChangedDocument, DeletedDocument, SourceUnavailable
from tests.ingest.sources.exports import entity, labelled, packed, page, restricted, space, xml
from tests.ingest.sources.mirrors import Mirror

HANDBOOK = (
    page(10, "Home", "<p>Welcome, all of you.</p>"),
    restricted(13, group="board"),
    page(12, "Illness", "<p>Call before nine.</p>", parent=10, version=3),
    page(11, "Holidays", "<p>Everyone has thirty days of leave.</p>", parent=10),
    page(13, "Pay", "<p>Paid on the 25th.</p>", parent=10),
    page(14, "Bonus", "<p>Ten per cent.</p>", parent=13),
    labelled(11, "leave"),
    labelled(12, "favourite", namespace="my"),
    page(2, "Illness", "<p>Call before ten.</p>", version=2, originalVersion=("Page", 12)),
    page(3, "Illness", "<p>Just call.</p>", version=1, originalVersionId=12),
    page(4, "In work", "<p>Not yet.</p>", contentStatus="draft"),
    entity("Comment", 20, owner=("Page", 10)),
    entity("BodyContent", 920, body="<p>I do not agree.</p>", content=("Comment", 20), bodyType=2),
    space(),
)


def source(path, **options):
    return ConfluenceExport(ExportScope(Path(path), **options))


def read(path, **options):
    return Mirror().sync(source(path, **options))


@pytest.fixture
def handbook(tmp_path):
    return packed(tmp_path / "export.zip", xml(*HANDBOOK))


def test_only_current_unrestricted_pages_are_read(handbook):
    mirror = read(handbook, base="https://wiki.acme.test/")

    assert mirror.titles() == ["Holidays", "Home", "Illness"]
    assert mirror.says("Illness") == "Call before nine."
    assert mirror.pages["12"].url == "https://wiki.acme.test/pages/viewpage.action?pageId=12"
    assert mirror.pages["12"].revision == "3"
    assert mirror.failures == {}


def test_allowed_group_reads_restricted_pages(handbook):
    assert read(handbook, allowed=("group:Board",)).titles() == ["Bonus", "Holidays", "Home", "Illness", "Pay"]


def test_user_keys_in_restrictions_and_mentions_are_resolved(tmp_path):
    path = packed(tmp_path / "e.zip", xml(
        entity("ContentPermissionSet", 50, type="View", owningContent=("Page", 10)),
        entity("ContentPermission", 60, type="View", userSubject=("ConfluenceUserImpl", "ff80"),
               owningSet=("ContentPermissionSet", 50)),
        page(10, "Home", '<p>Ask <ac:link><ri:user ri:userkey="ff80" /></ac:link>.</p>'),
        entity("ConfluenceUserImpl", "ff80", name="ann"), entity("InternalUser", 5, name="ann", displayName="Ann  Lee"),
        space(),
    ))  # fmt: skip

    assert read(path).titles() == []
    assert read(path, allowed=("user:ann",)).says("Home") == "Ask @Ann Lee."


HOME = page(10, "Home", "<p>Hi.</p>")
EMPTY_RESTRICTION = entity("ContentPermissionSet", 50, type="View", owningContent=("Page", 10))
CIRCLE = page(10, "A", "<p>A.</p>", parent=11) + page(11, "B", "<p>B.</p>", parent=10)
SPACES = (
    HOME, space(2, "ANN", group=None, user="ann"), page(30, "Diary", "<p>Dear me.</p>", space=2),
    space(3, "OPEN", group=None), page(40, "Open", "<p>To all.</p>", space=3),
)  # fmt: skip


@pytest.mark.parametrize(
    ("objects", "allowed", "titles"),
    [
        ((restricted(10, user="ann", kind="Edit"), HOME), (), ["Home"]),
        ((EMPTY_RESTRICTION, HOME), ("user:", "group:"), []),
        ((CIRCLE,), (), ["A", "B"]),
        (SPACES, (), ["Home", "Open"]),
        (SPACES, ("user:ann",), ["Diary", "Home", "Open"]),
    ],
    ids=["edit restriction", "no subjects", "circular ancestors", "space of a single user", "that user is allowed"],
)
def test_restrictions_decide_which_pages_are_read(tmp_path, objects, allowed, titles):
    assert read(packed(tmp_path / "e.zip", xml(space(), *objects)), allowed=allowed).titles() == titles


def test_rules_select_by_path_and_label(handbook):
    assert read(handbook, rules=SelectionRules(include=("HR/Home/**",))).titles() == ["Holidays", "Home", "Illness"]
    assert read(handbook, rules=SelectionRules(exclude=("Illness",))).titles() == ["Holidays", "Home"]
    assert read(handbook, rules=SelectionRules(labels=("Leave",))).titles() == ["Holidays"]
    assert read(handbook, rules=SelectionRules(labels=("favourite",))).titles() == []


def test_blog_posts_and_attachments_are_optional(tmp_path):
    files = {"attachments/10/70/2": "# Rota\n\nAnn on Mondays.", "attachments/10/70/1": "# Rota\n\nNobody."}
    path = packed(tmp_path / "e.zip", xml(
        *HANDBOOK, page(50, "We moved", "<p>Third floor.</p>", kind="BlogPost"),
        entity("Attachment", 70, title="rota.md", version=2, containerContent=("Page", 10)),
        entity("Attachment", 71, title="rota.md", version=1, containerContent=("Page", 10), originalVersionId=70),
        entity("Attachment", 72, fileName="pay.csv", attachmentVersion=1, content=("Page", 13)),
        entity("Attachment", 73, title="lost.txt", version=1, containerContent=("Page", 10)),
        entity("Attachment", 74, title="floor.png", version=1, containerContent=("Page", 10)),
    ), **files)  # fmt: skip

    mirror = read(path, blog_posts=True, attachments=True)

    assert {"We moved", "Rota"} <= set(mirror.titles())
    assert mirror.says("Rota") == "Ann on Mondays."
    assert mirror.failures == {"att73": "the export does not contain the file lost.txt"}
    assert "Rota" not in read(path).titles()


def test_next_export_reads_only_changed_pages(tmp_path, handbook):
    mirror = read(handbook)
    later = packed(tmp_path / "later.zip", xml(
        space(), page(10, "Home", "<p>Welcome, all of you.</p>"),
        page(12, "Illness", "<p>Call before eight.</p>", parent=10, version=4),
    ))  # fmt: skip
    mirror.sync(source(later))

    assert mirror.loaded == ["Illness"]
    assert mirror.titles() == ["Home", "Illness"]
    mirror.mark = ""
    assert mirror.sync(source(later)).loaded == []


def test_unchanged_export_file_is_not_read_again(tmp_path, handbook):
    mirror = read(handbook)
    assert mirror.mark
    whole = handbook.read_bytes()
    handbook.write_bytes(b"x" * len(whole))
    os.utime(handbook, ns=(0, int(mirror.mark.partition("-")[2])))

    mirror.sync(source(handbook))
    assert (mirror.whole, len(mirror.pages)) == (False, 3)
    assert read(packed(tmp_path / "e.zip", xml(space(), page(10, "Empty", "")))).mark == ""


def test_pages_without_text_have_reasons(tmp_path):
    path = packed(tmp_path / "e.zip", xml(
        space(), page(10, "Empty", "<p>&nbsp;</p>"),
        entity("Page", 11, title="Bare", version=1, space=("Space", 1)),
        entity("BodyContent", 912, body="h1. Leave\nThirty days.", content=("Page", 12), bodyType=0),
        entity("Page", 12, title="Old", version=1, space=("Space", 1)),
    ))  # fmt: skip
    mirror = read(path)

    assert mirror.failures == {"10": "holds no text", "11": "the export contains no text for it"}
    assert "Thirty days." in mirror.says("Old")


def test_control_characters_are_tolerated(tmp_path):
    path = packed(tmp_path / "e.zip", xml(space(), page(10, "Home", "<p>Tab\x0bled \x00text.</p>")))

    assert read(path).says("Home") == "Tab led text."


def test_single_page_is_read_by_id_or_address(handbook):
    export = source(handbook, base="https://wiki.acme.test")

    for name in ("12", "https://wiki.acme.test/pages/viewpage.action?pageId=12"):
        item = export.one(name, {})
        assert isinstance(item, ChangedDocument)
        assert item.load().title == "Illness"
    assert export.one("13", {"13": "x"}) == DeletedDocument("13")
    assert export.one("https://other.test/pages/viewpage.action?pageId=12", {}) is None
    assert export.one("99", {}) is None


def test_stop_ends_the_listing(handbook):
    export = source(handbook)
    export.stop()

    with pytest.raises(SourceUnavailable, match="stopped"):
        Mirror().sync(export)


class TestHtml:
    def page(self, title, text):
        return (
            f"<html><head><title>People : {title}</title></head><body><div id='main-header'><h1 id='title-heading'>"
            f"<span id='title-text'> People : {title} </span></h1></div><div id='content'><div class='page-metadata'>"
            "Created by <span class='author'>Ann</span>, last modified by <span>Ann</span> on Oct 14, 2026</div>"
            f"<div id='main-content' class='wiki-content group'>{text}</div></div>"
            "<div id='footer'>Document generated by Confluence</div></body></html>"
        )

    @pytest.fixture
    def export(self, tmp_path):
        index = (
            "<ul><li><a href='Home_10.html'>Home</a>"
            "<ul><li><a href='Sick%20leave_12.html'>Sick leave</a></li></ul></li>"
            "<li><a href='https://elsewhere.test/x.html'>Elsewhere</a></li></ul>"
        )
        files = {
            "HR/index.html": index,
            "HR/Home_10.html": self.page("Home", "<p>Welcome, all of you.</p>"),
            "HR/Sick leave_12.html": self.page("Sick leave", "<h2>Notes</h2><p>Due on day three.</p>"),
            "HR/Loose.html": self.page("Loose ends", "<p>Not in the index.</p>"),
            "HR/attachments/10/x.html": "<p>Attached.</p>",
        }
        return packed(tmp_path / "html.zip", None, **files)

    def test_html_pages_are_read_without_navigation(self, export):
        mirror = read(export, base="https://wiki.acme.test")

        assert mirror.titles() == ["Home", "Loose ends", "Sick leave"]
        assert mirror.says("Sick leave") == "Due on day three."
        page = mirror.pages["12"]
        assert page.url == "https://wiki.acme.test/pages/viewpage.action?pageId=12"
        assert (page.date.year, page.date.month, page.date.day) == (2026, 10, 14)
        assert (page.sections[0].path, mirror.failures) == (("Notes",), {})

    def test_index_provides_paths_for_rules(self, export):
        assert read(export, rules=SelectionRules(include=("HR/Home/**",))).titles() == ["Home", "Sick leave"]

    def test_unchanged_pages_keep_their_fingerprints(self, export):
        mirror = read(export)

        assert mirror.sync(source(export)).loaded == []


class TestHostile:
    def fails(self, path, message):
        with pytest.raises(SourceUnavailable, match=message) as caught:
            read(path)
        assert caught.value.hint
        assert "\n" not in str(caught.value)

    def test_invalid_exports_are_rejected(self, tmp_path, handbook):
        self.fails(tmp_path / "nowhere.zip", "There is no file")
        text = tmp_path / "text.zip"
        text.write_text("hello")
        self.fails(text, "not a zip archive")
        text.write_bytes(handbook.read_bytes()[:-200])
        self.fails(text, "truncated")
        self.fails(packed(tmp_path / "empty.zip", None), "is not an export of Confluence")
        nested = packed(tmp_path / "nested.zip", None, **{"export.zip": handbook.read_bytes()})
        with pytest.raises(SourceUnavailable) as caught:
            read(nested)
        assert "a zip within this zip" in caught.value.hint
        self.fails(packed(tmp_path / "x.zip", "<html><p>Hi</p></html>"), "begins with <html>")
        self.fails(packed(tmp_path / "y.zip", xml(*HANDBOOK)[:-90]), "its XML is broken")

    def test_damaged_entry_is_reported(self, tmp_path, handbook):
        content = bytearray(handbook.read_bytes())
        at = content.index(b"entities.xml") + 200
        content[at : at + 40] = os.urandom(40)
        (path := tmp_path / "d.zip").write_bytes(content)

        self.fails(path, "entities.xml cannot be unpacked|its XML is broken")

    def test_encrypted_archive_is_rejected(self, handbook):
        content = bytearray(handbook.read_bytes())
        for header, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            place = content.index(header)
            content[place + at] |= 1
        handbook.write_bytes(content)

        self.fails(handbook, "protected by a password")

    @pytest.mark.parametrize(
        "declared", ['<!DOCTYPE h [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>', "<!DOCTYPE h SYSTEM 'x'>"]
    )
    def test_xml_entities_are_refused(self, tmp_path, declared):
        self.fails(packed(tmp_path / "b.zip", xml(page(10, "Home", "x"), before=declared)), "declares a document type")

    def test_decompression_bomb_is_skipped(self, tmp_path):
        path = packed(tmp_path / "b.zip", xml(*HANDBOOK, "<!--" + " " * 20_000_000 + "-->"))

        self.fails(path, "would unpack to .* times its size")

    def test_escaping_names_and_links_are_skipped(self, tmp_path):
        path = packed(tmp_path / "n.zip", xml(*HANDBOOK), **{"../../evil.md": "x", "/etc/passwd": "x", "a\\..\\b": "x"})
        with zipfile.ZipFile(path, "a") as archive:
            link = zipfile.ZipInfo("attachments/10/70/1")
            link.create_system = 3
            link.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(link, "/etc/passwd")

        mirror = read(path, attachments=True)

        assert mirror.titles() == ["Holidays", "Home", "Illness"]
        assert sorted(mirror.failures.values()) == ["it is a link", *["its name leads out of the archive"] * 3]
        assert not list(tmp_path.parent.glob("**/evil.md"))

    def test_oversized_page_is_unreadable_and_others_are_read(self, tmp_path):
        words = "".join(f"<p>Word {number} of a long page.</p>" for number in range(520_000))
        path = packed(tmp_path / "long.zip", xml(page(99, "Long", words), *HANDBOOK))

        mirror = read(path)

        assert mirror.failures == {"99": "is longer than the largest page that is read"}
        assert mirror.titles() == ["Holidays", "Home", "Illness"]

    @pytest.mark.parametrize(("deep", "pages"), [(1_000, 4), (20_000, 3)])
    def test_deeply_nested_elements_do_not_fail_the_others(self, tmp_path, deep, pages):
        path = packed(tmp_path / "deep.zip", xml(page(99, "Deep", "<div>" * deep + "Bottom."), *HANDBOOK))

        assert len(read(path).pages) == pages


DATA = Path(os.environ.get("FOOTNOTE_DATA", "")) / "corporate_docs"


@pytest.mark.skipif(not (DATA / "confluence-5.9.zip").is_file(), reason="FOOTNOTE_DATA has no exports of Confluence")
@pytest.mark.parametrize(("name", "pages"), [("confluence-4.3.2.xml.zip", 2), ("confluence-5.9.zip", 11)])
def test_real_exports_are_read_completely(name, pages):
    mirror = read(DATA / name, attachments=True)

    assert sum(not key.startswith("att") for key in mirror.known) == pages
    assert mirror.failures == {}
