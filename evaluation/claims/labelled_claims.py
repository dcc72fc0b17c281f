"""Define labelled claims, and split long evidence into passages like ingested ones."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from evaluation import EvaluationError
from storage.language.words import content_terms, count_words
from storage.types import Verdict


class UnreadableClaims(EvaluationError):
    """A file has none of the known formats, or a malformed row."""

    kind = "unreadable_claims"


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    """A claim, passages as its evidence, and the verdict that people gave."""

    id: str
    source: str  # its set; the part before a slash names a family of sets that share claims
    claim: str
    evidence: tuple[str, ...]  # the texts of the passages; several may have to be read together
    label: Verdict
    group: str  # claims of one group share an article, a passage or a question: cross-validation keeps groups whole
    title: str = ""  # the title of the evidence's page, if the set has it; not part of the passages
    kind: str = ""  # how it was changed, or why it is hard, if the set says so
    asked: tuple[str, ...] = ()  # the question that it answers, if the set has one

    @property
    def supported(self) -> bool:
        return self.label is Verdict.SUPPORTS

    @property
    def family(self) -> str:
        """The family of the claim's source: sets in one family have claims in common."""
        return self.source.partition("/")[0]


CHUNK_WORDS = 120  # words of a passage, as in ingestion
MOST_PASSAGES = 3  # passages of a claim


def split_into_chunks(sentences: Sequence[str], largest: int = CHUNK_WORDS) -> list[range]:
    """Split sentences into runs of at most `largest` words, or of one longer sentence. Return ranges of indexes."""
    runs: list[range] = []
    start = words = 0
    for place, sentence in enumerate(sentences):
        more = count_words(sentence)
        if place > start and words + more > largest:
            runs.append(range(start, place))
            start, words = place, 0
        words += more
    return [*runs, range(start, len(sentences))] if sentences else []


def join_sentences(sentences: Sequence[str], run: Sequence[int]) -> str:
    """Return the sentences at these indexes, one per line, because many sentences of a page are not prose."""
    return "\n".join(sentences[place] for place in run)


def select_similar(claim: str, passages: Sequence[str], most: int = MOST_PASSAGES) -> tuple[str, ...]:
    """Return the passages that share most content terms with the claim, in their order. In a tie, earlier ones win."""
    terms = set(content_terms(claim))
    shared = [len(terms & set(content_terms(passage))) for passage in passages]
    best = sorted(range(len(passages)), key=lambda place: (-shared[place], place))[:most]
    return tuple(passages[place] for place in sorted(best))


def select_covering(sentences: Sequence[str], needed: Sequence[int], most: int = MOST_PASSAGES) -> tuple[str, ...]:
    """Return the passages that contain the needed sentences.

    If there are more than `most`, only the needed sentences are packed, into as few passages as possible.
    """
    around = [run for run in split_into_chunks(sentences) if any(place in run for place in needed)]
    if len(around) <= most:
        return tuple(join_sentences(sentences, run) for run in around)
    alone = [sentences[place] for place in sorted(needed)]
    return tuple(join_sentences(alone, run) for run in split_into_chunks(alone))


_BRACKETS = {"LRB": "(", "RRB": ")", "LSB": "[", "RSB": "]", "LCB": "{", "RCB": "}", "COLON": ":", "SLH": "/"}
_BRACKET = re.compile(rf"-({'|'.join(_BRACKETS)})-")
_QUOTE = re.compile(r"``|''")
_QUOTED = re.compile(r'"\s*([^"]*?)\s*"')
_BEFORE_MARK = re.compile(r"\s+(?=[,.;:!?%)\]}](?:[\s,.;:!?)\]}'\"]|\Z))|(?<=[(\[{])\s+|\s+(?=\.\.\.)")
_CLITIC = re.compile(r"(?<=\w)\s+(?=(?:'s|'re|'ve|'ll|'d|'m|n't)\b|'(?=\s))", re.IGNORECASE)
_DASH = re.compile(r"(?<=\w)\s+--\s+(?=\w)|(?<=\d)\s+[-–]\s+(?=\d)")
_HYPHEN = re.compile(r"(?<=[a-z]) - (?=[a-z])")
_SPACES = re.compile(r"\s+")


def detokenize(text: str) -> str:
    """Undo tokenization: restore brackets and quotes, and remove the spaces before marks and clitics.

    In text that was never tokenized, only white space changes. Lost capitals are not restored.
    """
    restored = _BRACKET.sub(lambda match: _BRACKETS[match[1]], text)
    restored = _QUOTE.sub('"', restored)
    if restored.count('"') % 2 == 0:
        restored = _QUOTED.sub(r'"\1"', restored)
    restored = _CLITIC.sub("", _BEFORE_MARK.sub("", restored))
    restored = _HYPHEN.sub("-", _DASH.sub("–", restored))
    return _SPACES.sub(" ", restored).strip()
