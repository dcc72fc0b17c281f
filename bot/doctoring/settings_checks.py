"""Checks of what the settings mean together: who reads what, which channels search what, when the night comes."""

from collections.abc import Iterator, Sequence

from bot.doctoring.checks import Finding, Scene
from bot.place_ids import platform_of
from bot.settings import Settings
from bot.settings_faults import lacking
from ingest.schedule import night_after

_READERS = "Name channels or people in its readers, as under [[corpus]] in footnote.toml."


async def corpora(scene: Scene) -> Sequence[Finding]:
    """Whether each corpus has somebody to read it, and has been read in."""
    found = tuple(_corpora(scene))
    if found or scene.fault:
        return found
    return (Finding("ok", "Corpora: each is read in, and by somebody."),)


async def channels(scene: Scene) -> Sequence[Finding]:
    """Whether what each channel is to be answered from is there, and may be read there."""
    return tuple(_channels(scene))


async def schedule(scene: Scene) -> Sequence[Finding]:
    """When the next night comes, and whether there is anything to do in it."""
    settings, at = scene.settings, scene.settings.schedule.at
    if at is None:
        return (Finding("ok", "Schedule: no night is set; `footnote ingest all` reads every source in."),)
    if not settings.sources:
        hint = "Give a [[corpus]] a source, or empty [schedule] nightly."
        return (Finding("warn", "Schedule: a night is set, and no corpus has a source to read in.", hint),)
    night = night_after(scene.now, at, settings.zone).astimezone(settings.zone)
    return (
        Finding("ok", f"Schedule: the next night begins {night:%Y-%m-%d %H:%M} in {settings.timezone}."),
        *_unreachable(settings),
    )


async def prices(scene: Scene) -> Sequence[Finding]:
    """Whether what limits the cost can be reckoned: a model without a price costs nothing, as far as is known."""
    limit, model = scene.settings.limits.cost_per_month, scene.settings.model
    if not limit or not model.configured:
        return ()
    asked = {model.name, *(stage.name for stage in model.stages.values() if stage.name)}
    unpriced = ", ".join(sorted(name for name in asked - model.prices.keys() if name))
    if not unpriced:
        return (Finding("ok", f"Limits: cost_per_month is {limit:g}, and each model has its price."),)
    hint = "Add [model.prices] for it, what a million tokens cost, or set a limit of tokens instead."
    return (Finding("warn", f"Limits: cost_per_month limits nothing that {unpriced} costs: it has no price.", hint),)


async def platforms(scene: Scene) -> Sequence[Finding]:
    """Whether what is configured of a platform is all that it needs."""
    if fault := lacking(scene.settings):
        return (Finding("fail", str(fault), fault.hint),)
    if not configured(scene.settings):
        return (Finding("ok", "Platforms: none is configured; the terminal answers all the same."),)
    return ()


def configured(settings: Settings) -> frozenset[str]:
    """Return the platforms that are configured."""
    there = {"slack": settings.slack.configured, "discord": settings.discord.configured}
    return frozenset(name for name, given in there.items() if given)


def _corpora(scene: Scene) -> Iterator[Finding]:
    settings = scene.settings
    indexed = {info.name: info.refreshed for info in scene.corpora or ()}
    if configured(settings):
        unread = [name for name in {**indexed, **settings.readers} if not settings.readers.get(name)]
        for name in unread:
            yield Finding("warn", f"Corpora: nobody but the terminal may read {name}.", _READERS)
    for corpus in settings.corpus:
        if corpus.source and scene.corpora is not None and not indexed.get(corpus.name):
            yield Finding(
                "warn", f"Corpora: {corpus.name} has not been read in to its end.", "Run `footnote ingest all`."
            )


def _channels(scene: Scene) -> Iterator[Finding]:
    settings = scene.settings
    indexed = {info.name for info in scene.corpora or ()}
    for channel in settings.channel:
        for name in channel.corpora or ():
            if scene.corpora is not None and name not in indexed:
                hint = f"Read it in: `footnote ingest folder PATH --corpus {name}`."
                yield Finding("warn", f"Channels: {channel.id} is to be answered from {name}, which is empty.", hint)
            if not {channel.id, "*"} & set(settings.readers.get(name, ())):
                hint = f'Add "{channel.id}" to the readers of {name}, or take {name} out of the channel\'s corpora.'
                yield Finding("warn", f"Channels: {channel.id} names {name}, which may not be read there.", hint)


def _unreachable(settings: Settings) -> Iterator[Finding]:
    channel = settings.schedule.admin_channel
    if channel and platform_of(channel) not in configured(settings):
        hint = f"Configure {platform_of(channel).capitalize()}, or empty [schedule] admin_channel."
        yield Finding("warn", f"Schedule: the night's report cannot be posted to {channel}.", hint)
