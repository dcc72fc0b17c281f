"""What is set of a LlamaIndex reader whose documents are read."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from bot.settings_of.git import VARIABLE, NewestDays
from bot.values import Values


class LlamaIndexSettings(Values):
    """A reader of LlamaIndex's, by the path that it is imported from."""

    type: Literal["llama_index"]
    reader: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$")]
    """Module and class, such as `llama_index.readers.web:SimpleWebPageReader`."""
    options: Mapping[str, Any] = Field(default_factory=dict)
    """What the reader is made with."""
    options_env: Mapping[str, Annotated[str, StringConstraints(pattern=f"^{VARIABLE}$")]] = Field(default_factory=dict)
    """Options that are secrets, and the variables that hold them."""
    load: Mapping[str, Any] = Field(default_factory=dict)
    """What its `load_data` is called with."""
    include: tuple[str, ...] = ("**/*",)
    exclude: tuple[str, ...] = ()
    newest_days: NewestDays = None

    @model_validator(mode="after")
    def _said_once(self) -> Self:
        if twice := sorted(self.options.keys() & self.options_env.keys()):
            raise ValueError(f"names {twice[0]} in options and in options_env")
        return self
