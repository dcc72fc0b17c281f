"""Documents by their titles and by those of redirects."""

from pathlib import Path

from ingest.refresh.corpus_refresh import refresh_corpus
from storage.search.title_lookup import find_titled
from tests.fakes import PageSource
from tests.storage.stores import opened

PAGES = {
    "1": {"title": "Analysis of variance", "aliases": "ANOVA", "": "It compares means."},
    "2": {"title": "Variance", "": "ANOVA is based on it."},
}


async def test_title_comes_before_other_titles_and_only_from_these_corpora(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        for corpus, pages in (("wiki", PAGES), ("notes", {"a": {"title": "ANOVA", "": "Ours."}})):
            await refresh_corpus(PageSource(pages), corpus, store, progress=lambda _: None)

        async def find(title: str, *corpora: str) -> list[str]:
            return [version.document.key async for version in find_titled(store, title, corpora)]

        assert await find("ANOVA", "wiki", "notes") == ["a", "1"]
        assert await find("ANOVA", "wiki") == ["1"]
        assert await find("Variance", "wiki") == ["2"]
        assert await find("Variance", "notes") == await find("Nothing", "wiki", "notes") == []
        await store.remove("wiki", ["1"])
        assert await find("ANOVA", "wiki") == []
