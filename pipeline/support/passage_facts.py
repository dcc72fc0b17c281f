"""Look up whether passages, taken together, contain a number, a date or a name."""
# ruff: noqa: PLR2004 - two words are more than one

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise, permutations, product

from pipeline.support.analysis.date_parser import Date, implies_date
from pipeline.support.analysis.numerals import load_numerals
from pipeline.support.analysis.parsed_sentence import ParsedPassage, ParsedSentence, parse_passage, strip_possessive
from pipeline.support.analysis.proper_names import (
    ProperName,
    find_aliases,
    find_name_root,
    find_spellings,
    is_abbreviation,
    is_near_spelling,
    is_ordinary_word,
    load_name_tables,
)
from pipeline.support.analysis.quantity_parser import (
    Bound,
    Number,
    convert_amount,
    is_equal_quantity,
    is_same_dimension,
    is_same_unit,
)
from pipeline.support.analysis.tokenizer import find_stem

PRONOUNS = frozenset({"he", "she", "it", "they", "him", "her", "them", "his", "hers", "its", "their", "theirs"})
PER_WORDS = frozenset({"a", "an", "per", "each", "every", "/", "pro", "je", "par", "por"})
_LEAST_JOINED = 6
_MOST_INITIALS = 6
_MOST_RECKONED, _DOZEN = 20, 12
_YEARS = range(1000, 2101)  # what a bare number may be as a year
_ROUGHLY = 0.1  # how far, as a share, "about" may be from the number; "over", "nearly" and "under" twice as far


@dataclass(frozen=True, slots=True)
class PassageFacts:
    """The passages that a sentence cites. `context` is searched like a passage, but is not evidence."""

    passages: tuple[ParsedPassage, ...]
    context: ParsedPassage

    @property
    def everything(self) -> tuple[ParsedPassage, ...]:
        return (*self.passages, self.context)

    @property
    def numbers(self) -> Iterator[Number]:
        return (number for part in self.everything for number in part.numbers)

    def find_antecedents(self, sentence: ParsedSentence) -> tuple[ParsedSentence, ...]:
        """Return the sentences before a sentence in its passage, if a pronoun begins it."""
        within = next((part.sentences for part in self.passages if sentence in part.sentences), ())
        return within[: within.index(sentence)] if within and sentence.text.at(0) in PRONOUNS else ()

    def find_follower(self, sentence: ParsedSentence) -> ParsedSentence | None:
        """Return the next sentence of the passage if a pronoun begins it."""
        pairs = (pair for part in self.passages for pair in pairwise(part.sentences))
        return next((two for one, two in pairs if one is sentence and two.text.at(0) in PRONOUNS), None)

    @property
    def sentences(self) -> tuple[ParsedSentence, ...]:
        return tuple(sentence for passage in self.passages for sentence in passage.sentences)


def collect_facts(passages: Sequence[str], context: Sequence[str] = (), language: str = "") -> PassageFacts:
    """Parse passages, and words from outside them that count as stated; `language` is the question's."""
    parsed = tuple(parse_passage(text, language) for text in passages)
    return PassageFacts(parsed, parse_passage("\n".join(context), language))


def has_date(facts: PassageFacts, date: Date) -> bool:
    """Return whether the passages state a date, at least as precisely.

    A full date may be stated in two parts, with the year elsewhere, unless its day and month have another year.
    """
    known = [known for part in facts.everything for known in part.dates]
    if any(implies_date(source, date) for source in known):
        return True
    if date.year is not None and date.month is None:
        return any(date.year in number.values for number in facts.numbers)
    if date.year is None or not any(source.year == date.year for source in known):
        return False
    return any(
        source.year is None and source.month == date.month and date.day in {None, source.day} for source in known
    )


def has_number(facts: PassageFacts, number: Number) -> bool:
    """Return whether the passages state a number, in any unit, or one that a bound or unit makes equal.

    Labels and quantities of other dimensions do not count: "a 3 year warranty" is not in "paragraph 1.F.3" or "3 kg".
    """
    quantities = (known for known in facts.numbers if not number.units or _may_measure(known, number))
    given = any(is_same_number(known, number) for known in quantities)
    return given or any(_has_number_in_words(part, number) for part in facts.everything)


