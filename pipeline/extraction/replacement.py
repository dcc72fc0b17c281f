"""Choose what may replace a withheld sentence: a finding that answers the question, in words that stand alone."""

from collections.abc import Iterable, Iterator, Sequence

from pipeline.extraction.answer_ranking import TRUSTED, measure_trust
from pipeline.extraction.candidates import SENTENCE_ENDS, Candidate, find_candidates, is_contrary
from pipeline.extraction.designations import is_about_others
from pipeline.extraction.quote_selection import parse_statement
from pipeline.kit import Rerank
from pipeline.replies import footnotes
from pipeline.stages.findings import MOSTLY_SAME, SourcedFinding, bind_subjects, has_same_words, join_quotes
from pipeline.stages.question_analysis import leans_back
from pipeline.support.support_check import find_verbatim_passage, is_in_list
from pipeline.types import CitedSentence
from storage.types import Evidence, Hit, PassageKind

HOPELESS, LEAST_ODDS = -9.0, 0.0  # log-odds below which nothing answers, and from which a finding does
NEAR_BEST, FAR_BEHIND = 2.0, 5.0  # how far below the best a finding answers in any case, and at most


async def find_answering(
    question: str, findings: Sequence[SourcedFinding], rerank: Rerank, *, strict: bool = True
) -> list[tuple[int, CitedSentence]]:
    """Return the findings that answer a question, best first, by their numbers and as they can be understood alone.

    None is about the opposite of what is asked about. If the cross-encoder cannot read them, or if not `strict`, all
    others are returned.
    """
    quotes = {
        number: alone
        for number, finding in enumerate(findings, start=1)
        if not any(_is_about_others(piece, question) for piece in finding.evidence)
        and (alone := tuple(quote_alone(finding)))
    }
    texts = [f"{first.evidence[0].passage.section}\n{first.text}".strip() for first, *_ in quotes.values()]
    known = all(measure_trust(question, finding.evidence[0].document.language) >= TRUSTED for finding in findings)
    odds = dict(zip(quotes, await rerank(question, texts) if known else (), strict=False))
    least = max(HOPELESS, (best := max(odds.values(), default=0.0)) - FAR_BEHIND, min(LEAST_ODDS, best - NEAR_BEST))
    near = (number for number in odds if odds[number] >= least or not strict)
    order = sorted(near, key=odds.__getitem__, reverse=True)
    return [(number, quote) for number in (order if odds else quotes) for quote in quotes[number]]


def _is_about_others(piece: Evidence, question: str) -> bool:
    one = Candidate(Hit(piece.passage, piece.document, 1.0), 0, piece.span)
    return is_contrary(one, question) or is_about_others(one, question)


def quote_alone(finding: SourcedFinding) -> Iterator[CitedSentence]:
    """Yield a finding as it can be understood alone: in its own words, and as each sentence with what it leans on.

    A sentence is left out if what it leans on is far away. An item of a list is quoted below the list's lead; without
    one, it must be a sentence, and gets its page and section as a note.
    """
    language, passages = finding.evidence[0].document.language, [piece.passage for piece in finding.evidence]
    if not (leans_back(finding.text, language) or find_verbatim_passage(finding.text, passages)):
        yield CitedSentence(finding.text, finding.evidence)
    for piece in bind_subjects(finding.evidence):
        prose, hit = piece.passage.kind is PassageKind.PROSE, Hit(piece.passage, piece.document, 1.0)
        items = (item for item in find_candidates([hit]) if item.lead and item.span[1] == piece.span[1])
        listed = prose and is_in_list(piece.passage.text, piece.span)
        whole = not listed or piece.text.endswith(SENTENCE_ENDS)
        if item := next((item for item in items if "\n" not in item.text), None):
            yield CitedSentence("\n".join(part.text for part in item.evidence), item.evidence)
        elif whole and not (piece.span[0] and leans_back(piece.text, language)):
            note = footnotes.describe_place(piece.document, piece.passage) if listed else ""
            yield CitedSentence(join_quotes([piece]).text, (piece,), note)


def is_said(text: str, said: Iterable[str], least: float = MOSTLY_SAME) -> bool:
    """Return whether an earlier sentence says the same, from whatever passage."""
    negated = parse_statement(text).negated
    same = (earlier for earlier in said if has_same_words(text, earlier, least))
    return any(parse_statement(earlier).negated == negated for earlier in same)


def denies(text: str, other: str) -> bool:
    """Return whether a text has a negation and another has none."""
    return parse_statement(text).negated > parse_statement(other).negated
