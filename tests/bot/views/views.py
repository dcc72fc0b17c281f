"""Hypothesis strategies for views, with hostile and overlong texts."""

from datetime import UTC, datetime

from hypothesis import strategies as st

from bot.views.turn_view import (
    Button,
    ButtonAction,
    ClaimCard,
    EvidenceItem,
    EvidenceView,
    ShownSource,
    ShownVerdict,
    View,
)
from pipeline.types import AnsweredSentence
from tests.platforms.hostile_text import texts

DAY = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
_ROWS = st.lists(
    st.sampled_from(["| a | b |", "`x = 1`", "    return 1", "👩\u200d🚒👩\u200d🚒", "e\u0301" * 9]), max_size=9
)
_long = st.builds(lambda text, times: text * times, texts, st.sampled_from([1, 1, 7, 60])) | _ROWS.map("\n".join)
_urls = (
    st.sampled_from(["", "https://docs.example.com/a(b)", "ftp://a.b", "https://example.com/文" + "x" * 900]) | _long
)
_dates = st.sampled_from([None, DAY])
_sources = st.builds(ShownSource, st.integers(0, 120), _long, texts, _dates, _urls, texts)
_numbers = st.lists(st.integers(1, 120), max_size=5).map(tuple)
_sentences = st.builds(AnsweredSentence, _long, _numbers, texts, st.booleans())
_states = st.sampled_from(["checking", "supported", "refuted", "unknown"])
_cards = st.builds(ClaimCard, st.integers(1, 9), _states, _long, st.lists(texts, max_size=3).map(tuple))
_buttons = st.builds(Button, st.sampled_from(ButtonAction), st.just("Press"), st.just(7))


def _some(values: st.SearchStrategy) -> st.SearchStrategy[tuple]:
    return st.lists(values, max_size=4).map(tuple)


views = st.builds(
    View,
    st.just(7),
    language=st.sampled_from(["", "en", "de"]),
    status=texts,
    notice=texts,
    claims=_some(_cards),
    collapsed=texts,
    quote=st.none() | _sources,
    quote_label=texts,
    text=_long,
    judgements=_some(
        st.builds(ShownVerdict, texts, _long, _long, st.lists(st.integers(1, 120), max_size=2).map(tuple))
    ),
    sentences=_some(_sentences),
    left_out=texts,
    sources=_some(_sources),
    nearest_label=texts,
    nearest=_some(_sources),
    mentions=st.lists(st.sampled_from(["U1", "123456789012345678"]), max_size=3).map(tuple),
    buttons=st.lists(_buttons, max_size=7).map(tuple),
)
evidences = st.builds(
    EvidenceView,
    texts,
    _long,
    _some(st.builds(EvidenceItem, _long, texts, _long, _some(_sources), _some(_sources), texts)),
    _some(_sources),
    texts,
    texts,
)
