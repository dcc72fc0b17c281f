"""Find the sentences of an answer that their cited pages no longer support; pure, except for the check itself.

A passage has not changed if its page still contains its text, whatever the white space, heading or neighbours. If a
passage is gone, only the passages that replace it are checked: a number elsewhere on the page does not support the
sentence.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice, product

from pipeline.kit import Supports
from pipeline.support.support_check import find_quotable_spans, find_verbatim_passage
from pipeline.types import Answer, AnsweredSentence
from storage.language.sentences import sentence_spans
from storage.language.words import content_terms
from storage.types import Citation, Document, DocumentId, Evidence, Passage, is_web_corpus

Pages = Mapping[DocumentId, tuple[Document, tuple[Passage, ...]]]
"""The current documents, each with its passages; deleted ones are left out."""
_MOST_TRIED = 3  # equally similar passages that are tried as the replacement of a deleted one
_LIKE = 0.4  # the share of a quotation's terms that a sentence must have to be shown as its replacement


@dataclass(frozen=True, slots=True)
class LostSentence:
    """A sentence of an answer that its cited pages no longer support."""

    text: str
    corpus: str
    document: str  # the key of the page
    title: str
    was: str  # the text of the page that supported the sentence
    now: str  # the replacement of that text on the page; empty if there is none
    removed: bool  # whether the page was deleted


async def find_lost_sentences(answer: Answer, pages: Pages, supports: Supports, question: str) -> list[LostSentence]:
    """Check the sentences whose passages changed, and return those that no longer hold."""
    ordered = sorted(answer.citations, key=lambda citation: _find_standing(citation, pages) is not None)
    cited = {
        citation.number: citation for citation in ordered
    }  # of pages that share a number, one that has not changed
    changed = {number for number, one in cited.items() if not _find_standing(one, pages)}
    lost = list[LostSentence]()
    for sentence in answer.sentences:
        gone = [cited[number] for number in sentence.citations if number in changed]
        if gone and not await _still_holds(sentence, cited, pages, supports, question):
            lost.append(_describe_loss(sentence, gone[0], pages))
    return lost


async def _still_holds(
    sentence: AnsweredSentence, cited: Mapping[int, Citation], pages: Pages, supports: Supports, question: str
) -> bool:
    """Return whether a sentence holds: replacements of the changed passages support it, or the quotations behind it.

    Each quotation is checked against each replacement separately. If passages were checked together, one could supply a
    number that another lacks, which would hide a contradiction.
    """
    citations = [cited[number] for number in sentence.citations if number in cited]
    standing = tuple(found for citation in citations if (found := _find_standing(citation, pages)))
    gone = [citation for citation in citations if not _find_standing(citation, pages)]
    places = [_find_places(sentence.text, citation, pages) for citation in gone]
    checks = [
        [await supports(_select_likest(sentence.text, one.quote), (place,)) for place in there if one.quote]
        for one, there in zip(gone, places, strict=True)
    ]
    if all(any(support.holds for support in found) for found in checks):
        return True
    if len(citations) > 1 and any(found and all(support.contradicted for support in found) for found in checks):
        return False
    chosen = product(*(there for there in places if there))
    tries = (evidence for choice in chosen if (evidence := (*standing, *choice)))
    return any([(await supports(sentence.text, one, asked=(question,))).holds for one in islice(tries, _MOST_TRIED)])


def _find_standing(citation: Citation, pages: Pages) -> Evidence | None:
    """Return the page's passage that still contains the cited passage, apart from white space, or its quotation.

    Returns None if no passage does. A passage of a web page never changes, because only the record stores it.
    """
    if is_web_corpus(citation.corpus):  # only the record stores its pages
        return _build_cited(citation)
    document, passages = pages.get((citation.corpus, citation.document), (None, ()))
    if document is None:
        return None
    quoted_text = _join_space(citation.passage_text)
    same = next((passage for passage in passages if quoted_text and quoted_text in _join_space(passage.text)), None)
    quoted = find_verbatim_passage(citation.quote, passages)
    passage_now = same or next((passage for passage in passages if quoted and passage.id == quoted), None)
    return _build_evidence(passage_now, document) if passage_now else None


def _find_places(sentence: str, citation: Citation, pages: Pages) -> list[Evidence]:
    """Return the replacements of a deleted passage: the passages of its page with the most terms of its quotation."""
    document, passages = pages.get((citation.corpus, citation.document), (None, ()))
    if document is None or not passages:
        return []
    terms = set(content_terms(_select_likest(sentence, citation.quote) or sentence))
    shared = [len(terms & set(content_terms(passage.text))) for passage in passages]
    ranked = zip(passages, shared, strict=True)
    return [_build_evidence(one, document) for one, count in ranked if count == max(shared)][:_MOST_TRIED]


def _select_likest(sentence: str, quote: str) -> str:
    """Return the sentence of a quotation that is most similar to an answer's sentence."""
    wanted, parts = set(content_terms(sentence)), [quote[start:end] for start, end in sentence_spans(quote)]
    return max(parts, key=lambda part: len(wanted & set(content_terms(part))), default=quote)


def _describe_loss(sentence: AnsweredSentence, gone: Citation, pages: Pages) -> LostSentence:
    key = (gone.corpus, gone.document)
    _, passages = pages.get(key, (None, ()))
    spans = [passage.text[start:end] for passage in passages for start, end in find_quotable_spans(passage)]
    was = _select_likest(sentence.text, gone.quote)
    terms = set(content_terms(was or sentence.text))
    likest = max(spans, key=lambda one: len(terms & set(content_terms(one))), default="")
    like = bool(terms) and len(terms & set(content_terms(likest))) >= _LIKE * len(terms)
    now = _join_space(likest) if like else ""
    return LostSentence(sentence.text, *key, gone.title, was, now, removed=key not in pages)


def _build_cited(one: Citation) -> Evidence:
    passage = Passage(one.passage_id, one.corpus, one.document, one.section, one.passage_text, 0, one.passage_hash)
    return _build_evidence(passage, Document(one.corpus, one.document, one.title, one.url))


def _build_evidence(passage: Passage, document: Document) -> Evidence:
    return Evidence(passage.text, passage, document, (0, len(passage.text)))


def _join_space(text: str) -> str:
    return " ".join(text.split())
