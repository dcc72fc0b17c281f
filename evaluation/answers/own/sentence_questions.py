"""Ask for one part of a statement: an amount, a time, a channel, a person or team. Pure; for English.

A question must be self-contained, so only sentences with one plain clause and a named subject are used.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from evaluation.answers.own.statement_parts import NUMBER, PARTS


@dataclass(frozen=True, slots=True)
class MadeQuestion:
    """A question, its answer, and the sentence and passage of the answer."""

    text: str
    answer: tuple[str, ...]  # strings that a right reply must all contain; if empty, it must cite the section
    kind: str
    sentence: str
    passage: str = ""  # its id
    document: str = ""  # its key
    quality: float = 0.0  # how likely it reads well, from 0 to 1


_SMALL, _LARGE = re.compile(r"(?<![#.\w-])[a-z]+\b"), re.compile(r"(?<=[a-z,] )[A-Z][\w'’&-]*")


@dataclass(frozen=True, slots=True)
class Prose:
    """The words of a passage. They show whether a capitalised word is a name."""

    small: frozenset[str]  # lower-case words
    large: frozenset[str]  # capitalized words inside sentences

    @classmethod
    def read(cls, text: str) -> "Prose":
        return cls(frozenset(_SMALL.findall(text)), frozenset(_LARGE.findall(text)))

    def is_common(self, word: str) -> bool:
        """Return whether the first word of a sentence is a common word and not a name."""
        return word.lower() in self.small or not (word in self.large or re.search(r"\w[A-Z0-9-]", word))


_CLAUSE = r"(?:[^;:()“”\"]|(?<=\d):(?=\d))"
_GENERAL = r"(?:You|We|Employees|Staff|Managers|Contractors|Everyone|Candidates|Teams)"
_NAME = r"[A-Z][\w'’&-]*(?: (?:[A-Z][\w'’&-]*|of|and|for|to|the|on)){0,5}"
_PLURAL = r"[A-Z][a-z'’-]+(?: [a-z'’-]+){0,3} (?!\w+(?:ss|us) )[a-z'’-]+s"
_SUBJECT = rf"(?:{_GENERAL}|(?:The|A|An|Our|Your|All|Each|Every) [^,;:()]{{3,60}}?|{_PLURAL}|{_NAME})"
_AUXILIARY = r"(?:is|are|was|were|must|should|can|may|will)"
_STATEMENT = re.compile(rf"(?P<subject>{_SUBJECT}) (?P<auxiliary>{_AUXILIARY}) (?P<rest>{_CLAUSE}+)\.")
_PRESENT = re.compile(rf"(?P<subject>You|We) (?P<verb>[a-z]{{2,12}}) (?P<rest>{_CLAUSE}+)\.")
_NO_VERB = re.compile(
    r"\w+ly|(?!need|exceed)\w+ed|also|all|both|then|always|never|often|just|still|now|already|do|did|does|have|had|has|am|are|were|was|will"
    r"|can|could|may|might|must|should|would|shall"
)
_ROLE = r"""
    (?: (?:[Tt]he|[Oo]ur|[Yy]our)\ )? (?: [A-Z][\w&-]* (?:\ [A-Z][\w&-]*){0,3}\ )?
    (?: team|manager|lead|director|officer|department|group|committee|office|owner|partner|executive|board|squad|guild )
