"""Confluence's storage format: visible text is read, parameters of macros are not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.readers.parsed_document import Heading
from ingest.sources.confluence.storage_format import read_storage_format
from storage.types import PassageKind


def texts(markup, users=None):
    return [item.text for item in read_storage_format(markup, users or {})]


def macro(name, inside, **parameters):
    written = "".join(f'<ac:parameter ac:name="{key}">{value}</ac:parameter>' for key, value in parameters.items())
    return f'<ac:structured-macro ac:name="{name}" ac:macro-id="7f">{written}{inside}</ac:structured-macro>'


def rich(inside):
    return f"<ac:rich-text-body>{inside}</ac:rich-text-body>"


def verbatim(text):
    return f"<ac:plain-text-body><![CDATA[{text}]]></ac:plain-text-body>"


@pytest.mark.parametrize("end", ["]]>", "]] >"])
def test_code_is_kept_verbatim(end):
    """Inside an export's CDATA, the end of CDATA contains a space."""
    body = f"<ac:plain-text-body><![CDATA[if a < b && c:\n    <b>x</b>{end}</ac:plain-text-body>"

    title, code = read_storage_format(macro("code", body, title="Check", language="python"))

    assert title.text == "Check"
    assert (code.text, code.kind) == ("if a < b && c:\n    <b>x</b>", PassageKind.CODE)


LINKS = (
    '<p><ac:link><ri:page ri:content-title="Holidays" ri:space-key="HR" /></ac:link>, '
    '<ac:link><ri:page ri:content-title="X" /><ac:plain-text-link-body><![CDATA[Sick <leave>]]>'
    "</ac:plain-text-link-body></ac:link>, "
    '<ac:link><ri:page ri:content-title="Y" /><ac:link-body><strong>Pay</strong></ac:link-body></ac:link>, '
    '<ac:link><ri:attachment ri:filename="form.pdf" /></ac:link></p>'
)
TASKS = (
    "<ac:task-list><ac:task><ac:task-id>1</ac:task-id><ac:task-status>complete</ac:task-status>"
    "<ac:task-body><span>Sign</span></ac:task-body></ac:task><ac:task><ac:task-id>2</ac:task-id>"
    "<ac:task-status>incomplete</ac:task-status><ac:task-body>Send <time datetime='2026-11-02' />"
    "</ac:task-body></ac:task></ac:task-list>"
)
PANELS = [macro(name, rich("<p>Ask.</p>"), title="Mind", icon="no") for name in ("info", "panel", "expand", "warning")]
UNKNOWN = macro("acme-box", rich(f"<p>Text {macro('inner', '', secret='p4ss')}stays.</p>"), colour="red", title="t")
OLD = '<ac:macro ac:name="anchor"><ac:default-parameter>top</ac:default-parameter></ac:macro><p>Text.</p>'
PICTURE = '<p><ac:image ac:alt="The two floors"><ri:attachment ri:filename="a.png" /></ac:image></p>'
INCLUDE = macro("include", "", **{"": '<ac:link><ri:page ri:content-title="Expenses" /></ac:link>'})
ENTITIES = '<p>Caf&eacute; &amp; <ac:inline-comment-marker ac:ref="1">bar</ac:inline-comment-marker> &lt;b&gt;</p>'


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        *((panel, ["Mind", "Ask."]) for panel in PANELS),
        (UNKNOWN, ["Text stays."]),
        (OLD, ["Text."]),
        (LINKS, ["Holidays, Sick <leave>, Pay, form.pdf"]),
        (TASKS, ["- ☑ Sign\n- ☐ Send 2026-11-02"]),
        (PICTURE, ["The two floors"]),
        (f"<p>Before.</p>{INCLUDE}<p>After.</p>", ["Before.", "“Expenses”", "After."]),
        (ENTITIES, ["Café & bar <b>"]),
        (macro("html", verbatim("<script>steal()</script>")), []),
        (macro("toc", "", maxLevel="2"), []),
        ("<p><ac:placeholder>Type here</ac:placeholder></p>", []),
        ("<p>&nbsp;</p>", []),
        ("", []),
    ],
)
def test_elements_are_read_as_text(markup, expected):
    assert texts(markup) == expected


def test_unrendered_macros_leave_a_gap():
    macro = '<ac:structured-macro ac:name="{}"><ac:parameter ac:name="{}">X-1</ac:parameter></ac:structured-macro>'
    jira, roster, anchor = macro.format("jira", "key"), macro.format("roster", "team"), macro.format("anchor", "")

    assert texts(f"<p>Fixed in {jira} by {roster}.{anchor}</p>{roster}<p>End.</p>") == ["Fixed in X-1 by […].", "End."]


def test_mentions_show_known_names():
    markup = (
        '<p>Ask <ac:link><ri:user ri:account-id="5b:1" /></ac:link> or <ac:link><ri:user ri:userkey="ff80" />'
        '</ac:link> or <ac:link><ri:user ri:username="jane" /></ac:link>.</p>'
    )

    assert texts(markup, {"5b:1": "Ann Lee"}) == ["Ask @Ann Lee or […] or @jane."]


def test_tables_layouts_and_headings_are_read():
    markup = (
        "<ac:layout><ac:layout-section><ac:layout-cell><h2>Leave</h2><table><tbody><tr><th>Kind</th><th>Days</th></tr>"
        f"<tr><td>{macro('status', '', title='Paid', colour='Green')}</td><td>30</td></tr></tbody></table>"
        "</ac:layout-cell></ac:layout-section></ac:layout>"
    )
    heading, row = read_storage_format(markup)

    assert heading == Heading(2, "Leave")
    assert (row.kind, "Paid" in row.text, "30" in row.text, "Green" in row.text) == (
        PassageKind.TABLE,
        True,
        True,
        False,
    )


PIECES = st.sampled_from([
    "<p>", "</p>", "<ac:link>", "</ac:link>", '<ac:structured-macro ac:name="code">', "</ac:structured-macro>",
    "<ac:plain-text-body>", "</ac:plain-text-body>", "<![CDATA[", "]]>", "]] >", "<ac:parameter ac:name='title'>",
    "</ac:parameter>", "<ri:page ri:content-title='T' />", "<ac:task-status>", "text", "&nbsp;", "<", "&#xD;",
    "<table>",    "<td>", "</ac:rich-text-body>", "<ac:rich-text-body>", "<ac:placeholder>", "<![", "<!-- ",
])  # fmt: skip


@given(st.lists(PIECES, max_size=25))
def test_broken_markup_never_raises(pieces):
    read_storage_format("".join(pieces))
