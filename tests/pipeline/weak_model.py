"""Replies of a real model of 135 million parameters to prompts of ours over the example handbook."""

EXTRA_DAY = (
    "You get one extra day of leave for every five years with the company, up to four extra days. It is added on the "
    "first of January after the anniversary. (from: When you are ill › When your child is ill (2025-08-18))\n\n"
)
_TONIGHT = "You're going to the party tonight. You're going to the party tonight."
PARTY = (
    "Today is Monday, 3 March 2025.\nUser: I'm going to the party tonight. I'm going to the party tonight.\n"
    f"Chatbot: {_TONIGHT}\nUser: I'm going to the party tonight. {_TONIGHT}\n"
)
ECHOED_REPAIR = (
    "This reply cannot be read: no sentence has the number of a note in brackets behind it, such as [1]; where no note "
    "helps, the whole reply is the one word NOTHING.\n\n"
)
ECHOED_TURN = (
    "The user asked for a reply that was refused, since the notes do not say that, or not for what the user asks:\n\n"
)
GERMAN = "Das ist eine wiegeleiche:\n\n"
HOURS = "The number of days a week is determined by the number of hours worked."
COUNTED_GIFT = "Sentence {} says that the bell is a gift from the future, and it is a gift from the future. "
COUNTED_PARCEL = "Sentence {} says that a parcel of 30 kg is carried by the courier, but it is not a 30 kg item. "
COUNTED_BOOK = (
    "Sentence {} says that the first cookbook sold 9,000 copies, but it is not the first cookbook in the context of "
    "the claim. "
)
ALONE = "I'm sure you're not alone in this. "
WORKED_EXAMPLES = (
    "1. NOT ENOUGH INFO Sentence 1 says it of 2026, and 2 is no evidence.\n2. REFUTES [1] She sold it to the town.\n"
    "3. SUPPORTS [2]"
)
DATE_CLAIMS = "- 23 November 2026 is 23 November 2026. | 23 November 2026\n" * 2
BARE_DATES = "- 23 November 2026\n" * 4
PAGE_DATE = {"text": "The number of days off is 2026-01-12.", "sentences": [1]}
FENCE = {"text": "Dentists, vaccinations and school doctors are all part of the bqcgdshkpznk.", "sentences": [1]}
WITHOUT_EVIDENCE = (
    '{"reasoning": "Sentence 1 says that the newest shop of the Morrow bakery opened in 2024. Sentence 2 says that it '
    'opened in 2024.", "sentences": [], "verdict": "SUPPORTS"}'
)


def repeat_bullets(count: int = 30) -> str:
    """Return the beginning of a JSON list that repeats one bullet, each time with the next sentence."""
    return '{"bullets": [' + ", ".join(
        f'{{"text": "{HOURS}", "sentences": [{number}]}}' for number in range(1, count + 1)
    )


def count_on(sentence: str, opening: str = "", count: int = 20) -> str:
    """Return a JSON verdict whose reasoning repeats a sentence with the next number, and never ends."""
    return f'{{"reasoning": "{opening}' + "".join(map(sentence.format, range(1, count + 1)))


LOOPS = {
    "draft without marks": EXTRA_DAY * 9,
    "dialogue": PARTY + f"Chatbot: {_TONIGHT} You're going to the party tonight.\n" * 16,
    "repair message": ECHOED_REPAIR * 12,
    "turn": ECHOED_TURN * 17,
    "german": GERMAN * 38,
    "bullets": repeat_bullets(),
    "gift": count_on(COUNTED_GIFT, "Sentence 1 says that the bell is not a gift, but a gift from the past. "),
    "parcel": count_on(COUNTED_PARCEL),
    "book": count_on(COUNTED_BOOK, "Sentence 1 says that Tove Aalto founded Nordlys Press in 1988. "),
    "consolation": "I'm sorry for your loss. " + ALONE * 40,
}
"""Replies that repeat themselves until they are cut off."""
