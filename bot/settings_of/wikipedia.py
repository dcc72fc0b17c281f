"""What is set of a Wikipedia, or another wiki, that is read from a dump: a file, or the latest of a mirror."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from bot.values import Contact, FullPath, Values, web_address
from ingest.sources.dumps.wiki_names import database


def _wiki(name: str) -> str:
    return database(name) if name else ""


class WikipediaSettings(Values):
    """A dump of a Wikipedia, or of another wiki: this file, or the latest that a mirror has."""

    type: Literal["wikipedia"]
    dump: FullPath | None = None
    wiki: Annotated[str, AfterValidator(_wiki)] = ""
    """Such as `simple`, or the name of its database: `simplewiki`."""
    mirror: Annotated[str, AfterValidator(web_address)] = "https://dumps.wikimedia.org"
    cirrus: bool = False
    """Whether it is a dump of CirrusSearch: plain text, quick to read, without sections."""
    keep: int = Field(default=1, ge=0)
    """How many dumps stay in the home once the latest was read in."""
    contact: Contact = ""
    """Required with `wiki`: mirrors refuse clients whose operator they cannot reach."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if bool(self.wiki) == (self.dump is not None):
            raise ValueError("must have either dump or wiki")
        if self.wiki and not self.mirror:
            raise ValueError("must have the address of a mirror")
        if self.wiki and not self.contact:
            raise ValueError("must have a contact, such as an e-mail address: mirrors want to know who downloads")
        return self
