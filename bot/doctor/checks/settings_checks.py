"""Check settings that depend on each other: readers, channels, systems, schedule, prices, platforms, pages, MCP."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from bot.doctor.diagnosis import CheckResult, HealthCheck, Inspection
from bot.settings.platform_registry import EVERYONE, PlatformEntry, load_platforms, platform_of
from bot.settings.settings_errors import find_exposure, find_platform_faults
from bot.settings.tables.network_settings import LOOPBACK, MCP, TOKENS, is_mcp_reader, list_token_ids
from bot.settings.tables.settings_tables import ChannelValues, Settings
from bot.views.text_formats import format_count
from ingest.refresh.night_schedule import night_after
from pipeline.errors import UnknownSystem
from pipeline.systems import find_system
from storage.types import CorpusInfo, is_web_corpus

WEB_SYSTEM = "search-engine"
_READERS_HINT = "Name channels or people in its visible_to, as under [[corpus]] in footnote.toml."

_MODEL_HINT = "Name a model in [model], with its base_url."
_EMPTY_HINT = "Check its source; `footnote ingest` reports unreadable documents with reasons."


async def check_corpora(scene: Inspection) -> Sequence[CheckResult]:
    """Check that each corpus has a reader, and was ingested."""
    results = tuple(_check_each_corpus(scene))
    indexed = _find_indexed(scene)
    if results or indexed is None:
        return results
    if not (indexed or scene.settings.corpus):
        return (CheckResult("ok", "Corpora: none yet."),)
    if unread := _list_unread(scene.settings, indexed):
        message = (
            f"Corpora: all ingested; only the terminal reads {', '.join(unread)}, because no platform is configured."
        )
        return (CheckResult("ok", message),)
    return (CheckResult("ok", "Corpora: all ingested, and each has readers."),)


async def check_channels(scene: Inspection) -> Sequence[CheckResult]:
    """Check that the corpora of each channel exist, and may be read there."""
    return tuple(_check_each_channel(scene))


async def check_systems(scene: Inspection) -> Sequence[CheckResult]:
    """Check that the systems named in the settings, for all channels or for one, exist and have what they need."""
    named = [("system", scene.settings.system)]
    named += [(channel.id, name) for channel in scene.settings.channel for name in channel.systems]
    with_model, engine = scene.settings.model.configured, scene.settings.search_engine
    results = [result for place, name in named if name for result in _check_system(place, name, with_model=with_model)]
    if engine.every_system and not (engine.corpus and with_model):
        lacks, hint = ("model", _MODEL_HINT) if engine.corpus else ("search engine", "Set type in [search_engine].")
        results.append(CheckResult("warn", f"Systems: every_system does nothing without a {lacks}.", hint))
    return tuple(results)


async def check_schedule(scene: Inspection) -> Sequence[CheckResult]:
    """Report when the next nightly refresh starts; warn if it has no source to read, or cannot post its report."""
    settings, at = scene.settings, scene.settings.schedule.at
    if at is None:
        return (
            CheckResult("ok", "Schedule: no nightly refresh is set; `footnote ingest all` refreshes every source."),
        )
    if not settings.sources:
        hint = "Give a [[corpus]] a source, or remove nightly from [schedule]."
        return (CheckResult("warn", "Schedule: a nightly refresh is set, but no corpus has a source.", hint),)
    night = night_after(scene.now, at, settings.zone).astimezone(settings.zone)
    return (
        CheckResult("ok", f"Schedule: the next nightly refresh starts {night:%Y-%m-%d %H:%M} in {settings.timezone}."),
        *_check_admin_channel(settings),
    )


async def check_prices(scene: Inspection) -> Sequence[CheckResult]:
    """Check that a cost limit can be applied: without a price, the cost of a model is unknown."""
    limit, model = scene.settings.limits.cost_per_month, scene.settings.model
    if not limit or not model.configured:
        return ()
    models = {model.name, *(stage.name for stage in model.stages.values() if stage.name)}
    unpriced = ", ".join(sorted(name for name in models - model.prices.keys() if name))
    if not unpriced:
        return (CheckResult("ok", f"Limits: cost_per_month is {limit:g}, and each model has a price."),)
    hint = "Add its price per million tokens under [model.prices], or limit tokens instead."
    return (CheckResult("warn", f"Limits: cost_per_month does not limit {unpriced}, which has no price.", hint),)


async def check_platforms(scene: Inspection) -> Sequence[CheckResult]:
    """Report if no platform is configured."""
    if not list_configured_platforms(scene.settings):
        return (CheckResult("ok", "Platforms: none is configured; questions are answered only in the terminal."),)
    return ()


def build_platform_check(entry: PlatformEntry) -> HealthCheck:
    """Return a platform's check, which checks the form of the secrets and, if that is valid, the connection."""

    async def check_platform(scene: Inspection) -> Sequence[CheckResult]:
        if not entry.read(scene.settings).configured:
            return ()
        faults = find_platform_faults(scene.settings, [entry])
        if not faults:
            check: HealthCheck = entry.check
            return await check(scene)
        skipped = CheckResult("skip", f"{entry.title}: not contacted, because that needs its secrets.")
        return (*(CheckResult("fail", str(fault), fault.hint) for fault in faults), skipped)

    return check_platform