def _may_measure(known: Number, number: Number) -> bool:
    return is_same_dimension(known.units, number.units) if known.units else not known.label


def is_same_number(known: Number, number: Number) -> bool:
    """Return whether a number of the passages makes the sentence's number true."""
    if any(value in (*known.values, *_list_shares(known)) for value in (*number.values, *number.halves)):
        return True
    if is_equal_quantity(known, number):
        return True
    return number.bound is not Bound.EXACTLY and not known.ordinal and _is_within_bound(known, number)


def _list_shares(number: Number) -> Iterator[float]:
    """Yield a percentage as a share below 1: 0.5 for "50%"."""
    return (value / 100 for value in number.values if value < 100 and any(unit.name == "%" for unit in number.units))


def is_within_bound(known: Number, said: Number) -> bool:
    """Return whether a quantity is within a bound of the passages: 100 hours is "over 80 hours"."""
    if known.bound not in {Bound.OVER, Bound.UNDER} or known.ordinal or said.ordinal:
        return False
    if not is_same_unit(known.units, said.units) and (known.units or said.units):
        amounts = convert_amount(said.values[0], said.units, known.units)
    else:
        amounts = said.values[:1]
    limit = known.values[0]
    return any(amount >= limit if known.bound is Bound.OVER else amount <= limit for amount in amounts)


def is_same_value(known: object, said: object) -> bool:
    """Return whether two values are both numbers or both dates, and the first makes the second true."""
    if isinstance(known, Number) and isinstance(said, Number):
        return is_same_number(known, said)
    return isinstance(known, Date) and isinstance(said, Date) and implies_date(known, said)


def _is_within_bound(known: Number, number: Number) -> bool:
    """Return whether the sentence states a known number more roughly: "about", "over" or "nearly"."""
    pairs = product(number.values, known.values)
    if number.units and known.units and not is_same_unit(number.units, known.units):
        return any(
            _is_rounded(converted, value, number.bound)
            for value, other in pairs
            for converted in convert_amount(other, known.units, number.units)
        )
    return any(
        _count_figures(value) < _count_figures(other) and _is_rounded(other, value, number.bound)
        for value, other in pairs
    )


def _is_rounded(exact: float, rough: float, bound: Bound) -> bool:
    if bound is Bound.ABOUT:
        return abs(exact - rough) <= _ROUGHLY * abs(exact)
    low, high = (rough, exact) if bound is Bound.OVER else (exact, rough)
    return low < high <= low * (1 + 2 * _ROUGHLY)


def _count_figures(value: float) -> int:
    """Count the significant figures of a number: 3 of 1250."""
    return len(f"{value:.9g}".replace(".", "").split("e")[0].strip("0")) if value else 1


def can_be_reckoned(
    number: Number, sentence: ParsedSentence, facts: PassageFacts, asked: Sequence[Number] = (), *, changed: bool
) -> bool:
    """Return whether a number may be computed from the passages: "four items", "two at 50 are 100".

    It may be a count of up to a dozen, the time between two years, a sum, difference, product or share, also of `asked`
    numbers. It may also be a number times one of the sentence's. A number that replaces another (`changed`) may only be
    the last.
    """
    value = number.values[0]
    asked = [other for other in asked if other.values[0] != value]
    stated = [*[other for other in facts.numbers if not other.ordinal][:_MOST_RECKONED], *asked]
    factors = [other.values[0] for other in (*sentence.numbers, *asked) if other is not number and other.values[0] > 1]
    if any(other.values[0] * factor == value for other in stated for factor in factors):
        return True
    if changed or number.ordinal:
        return False
    if _is_part_of_sum(number, sentence.numbers, stated):
        return True
    known = [date.year for part in facts.everything for date in part.dates if date.year]
    known += [int(other.values[0]) for other in stated if not other.units and other.values[0] in _YEARS]
    between = {abs(one - other) + more for one, other in combinations(known[:_MOST_RECKONED], 2) for more in (0, -1)}
    alike = [(one.values[0], two.values[0]) for one, two in combinations(stated, 2) if one.units == two.units]
    sums = {round(value, 6) for one, two in alike for value in (one + two, abs(one - two))}
    shares = {one.values[0] / two.values[0] for one, two in permutations(stated, 2) if two.values[0]}
    years, timed = _count_years(number), sentence.text.at(number.last) == "times"
    counts = not number.units and not timed and value <= _DOZEN and value == int(value)
    return (
        counts
        or value in sums
        or (value >= 1 and any(abs(span - value * years) < years / 2 for span in between))
        or (timed and value in shares)
        or (any(unit.name == "%" for unit in number.units) and value in {round(100 * share) for share in shares})
    )


