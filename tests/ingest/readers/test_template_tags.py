"""Tags of site generators become the text that readers of the site see, or leave a mark."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.readers import file_formats, html_tree, markdown_reader, template_tags
from ingest.types import Block
from storage.types import PassageKind
from tests.thorough import sample

HOLE = re.compile(r"\b(?:in|at|to|see) *[.,;:!?)](?=\s|$)|\( *\)|\[ *\]|“ *”|\{\{|\{%|%\}|\w\]\(|\s[.,;]")


def texts(source):
    """Return the texts of the blocks of an MDX page, which may be plain Markdown."""
    return [item.text for item in markdown_reader.read_mdx(source).items if isinstance(item, Block)]


def html_texts(source):
    """Return the texts of the blocks of an HTML page."""
    page = file_formats.read_file(source.encode(), "page.html")
    return [block.text for section in page.sections for block in section.blocks]


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ('{% slack_channel "lost-and-found" %}', "lost-and-found"),
        ('{% slack_channel "g-res" "the research guild" %}', "the research guild"),
        ("{% slack_channel 'help' %}", "help"),
        ("{%- slack_channel #help -%}", "#help"),
        ("{% slack_channel lost-and-found %}", "lost-and-found"),
        ('{{< channel "lost-and-found" >}}', "lost-and-found"),
        ('{{% term "Service level" "sla" %}}', "Service level"),
        ('{{ slack("help") }}', "help"),
        ("{{ macros.link('Leave', 'leave/index') }}", "Leave"),
        ("{{ 'Bo' | upcase }}", "Bo"),
        ('{{ "/leave/" | relative_url }}', "/leave/"),
        ("{{ site.baseurl }}/leave", "/leave"),
        ('{% include chat.html text="the lounge" icon="chat" %}', "the lounge"),
        ('{{< button href="/x" label="Book" >}}', "Book"),
        ('{% page "travel/booking" %}', "travel/booking"),
        ('[the lounge]({% page "x" %})', "the lounge"),
        ('[the\nlounge]({% page "x" %})', "the lounge"),
        ('[the lounge]({{ site.url }}/x/{{ page.y }} "T")', "the lounge"),
        ('[*the* [inner] lounge]({{< ref "x.md" >}})', "the [inner] lounge"),
        ("[the lounge][r]\n\n[r]: {% page 'x' %}", "the lounge"),
        ('<a href={% page "x" %}>the lounge</a>', "the lounge"),
        ('<a href="{% page "x" %}">the lounge</a>', "the lounge"),
        ("<{{ site.url }}/leave>", "/leave"),
        ("<Channel name='help' />", "help"),
        ("<Channel name={'help'} data={{a: 1}} />", "help"),
        ("<Channel id='x'>help</Channel>", "help"),
        ("{% if x %}the lounge{% endif %}", "the lounge"),
        ("{% if x %}the lounge{% else %}the hall{% endif %}", "the lounge the hall"),
        ("{% raw %}{{ user }}{% endraw %}", "{{ user }}"),
        ('{% image "a.png" "the lounge" %}', "the lounge"),
        *((tag, "[…]") for tag in (
            "{{ site.room }}", "{{< param room >}}", "{% include room.html %}", "{% if x %}{% endif %}", "<Room />",
            "<Room id={7} />", "{props.room}", '[]({% page "x" %})', "{{generator:a}}", "{{#if a}}{{/if}}",
            "{# todo #}", "{% raw %}{% endraw %}", "{% assign a = 1 %}", "{{!-- todo --}}",
            "{% youtube 'abc' %}", "{{ room | default: site.room }}",
        )),
    ],
)  # fmt: skip
def test_tag_in_a_sentence_becomes_text_or_mark(tag, expected):
    [link, *definition] = tag.split("\n\n")
    after = "".join(f"\n\n{part}" for part in definition)

    assert texts(f"Meet in {link}. Bye{after}") == [f"Meet in {expected}. Bye"]
    if "\n" not in link:
        assert texts(f"| A | B |\n|---|---|\n| In {link}. | c |{after}") == [f"A: In {expected}. B: c"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<p>Write to {{ site.mail }} in {% channel 'help' %}.</p>", ["Write to […] in help."]),
        ("---\ntitle: Leave\n---\n<p>{% if x > 2 %}Yes{% endif %}, go.</p>", ["Yes, go."]),
        ('<p><a href="{% url "x" %}" title="{{ y }}">Leave</a> <code>{{ z }}</code></p>', ["Leave {{ z }}"]),
        ("<pre>{{ a }}</pre><p>In ({% include b %}).</p>", ["{{ a }}", "In ([…])."]),
    ],
)
def test_tags_in_html_become_text_or_mark(source, expected):
    assert html_texts(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('{% alert "Heads up!", "warning" %}\n  This *is* it.\n{% endalert %}', ["Heads up!", "This is it."]),
        ('{% hint style="info" %}\nText.\n{% endhint %}', ["Text."]),
        ('{% tabs "x" %}\n{% tab "linux" %}\nOne.\n{% endtab %}\n{% endtabs %}', ["linux", "One."]),
        ('{{< details title="More" >}}\nOne.\n{{< /details >}}', ["More", "One."]),
        ("{% comment %}\nNo.\n\nNo.\n{% endcomment %}\nYes.", ["Yes."]),
        ("{% raw %}\n- {{ a }}\n\n{{ b }}\n{% endraw %}\n\nTo {{ c }} d", ["- {{ a }}", "{{ b }}", "To […] d"]),
        ('<Note title="Heads up">\nThis **is** it.\n</Note>', ["Heads up", "This is it."]),
        ("<Tabs\n  items={['a', 'b']}\n>\n\n<Tab label='a'>\n    One.\n</Tab>\n</Tabs>", ["a", "One."]),
        ('!!! tip "Heads up"\n\n    This *is* it.\n\n    - a\n\nBye.', ["Heads up", "This is it.", "- a", "Bye."]),
        ('??? note\n    One.\n=== "Linux"\n    Two.', ["One.", "Linux", "Two."]),
        ("!!! we won\nBye", ["!!! we won Bye"]),
        (":::note[Take care]\n\nBe *kind*.\n\n:::", ["Take care", "Be kind."]),
        ("Rooms:\n\n<Rooms />", ["Rooms: […]"]),
        ("- a\n{% if x %}\n- b\n{% endif %}", ["- a\n- b"]),
        ("a\n{% if x %}\nb\n{% endif %}\nc", ["a", "b", "c"]),
        ("import A from './a'\nexport const b = {\n  c: 1,\n}\n\nText.", ["Text."]),
        ("Ask <Your Name> or <TEAM>.", ["Ask <Your Name> or <TEAM>."]),
    ],
)
def test_block_tag_becomes_title_and_content(source, expected):
    assert texts(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("A {% comment %}no{% endcomment %} b.", ["A b."]),
        ("{%- comment -%} no {%- endcomment -%}\nYes.", ["Yes."]),
        ("{% comment %} no\n\nno\n\nno {% endcomment %} Yes.", ["Yes."]),
        ("{# no\n\nno #}\n\nYes.", ["Yes."]),
        ("{{/* no\n\nno */}}\nYes.", ["Yes."]),
        ("- a\n{{!-- no\n\nno --}}\n- b", ["- a", "- b"]),
        ("{% comment %} open\n\nYes.", ["open", "Yes."]),
        ("<div>{% comment %}no <b>no</b>{% endcomment %}Yes.</div>", ["Yes."]),
    ],
)
def test_template_comments_are_removed(source, expected):
    assert texts(source) == expected


def test_texts_of_adjacent_tags_are_separated():
    assert texts("It is {% if x %}no{% endif %} {{ 'no' }} {{ 'now' | date: '%Y' }}.") == ["It is no no […]."]
    assert texts('{{< card header="Head" >}}Inside{{< /card >}}, {{{ body }}} now.') == ["Head Inside, […] now."]
    assert texts("Write to {{ 'hr@acme.com' }} now.") == ["Write to hr@acme.com now."]


def test_tags_in_code_are_kept():
    source = (
        "```\n{% if x %}\n{{ y }}\n```\n\n`{% z %}`\n\n{% highlight ruby %}\na = {{ b }}\n\n# c\n{% endhighlight %}"
    )

    items = markdown_reader.read_markdown(source).items

    assert [item.text for item in items] == ["{% if x %}\n{{ y }}", "{% z %}", "a = {{ b }}\n\n# c"]
    assert items[2].kind is PassageKind.CODE


def test_templated_title_is_ignored():
    page = file_formats.read_file(b"---\ntitle: '{{ site.name }}'\n---\n# Leave\n\nText.", "a.md")

    assert page.title == "Leave"


WORDS = st.sampled_from(["room", "lost-and-found", "Heads up", "a/b.html", "#help", "x_y", "", "site.x", "1"])
NAMES = st.sampled_from(
    ["slack_channel", "page", "include", "if", "tab", "image", "note", "end", "else", "raw", "param"]
)
ARGUMENTS = st.lists(
    st.one_of(WORDS, WORDS.map('"{}"'.format), WORDS.map("'{}'".format), WORDS.map('title="{}"'.format)), max_size=3
).map(" ".join)
TAGS = st.one_of(
    st.builds("{{% {} {} %}}".format, NAMES, ARGUMENTS),
    st.builds("{{{{< {} {} >}}}}".format, NAMES, ARGUMENTS),
    st.builds("{{{{ {} {} }}}}".format, NAMES, ARGUMENTS),
    st.builds("{{% {0} %}}{1}{{% end{0} %}}".format, NAMES, WORDS),
    st.builds("[{}]({{% page {} %}})".format, WORDS, ARGUMENTS),
)
COMPONENTS = st.builds("<Room {}={} />".format, st.sampled_from(["name", "id"]), WORDS.map('"{}"'.format))
BRACKETS = st.sampled_from(["{}", "({})", "[{}]", "“{}”", "**{}**", "({}, {})"])


@given(st.one_of(TAGS, COMPONENTS), BRACKETS, st.sampled_from([".", ",", ")", "!", " now."]))
@settings(max_examples=sample(300))
def test_tags_leave_no_hole_in_a_sentence(tag, bracket, end):
    sentence = f"(Meet in {bracket.format(tag, tag)}{end}"

    assert not HOLE.search(texts(sentence)[0]), texts(sentence)


@given(TAGS, st.sampled_from(["({})", "{}", "“{}”", "<b>{}</b>"]))
@settings(max_examples=sample(100))
def test_tags_leave_no_hole_in_html(tag, bracket):
    assert not HOLE.search(html_texts(f"<p>Meet in {bracket.format(tag.replace('](', ''))}.</p>")[0])


def test_removed_template_leaves_a_mark_if_the_text_needs_its_output():
    gap = template_tags.make_gap
    markup = f"<p>In {gap(need='optional')}. In {gap(need='closing')}. ({gap(need='optional')}) a {gap()}</p>"

    assert [item.text for item in html_tree.read_html(markup)] == ["In […]. In. ([…]) a […]"]