async def check_pages(scene: Inspection) -> Sequence[CheckResult]:
    """Check that the pages need signing in, and have TLS, if they are served beyond this machine."""
    pages = scene.settings.pages
    if not pages.enabled:
        return ()
    if fault := find_exposure(scene.settings):
        return (CheckResult("fail", f"Pages: {fault}", fault.hint),)
    if pages.host in LOOPBACK:
        return (CheckResult("ok", f"Pages: served on this machine, at {pages.host}:{pages.port}."),)
    hint = "Put a proxy with TLS in front of them, and let them listen where only the proxy reaches them."
    return (CheckResult("warn", "Pages: served beyond this machine, without TLS of their own.", hint),)


async def check_programs(scene: Inspection) -> Sequence[CheckResult]:
    """Check that programs with a token for MCP can connect safely, and that each may read a corpus."""
    return tuple(_check_tokens(scene.settings))


def _check_tokens(settings: Settings) -> Iterator[CheckResult]:
    mcp, named = settings.mcp, {reader for reader in settings.readers if is_mcp_reader(reader)}
    known = {name for token in mcp.tokens for name in list_token_ids(token.name, token.groups)}
    for token in mcp.tokens:
        if not named.intersection(list_token_ids(token.name, token.groups)):
            hint = f'Name "{MCP}:{TOKENS}/{token.name}" in the visible_to of a [[corpus]], or remove the token.'
            yield CheckResult("warn", f"MCP: the token {token.name} may read nothing.", hint)
    for name in sorted(named - known):
        yield CheckResult("warn", f"MCP: visible_to names {name}, but [mcp] has no such token.", "Correct it.")
    if not mcp.enabled:
        return
    if not mcp.tokens:
        hint = "`footnote mcp token NAME` makes a token, or set enabled = false."
        yield CheckResult("warn", "MCP: it is enabled, but has no token, so no program can ask.", hint)
    elif settings.http.host in LOOPBACK:
        yield CheckResult("ok", f"MCP: programs may ask at http://{settings.http.host}:{settings.http.port}/mcp.")
    elif not mcp.hosts:
        hint = 'Name the host that programs use, such as hosts = ["footnote.example.com"].'
        yield CheckResult("warn", "MCP: served beyond this machine, but hosts under [mcp] is empty.", hint)


def list_configured_platforms(settings: Settings) -> frozenset[str]:
    return frozenset(name for name, entry in load_platforms().items() if entry.read(settings).configured)


