"""Rows of each known set -> labelled claims: one pure function a set. `wice` has a file of its own, being longer.

A passage is offered as its set has it. What a set calls neutral, irrelevant, partly supported or not attributable is
NOT ENOUGH INFO here: the passage does not say it.
"""

from collections import Counter
from collections.abc import Iterator

from evaluation.claims.chunks import MOST, chunked, joined, most_alike
from evaluation.claims.rows import Row
from evaluation.claims.types import LabelledClaim
from evaluation.claims.untokenizing import untokenized
from storage.language.sentences import sentence_spans
from storage.types import Verdict

_VERDICTS = {verdict.value: verdict for verdict in Verdict}
_STANCES = {
    "completely-support": Verdict.SUPPORTS,
    "partially-support": Verdict.NOT_ENOUGH_INFO,
    "irrelevant": Verdict.NOT_ENOUGH_INFO,
    "refute": Verdict.REFUTES,
}
_ATTRIBUTABLE = {
    "Fully attributable": Verdict.SUPPORTS,
    "Not fully attributable": Verdict.NOT_ENOUGH_INFO,
    "Generic": None,
}
_FAITHFUL = {
    "Entailment": Verdict.SUPPORTS,
    "Uncooperative": Verdict.SUPPORTS,
    "Hallucination": Verdict.NOT_ENOUGH_INFO,
    "Partial Hallucination": Verdict.NOT_ENOUGH_INFO,
    "Generic": None,
}
_VOTES = {"yes": True, "no": False}


def plain(row: Row) -> Iterator[LabelledClaim]:
    """Our own form: "claim", "evidence" (a text or a list of them), "label" (a verdict); if need be "id", "group"."""
    evidence = (row.text("evidence"),) if isinstance(row.fields.get("evidence"), str) else row.texts("evidence")
    claim = row.text("claim")
    label = row.one_of("label", _VERDICTS)
    group = str(row.fields.get("group", claim))
    yield LabelledClaim(str(row.fields.get("id", row.line)), "plain", claim, evidence, label, group)


def fever_symmetric(row: Row) -> Iterator[LabelledClaim]:
    """FEVER-symmetric: a claim and one sentence, both cut into tokens, which is undone."""
    claim = untokenized(row.text("claim"))
    evidence = untokenized(row.text("evidence" if "evidence" in row.fields else "evidence_sentence"))
    label = row.one_of("gold_label" if "gold_label" in row.fields else "label", _VERDICTS)
    yield LabelledClaim(str(row.fields.get("id", row.line)), "fever-symmetric", claim, (evidence,), label, evidence)


def fm2(row: Row) -> Iterator[LabelledClaim]:
    """Fool Me Twice: a player's claim and the sentences of an article that decide it."""
    yield _fm2(row, "fm2", ())


def fm2_searched(row: Row) -> Iterator[LabelledClaim]:
    """Fool Me Twice with other sentences that a search found, which distract, up to three passages in all."""
    yield _fm2(row, "fm2/searched", tuple(passage.text("text") for passage in row.within("retrieved_evidence")))


def _fm2(row: Row, source: str, more: tuple[str, ...]) -> LabelledClaim:
    gold = tuple(passage.text("text") for passage in row.within("gold_evidence"))
    evidence = gold + tuple(text for text in more if text not in gold)[: max(0, MOST - len(gold))]
    label = row.one_of("label", _VERDICTS)
    page = row.text("wikipedia_page")
    return LabelledClaim(row.text("id"), source, row.text("text"), evidence, label, page, title=page)


def begin(row: Row) -> Iterator[LabelledClaim]:
    """BEGIN: a machine's reply to a message, and the sentence it was given to speak from.

    A generic reply claims nothing and is left out. Some rows are in small letters throughout, and stay so.
    """
    label = row.one_of("begin_label", _ATTRIBUTABLE)
    if label is not None:
        reply, knowledge = untokenized(row.text("response")), untokenized(row.text("knowledge"))
        yield LabelledClaim(str(row.line), "begin", reply, (knowledge,), label, knowledge)


def faithdial(row: Row) -> Iterator[LabelledClaim]:
    """FaithDial's audit: the same of a person's reply. An uncooperative one says only what its sentence says."""
    label = row.one_of("BEGIN", _FAITHFUL)
    if label is not None:
        reply, knowledge = untokenized(row.text("response")), untokenized(row.text("evidence"))
        yield LabelledClaim(str(row.line), "faithdial", reply, (knowledge,), label, knowledge)


def stances(row: Row) -> Iterator[LabelledClaim]:
    """Factcheck-GPT, passage by passage: what one passage of a web search says of a claim."""
    claim, passage = row.text("claim"), row.text("evidence")
    label = row.one_of("stance", _STANCES)
    yield LabelledClaim(str(row.line), "factcheck-gpt/passages", claim, (passage,), label, claim)


def benchmark(row: Row) -> Iterator[LabelledClaim]:
    """Factcheck-GPT, claim by claim: all passages that were found for it, and what the clearest of them says.

    One that supports completely, or one that refutes, decides; where there are both, the claim is left out, and so is
    what was found to be no claim, for which no passage was judged.
    """
    for place, sentence in enumerate(row.within("sentences")):
        for number, judged in enumerate(_judged(sentence)):
            label = _clearest(judged)
            if label is not None:
                evidence = tuple(dict.fromkeys(judged.texts("auto_evidence")))
                key, claim = f"{row.line}-{place}-{number}", judged.text("claim")
                yield LabelledClaim(key, "factcheck-gpt/claims", claim, evidence, label, row.text("prompt"))


def qags(row: Row) -> Iterator[LabelledClaim]:
    """QAGS: sentences of a machine's summary and their article, of which the passages most alike are offered."""
    article = row.text("article")
    sentences = [article[start:end] for start, end in sentence_spans(article)]
    passages = [joined(sentences, run) for run in chunked(sentences)]
    for place, summary in enumerate(row.within("summary_sentences")):
        votes = Counter(vote.one_of("response", _VOTES) for vote in summary.within("responses"))
        label = Verdict.SUPPORTS if votes[True] > votes[False] else Verdict.NOT_ENOUGH_INFO
        claim = summary.text("sentence")
        evidence = most_alike(claim, passages)
        yield LabelledClaim(f"{row.line}-{place}", "qags", claim, evidence, label, str(row.line))


def _judged(sentence: Row) -> Iterator[Row]:
    """Yield each claim of a sentence with its own passages and what each of them was found to say."""
    claims, passages = sentence.many("claims"), sentence.many("auto_evidence")
    stances = sentence.many("stance_claim_autoEvid")
    if len(passages) != len(claims) or len(stances) != len(claims):
        raise sentence.unlike("auto_evidence", f"lists for each of {len(claims)} claims", passages)
    for claim, found, said in zip(claims, passages, stances, strict=True):
        yield Row(sentence.line, {"claim": claim, "auto_evidence": found, "stances": said})


def _clearest(judged: Row) -> Verdict | None:
    """Return what the passages of a claim say together; None where none was judged or they contradict each other."""
    found = {Row(judged.line, {"stance": said}).one_of("stance", _STANCES) for said in judged.texts("stances")}
    decided = found - {Verdict.NOT_ENOUGH_INFO}
    if len(decided) > 1 or not found:
        return None
    return decided.pop() if decided else Verdict.NOT_ENOUGH_INFO