def _is_part_of_sum(number: Number, said: Sequence[Number], given: Sequence[Number]) -> bool:
    """Return whether a quantity is the sum of two, or a part of one of the passages: 90 minutes are an hour and 30."""
    amounts, others = (
        [amount for entry in listed for amount in convert_amount(entry.values[0], entry.units, number.units)]
        for listed in (given, [other for other in said if other is not number])
    )
    value = number.values[0]
    sums = {round(one + two, 6) for one, two in combinations(amounts, 2)}
    return value in sums or any(round(value + other, 6) in amounts for other in others)


def _count_years(number: Number) -> float:
    """Return how many years the unit of a number has: 1 without a unit, 0 for units of other things."""
    names = {unit.name for unit in number.units} or {"yr"}
    return next((years for name, years in (("yr", 1), ("dec", 10), ("cen", 100)) if name in names), 0)


def _has_number_in_words(part: ParsedPassage, number: Number) -> bool:
    """Return whether a passage states a number by a word ("twice", "both"), a year or a share."""
    hints = load_numerals(part.sentences[0].language if part.sentences else "en").hints
    for value in number.values:
        if value <= 1000 and any(hints[word] == value for word in part.words & hints.keys()):
            return True
        if any(date.year == value or (number.ordinal and date.day == value) for date in part.dates):
            return True
    shares = {value / 100 for value in number.values} if any(unit.name == "%" for unit in number.units) else set()
    return any(not shares.isdisjoint(known.values) for known in part.numbers)


def has_name(facts: PassageFacts, name: ProperName) -> bool:
    """Return whether the passages have a name: each of its words, another spelling, or a replacement."""
    missing = [word for word in name.parts if not _has_word(facts, word)]
    return not missing or _has_whole_name(facts, name) or _lacks_only_given_names(facts, name, missing)


def _has_word(facts: PassageFacts, word: str) -> bool:
    """Return whether a passage has a word, another form of it, its long form, or a replacement."""
    if len(word) == 1 and word.isascii():
        return any(word in sentence.content for part in facts.everything for sentence in part.sentences)
    known, plain, aliases = find_spellings(word), word.replace(".", ""), find_aliases(word)
    acronym = plain.isascii() and plain.isalpha() and plain.islower() and 2 <= len(plain) <= _MOST_INITIALS
    for part in facts.everything:
        if not known.isdisjoint(part.words) or find_stem(word, "en") in part.stems:
            return True
        short = {other for other in part.capitals if f" {other} . " in part.joined and is_abbreviation(other, word)}
        if short or any(_is_akin(word, other) for other in part.capitals) or _has_phrase(part, aliases):
            return True
        if acronym and any(plain in initials for initials in _collect_initials(part)):
            return True
        if len(word) >= _LEAST_JOINED and word.removesuffix("s") in _join_neighbours(part):
            return True
    return False


def _has_phrase(part: ParsedPassage, phrases: Iterable[str]) -> bool:
    return any(" " in phrase and f" {phrase} " in part.joined for phrase in phrases)


def _is_akin(word: str, other: str) -> bool:
    """Return whether two words have one root or differ by a letter, unless both are known names."""
    akin = find_name_root(word) == find_name_root(other) or is_near_spelling(word, other)
    return akin and not (find_aliases(word) and find_aliases(other))