def _find_indexed(scene: Inspection) -> Mapping[str, CorpusInfo] | None:
    """Return the ingested corpora by name: empty without a database; None if unknown."""
    unmade = not (scene.settings.database or scene.file or scene.fault)
    infos = () if scene.corpora is None and unmade else scene.corpora
    return None if infos is None else {info.name: info for info in infos}


def _list_unread(settings: Settings, indexed: Collection[str]) -> list[str]:
    return [name for name in sorted({*indexed, *settings.visible_to}) if not settings.visible_to.get(name)]


def _check_each_corpus(scene: Inspection) -> Iterator[CheckResult]:
    settings, indexed = scene.settings, _find_indexed(scene)
    if list_configured_platforms(settings):
        for name in _list_unread(settings, indexed or ()):
            yield CheckResult("warn", f"Corpora: only the terminal may read {name}.", _READERS_HINT)
    for corpus in settings.corpus:
        info = (indexed or {}).get(corpus.name)
        if indexed is not None and not (info and info.refreshed):
            how = "all" if corpus.source else f"folder PATH --corpus {corpus.name}"
            message = f"Corpora: {corpus.name} has not been ingested completely."
            yield CheckResult("warn", message, f"Run `footnote ingest {how}`.")
        if corpus.dense and info and info.passages and info.dense.value != corpus.dense:
            message = f"Corpora: {corpus.name} is {info.dense.value} until its next refresh makes it {corpus.dense}."
            yield CheckResult("warn", message, "Run `footnote ingest all`, or wait for the nightly refresh.")
    for name, info in (indexed or {}).items():
        if info.refreshed and not info.passages:
            lost = f"; {format_count(info.failures, 'document')} could not be read" if info.failures else ""
            yield CheckResult("warn", f"Corpora: {name} was ingested, but is empty{lost}.", _EMPTY_HINT)


def _check_system(place: str, name: str, *, with_model: bool) -> Iterator[CheckResult]:
    try:
        entry = find_system(name)
    except UnknownSystem as error:
        yield CheckResult("fail", f"Systems: {place} names “{name}”. {error}", error.hint)
    else:
        if entry.calls and not with_model:
            yield CheckResult("warn", f"Systems: {place} names “{name}”, which needs a model.", _MODEL_HINT)


def _check_each_channel(scene: Inspection) -> Iterator[CheckResult]:
    settings = scene.settings
    indexed = {info.name for info in scene.corpora or ()}
    for channel in settings.channel:
        for name in channel.corpora or ():
            if scene.corpora is not None and name not in indexed and not is_web_corpus(name):
                hint = f"Ingest it: `footnote ingest folder PATH --corpus {name}`."
                yield CheckResult("warn", f"Channels: {channel.id} has the corpus {name}, which is empty.", hint)
            if not {channel.id, "*"} & set(settings.visible_to.get(name, ())):
                hint = f'Add "{channel.id}" to visible_to of {name}, or remove {name} from the channel\'s corpora.'
                yield CheckResult("warn", f"Channels: {channel.id} names {name}, which may not be read there.", hint)
        web = settings.search_engine.corpus
        if web and channel.system == WEB_SYSTEM and not _may_read_web(channel, settings.search_engine.visible_to, web):
            hint = f"Add it to [search_engine] visible_to, and {web} to its corpora if it has any."
            what = f"Channels: {channel.id} has the system {WEB_SYSTEM}, but may not read the web, only its corpora."
            yield CheckResult("warn", what, hint)


def _may_read_web(channel: ChannelValues, visible_to: Sequence[str], web: str) -> bool:
    return bool({channel.id, EVERYONE} & set(visible_to)) and (channel.corpora is None or web in channel.corpora)


def _check_admin_channel(settings: Settings) -> Iterator[CheckResult]:
    channel = settings.schedule.admin_channel
    if channel and platform_of(channel) not in list_configured_platforms(settings):
        hint = f"Configure {platform_of(channel).capitalize()}, or remove admin_channel from [schedule]."
        yield CheckResult("warn", f"Schedule: reports of nightly refreshes cannot be posted to {channel}.", hint)
