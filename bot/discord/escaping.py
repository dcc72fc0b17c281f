r"""Text that is shown in Discord: the very last step before it leaves, once for each piece; pure.

Discord's server looks for `@everyone` and `<@1>` in the raw text, where a backslash does not help: an invisible joiner
parts them, as it parts everything that a client makes a link of. What would format has a backslash before it, which
Discord does not show, also in labels of links. What a person sees is the text.
"""

from bot.views.sanitize import defang_text, sanitize_url
from storage.language.lazy_pattern import lazy_compile

_FORMATTING = lazy_compile(r"[\\`*_~|\[\]()<>#-]")


def escaped(text: str) -> str:
    """Return text as Discord shows it: the same words, no ping, no link, no formatting."""
    return _FORMATTING.sub(r"\\\g<0>", defang_text(text))


def link(title: str, url: str) -> str:
    """Return a link to a stored document's address, without a preview; what cannot be linked to is shown as text."""
    target, label = sanitize_url(url), " ".join(title.split())
    if target:
        return f"[{escaped(label or url.strip())}](<{target}>)"
    shown = " ".join(url.split())
    return f"{escaped(label)} ({escaped(shown)})" if label and shown else escaped(label or shown)