def is_own_name(name: ProperName, sentence: ParsedSentence, own: Iterable[str]) -> bool:
    """Return whether a name is one of `own`, or some of its words: "Made Tech" for "madetech".

    An ordinary word that begins the sentence may be the first of it.
    """
    lead = sentence.text.low[0] if name.first == 1 and 0 in sentence.capitals else ""
    joined = "".join(filter(str.isalnum, "".join(name.parts)))
    split = ("".join(char if char.isalnum() else " " for char in own_name.casefold()).split() for own_name in own)
    return any(
        words and (not {joined, lead + joined}.isdisjoint([*words, "".join(words)]) or set(name.parts) <= set(words))
        for words in split
    )


def find_speaker(facts: PassageFacts, name: ProperName, sentence: ParsedSentence) -> str:
    """Return the "we" or "our" in the passages that may refer to a name; empty if none does.

    Given names and known places never match.
    """
    tables, before = load_name_tables(), sentence.text.at(name.first - 1)
    follows_clause = before == "," and (name.first == 2 or name.first - 2 not in sentence.capitals)
    if name.first and before not in tables.speaker_leads and not follows_clause:
        return ""
    if any(part in tables.nicknames for part in name.parts[:1]) or any(map(find_aliases, name.parts)):
        return ""
    return min((low for part in facts.passages for low in part.words & tables.speakers - part.acronyms), default="")


@lru_cache(maxsize=2048)
def _join_neighbours(part: ParsedPassage) -> frozenset[str]:
    """Return every two or three neighbouring words as one word: "spiderman" for "Spider-Man"."""
    low = [word for word in part.joined.split() if word[0].isalnum()]
    pairs = [one + two for one, two in pairwise(low)]
    return frozenset([*pairs, *(pair + word for pair, word in zip(pairs, low[2:], strict=False))])


@lru_cache(maxsize=2048)
def _collect_initials(part: ParsedPassage) -> tuple[str, ...]:
    """Return the first letters of each run of capitalised words, skipping small words between them."""
    found: list[str] = []
    for sentence in part.sentences:
        letters = ""
        for place, low in enumerate(sentence.text.low):
            if place in sentence.capitals:
                letters += low[0]
            elif low not in load_name_tables().particles:
                found.append(letters)
                letters = ""
        found.append(letters)
    return tuple(letters for letters in found if len(letters) > 1)


def _has_whole_name(facts: PassageFacts, name: ProperName) -> bool:
    """Return whether the passages have a whole name as initials, as an alias, or as one word."""
    initials = "".join(word[0] for word in name.parts)
    together = "".join(filter(str.isalnum, "".join(name.parts)))
    aliases = find_aliases(" ".join(name.parts)) if len(name.parts) > 1 else frozenset()
    return any(
        (len(initials) > 1 and initials in part.acronyms)
        or (len(together) > 1 and together in part.words)
        or together in _join_neighbours(part)
        or not aliases.isdisjoint(part.words)
        or _has_phrase(part, aliases)
        for part in facts.everything
    )


def _lacks_only_given_names(facts: PassageFacts, name: ProperName, missing: Iterable[str]) -> bool:
    """Return whether only given names are missing, and the passages give the surname no other ones."""
    *given, surname = name.parts
    if not given or surname in missing or len(name.places) != len(name.parts) or is_ordinary_word(surname):
        return False
    if not any(surname in part.capitals for part in facts.everything):
        return False
    nicknames = load_name_tables().nicknames
    known = {form for word in given for form in nicknames.get(word, {word})}
    return all(
        word in known or (len(word) == 1 and any(part_of_name.startswith(word) for part_of_name in name.parts))
        for part in facts.everything
        for word in _find_words_before(part, surname)
    )


@lru_cache(maxsize=4096)
def _find_words_before(part: ParsedPassage, surname: str) -> frozenset[str]:
    """Return the capitalised words before a surname, without titles."""
    found: set[str] = set()
    skipped = load_name_tables().titles | {"."}
    for sentence in part.sentences:
        low = sentence.text.low
        for place in (at for at, word in enumerate(low) if strip_possessive(word) == surname):
            before = place - 1
            while before in sentence.capitals or sentence.text.at(before) == ".":
                if low[before] not in skipped and not (before == 0 and is_ordinary_word(low[0])):
                    found.add(low[before].rstrip("."))
                before -= 1
    return frozenset(found)
