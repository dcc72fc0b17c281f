"""Large dumps made of a small one."""

from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from tests.ingest.sources.dumps import dump, page
from tools.benchmarks.repeated_dump import write_dump


def test_every_copy_is_a_page_of_its_own(tmp_path):
    """New ids and titles; redirects lead to the copy beside them."""
    small = tmp_path / "small.xml"
    small.write_bytes(
        dump(page(1, "Ada", "Text. " * 100_000), page(2, "Countess", "#REDIRECT [[Ada]]", redirect="Ada"))
    )
    made = write_dump(small, tmp_path / "large.xml", 2)
    pages = [item.load() for item in WikipediaDump(made.path, processes=1).documents()]

    assert (made.articles, made.wikitext) == (3, 3 * 600_000)
    assert [(page.title, page.aliases) for page in pages] == [
        ("Ada", ("Countess",)),
        ("Ada (1)", ("Countess (1)",)),
        ("Ada (2)", ("Countess (2)",)),
    ]
