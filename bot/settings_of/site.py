"""What is set of a web site that is read by its sitemap."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from bot.settings_of.git import NewestDays, VariableName
from bot.values import Contact, Values, web_address


class SiteSettings(Values):
    """A web site by its sitemap."""

    type: Literal["sitemap"]
    url: Annotated[str, AfterValidator(web_address), Field(min_length=1)]
    """Of the sitemap, or of the site, whose robots.txt names it."""
    contact: Contact
    """Whom the site may turn to."""
    include: tuple[str, ...] = ("**/*",)
    """By the path of a page, without its first slash."""
    exclude: tuple[str, ...] = ()
    newest_days: NewestDays = None
    gap: float = Field(default=0.5, ge=0.1)
    """Seconds between two requests; more where robots.txt asks for it."""
    token_env: VariableName = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if not self.contact:
            raise ValueError("must have a contact, such as an e-mail address: sites want to know who reads them")
        if self.token_env and not self.url.startswith("https://"):
            raise ValueError('has a token_env, which can only be sent to an address that begins with "https://"')
        return self
