"""Redirects by their target."""

from ingest.sources.dumps.article_batches import RedirectTable


def test_titles_that_lead_to_a_page():
    """Sorted, each once."""
    with RedirectTable() as redirects:
        redirects.add([("B", "Ada"), ("A", "Ada"), ("A", "Ada"), ("C", "Bob")])
        redirects.finish()

        assert redirects.find_aliases("Ada") == ("A", "B")
        assert redirects.find_aliases("Nobody") == ()


def test_redirects_to_redirects_lead_to_the_page():
    """Over some hops; a circle leads nowhere and does no harm."""
    with RedirectTable() as redirects:
        redirects.add([("A", "B"), ("B", "C"), ("C", "Ada"), ("X", "Y"), ("Y", "X"), ("Z", "Z")])
        redirects.finish()

        assert redirects.find_aliases("Ada") == ("A", "B", "C")
        assert set(redirects.find_aliases("Y")) <= {"X"}


def test_none_at_all():
    """A dump may have none."""
    with RedirectTable() as redirects:
        redirects.finish()

        assert redirects.find_aliases("Ada") == ()
