"""Endless text that means nothing, for benchmarks: seeded, and of as many tokens a word as English prose (1.4).

Ordinary words come as often as their rank lets them; invented ones, of which there are thousands, stand in for names
and for what is special to a field.
"""

from collections.abc import Iterator
from itertools import accumulate, product
from random import Random

ORDINARY = """
the of and to in a is that for it was on are as with be by this have from or had not but what were they which can all
their there we one you if when will more would who so no out up about time them some other into could then these only
new over such man first any may people after water very work must also before made well because through most where much
between many year down house off day here should part against world while few old again place small great three found
still city state long same use without however another number last under never right case point during next hand school
home set later country kind group water room side order line service river area church power development early open
children possible far general public young given land body family form night light human large better life best body
become important church second problem company system question course war town water market result bring turn report
member office street table level line local effect history age study book field week month value river moment reason
paper record road wall north south east west winter summer morning bridge station harbour valley forest island mountain
garden window engine letter answer rule price law tax court army king queen prince minister party vote union trade ship
train plane horse dog bird fish tree stone iron gold silver glass wood cloth bread milk salt sugar coffee wine song
music dance theatre film picture colour red green blue white black doctor nurse teacher student pupil farmer worker
artist writer player judge captain guest visitor customer manager budget invoice contract holiday salary meeting agenda
project release server database password backup laptop printer travel hotel ticket expense policy approval deadline
"""
BEGINNINGS = "ar bel cor dal fen gar hol ist jor kel lor mar nor os pel quin ros sel tor ul ver wen yar zan"
MIDDLES = "a e i o u an en in on ur al or"
ENDINGS = "berg dale ford gate ham ian ister lund mere more ness nik ovic port sen stad tin ton vale wick"
INVENTED_SHARE = 0.13
SENTENCE_WORDS = (6, 18)
COMMA_SHARE = 0.06


def salad(random: Random, words: int) -> Iterator[str]:
    """Texts of `words` words each, in sentences, without end."""
    ordinary = ORDINARY.split()
    parts = product(BEGINNINGS.split(), MIDDLES.split(), ENDINGS.split())
    invented = ["".join(three).capitalize() for three in parts]
    weights = [1 / (rank + 8) for rank in range(len(ordinary))]
    rare = sum(weights) * INVENTED_SHARE / (1 - INVENTED_SHARE) / len(invented)
    shares = list(accumulate([*weights, *(rare for _ in invented)]))
    while True:
        yield _sentences(random, random.choices([*ordinary, *invented], cum_weights=shares, k=words))


def _sentences(random: Random, words: list[str]) -> str:
    """`words` with capitals and stops, the last sentence as short as it comes."""
    start = 0
    while start < len(words):
        end = min(start + random.randint(*SENTENCE_WORDS), len(words))
        words[start] = words[start].capitalize()
        words[start:end] = [f"{word}," if random.random() < COMMA_SHARE else word for word in words[start:end]]
        words[end - 1] = words[end - 1].rstrip(",") + "."
        start = end
    return " ".join(words)
