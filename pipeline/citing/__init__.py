"""What a reply cites: a language model's text into sentences and the footnotes they name, and footnotes numbered. Pure.

`numbering` numbers what was said; the rest reads replies, in the order of its use: `lines` tells paragraphs, items,
rows and code apart (`bullets` knows list markers, `tables` rows), `cutting` finds sentence ends, `cleaning` takes out
links, images and mentions (`addresses` knows what links), `styling` takes out emphasis, `marks` finds citation marks,
`parts` those that cannot just go, `verbatim` keeps code and mathematics out of all of that, and `replies` puts them
together.
"""

from pipeline.citing.cleaning import cleaned
from pipeline.citing.numbering import number, quote
from pipeline.citing.replies import Marked, Splitter, cite, sentences

__all__ = ["Marked", "Splitter", "cite", "cleaned", "number", "quote", "sentences"]