"""
_WHO = re.compile(
    rf"""
    (?P<answer> {_ROLE} | (?:The\ )?(?:CEO|CTO|CFO|COO|VP|CPO|CMO)(?:\ [A-Z][\w ]{{2,30}}?)? )[ ]
    (?P<rest>
        (?: (?:is|are)\ (?:responsible|accountable|in\ charge) | (?:must|should|will)(?!\ (?:follow|use|read|have)\b)
          | (?:can|may)(?!\ (?:be|follow|use|read|have)\b) | owns|approves
          | runs|manages|leads|reviews|maintains|decides|handles|pays|publishes|sets|signs|schedules|creates )
        \ {_CLAUSE}{{12,110}}
    )\.
    """,
    re.VERBOSE,
)
_BY = re.compile(
    rf"""
    (?P<subject> {_SUBJECT.replace(" ", "[ ]")} )\ (?P<auxiliary> is|are|(?:must|should|will|can)\ be )[ ]
    (?P<done> \w+ed|run|led|set|done|made )\ by\ (?P<answer>{_ROLE}) (?P<rest> (?:\ [^;:()“”\".]+)? )\.
    """,
    re.VERBOSE,
)
_DEFINED = re.compile(
    rf"(?P<subject>(?!(?:We|You|This|Since|There|I|If|As)\b)(?:The )?{_NAME}) (?P<is>is|are) (?:an?|the|our) "
    r"(?!(?:bit|little|lot|few|great|good|key|most|best|primary|main|first|next|only)\b)"
    rf"{_CLAUSE}{{15,160}}\."
)

VAGUE = re.compile(
    r"""
    \b (?: this|these|those|its?|they|them|their|he|she|his|her|here|there|above|below|following|former|latter|such|same
         | other|another|said|our\ example|page|section|document|link|see|e\.g|etc|then|likely|also|already
         | the\ (?:(?:entire|whole)\ )?process ) \b
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""Words that refer to the context; a question with them is not self-contained."""
_ANY = re.compile(
    r"(?:all |any )?(?:questions?|requests?|approvals?|issues?|changes|results|updates|feedback)\b", re.IGNORECASE
)
"""Subjects that only the page identifies."""
_NEGATION = re.compile(r"\b(?:not|never|no longer|nobody|none|only)\b|n['’]t\b")
_INNER_CLAUSE = re.compile(r"\b(?:we|you|I|have|has|are|is|be|if|when|who|that|which)\b")
_SEVERAL = re.compile(r",|/|\b(?:and|or)\b")
_CLAUSE_BEGINS = re.compile(r"\b(?:which|that|because|but|although|while|where|if|unless|so)\b")
_EARLY = 12  # characters; a clause that starts earlier leaves nothing to ask for
_BINDS = re.compile(
    r"\b(?:of|in|on|at|by|the|our|your|first|last|final|next|previous|and|or|to|than|within|for|after|before|with|per"
    r"|about)$"
)
"""Words whose continuation cannot be asked for alone."""
_HANGING = re.compile(
    r"\b(?:and|or|to|of|the|a|an|with|that|which|for|than|least|most|about|also|every|once|be)$"
    r"|\b(?:of|to|for|with) (?:and|or|per|for|in|on|at)\b|\b(?:respond|reply|approve|review|decide|follow up)$"
)
_ARTICLES = re.compile(rf"(?:The|A|An|Our|Your|All|Each|Every|New|{_GENERAL})\b")
_LEAST_WORDS, _MOST_WORDS = 6, 26


def ask_sentence(sentence: str, words: Prose) -> Iterator[MadeQuestion]:
    """Yield the questions that a sentence answers. `words` are those of its passage."""
    if not _LEAST_WORDS <= len(sentence.split()) <= _MOST_WORDS:
        return
    if match := _WHO.fullmatch(sentence):
        yield from _ask_who(sentence, match)
    elif match := _BY.fullmatch(sentence):
        yield from _ask_by(sentence, match, words)
    elif statement := _read_statement(sentence, words):
        yield from _ask_part(sentence, statement)
    if (match := _DEFINED.fullmatch(sentence)) and not VAGUE.search(sentence) and _is_name(match["subject"], words):
        yield MadeQuestion(f"What {match['is']} {_lower(match['subject'], words)}?", (), "what", sentence, quality=0.7)


def _ask_who(sentence: str, match: re.Match[str]) -> Iterator[MadeQuestion]:
    who, rest = _strip_article(match["answer"]), match["rest"]
    unclear = VAGUE.search(sentence) or _NEGATION.search(sentence) or ", " in rest or "your" in rest
    if re.search(r"[A-Z]", who) and not unclear:  # "the team" could be any team
        yield MadeQuestion(f"Who {re.sub(r'^are ', 'is ', rest)}?", (who,), "who", sentence, quality=1.0)


def _ask_by(sentence: str, match: re.Match[str], words: Prose) -> Iterator[MadeQuestion]:
    who = _strip_article(match["answer"])
    if re.search(r"[A-Z]", who) and _is_plain(match["subject"], match["rest"]):
        first, _, more = match["auxiliary"].partition(" ")
        parts = ("Who", first, _lower(match["subject"], words), more, match["done"], f"by{match['rest']}?")
        yield MadeQuestion(" ".join(filter(None, parts)), (who,), "by", sentence, quality=1.0)


@dataclass(frozen=True, slots=True)
class _Statement:
    subject: str
    auxiliary: str
    verb: str  # empty unless the auxiliary is "do"
    rest: str


def _read_statement(sentence: str, words: Prose) -> _Statement | None:
    if not (match := _STATEMENT.fullmatch(sentence) or _PRESENT.fullmatch(sentence)):
        return None
    if not _is_plain(match["subject"], match["rest"]):
        return None
    auxiliary, verb = (match.groupdict().get(name) or "" for name in ("auxiliary", "verb"))
    if verb and _NO_VERB.fullmatch(verb):
        return None
    return _Statement(_lower(match["subject"], words), auxiliary or "do", verb, match["rest"])


def _ask_part(sentence: str, statement: _Statement) -> Iterator[MadeQuestion]:
    """Ask for the part of a statement that has a value. If several parts have different values, ask nothing."""
    rest = f" {statement.rest}"
    matches = [(part, match) for part in PARTS if (match := part.pattern.search(rest))]
    is_ambiguous = len(re.findall(rf"\b{NUMBER}\b", rest)) > 1 and len({match["answer"] for _, match in matches}) > 1
    if not matches or is_ambiguous:
        return
    part, match = matches[0]
    if statement.verb and part.kind == "year":
        return  # "we opened": the past form would need another question
    groups = {name: value or "" for name, value in match.groupdict().items()}
    if part.kind in {"count", "sum"} and not _may_ask_amount(statement, rest[: match.start()].strip(), part.kind):
        return
    rest_without_value = (rest[: match.start("lost") - 1] + rest[match.end("lost") :]).strip(" ,")
    parts = (part.words.format(**groups), statement.auxiliary, statement.subject, statement.verb, rest_without_value)
    text = " ".join(filter(None, parts))
    if not _HANGING.search(text):
        answer = tuple(filter(None, (groups["answer"], groups.get("noun"))))
        yield MadeQuestion(f"{text}?", answer, part.kind, sentence, quality=part.quality)


def _may_ask_amount(statement: _Statement, before: str, kind: str) -> bool:
    """Return whether a statement's amount can be asked for, as in "How many rooms has the inn?".

    `before`: the words between its verb and the amount. `kind`: "count" or "sum".
    """
    if not statement.verb and statement.auxiliary in {"is", "are", "was", "were"}:
        return False  # "is worth", "are 5 rooms": without the amount, this is not a question
    if not (before or statement.verb) or _BINDS.search(before):
        return False
    return kind == "count" or " " not in before


def _is_plain(subject: str, rest: str) -> bool:
    clause = _CLAUSE_BEGINS.search(rest)
    unclear = _ANY.match(subject) or _INNER_CLAUSE.search(subject) or _SEVERAL.search(rest) or _NEGATION.search(rest)
    return not (unclear or VAGUE.search(f"{subject} {rest}") or (clause and clause.start() < _EARLY))


def _is_name(subject: str, words: Prose) -> bool:
    name = subject.removeprefix("The ").split()
    return name[0].lower() not in words.small and (len(name) > 1 or not words.is_common(name[0]))


def _strip_article(text: str) -> str:
    return re.sub(r"^(?:[Tt]he|[Oo]ur|[Yy]our|An?) ", "", text)


def _lower(subject: str, words: Prose) -> str:
    """Return a subject as it is written within a sentence: in lower case unless it is a name."""
    first, *more = subject.split()
    is_named = any(word[0].isupper() for word in more)
    small = _ARTICLES.match(subject) or (first.lower() in words.small if is_named else words.is_common(first))
    return subject[0].lower() + subject[1:] if small else subject
