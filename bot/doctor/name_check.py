"""Check the channel names in the settings, as part of the checks of platforms."""

from collections.abc import Awaitable, Callable, Iterator, Sequence

from bot.desk.platform_port import PlatformError
from bot.doctor.diagnosis import CheckResult, Inspection
from bot.settings.live.channel_names import BY_ID, NamedChannel, NameReading, list_channel_names, read_name
from bot.settings.platform_registry import load_platforms, platform_of

_MOVED = "Write the id of the channel that you mean; a channel that took over the name gets no access."


async def check_channel_names(
    scene: Inspection, platform: str, list_channels: Callable[[], Awaitable[Sequence[NamedChannel]]]
) -> Sequence[CheckResult]:
    """Check that each channel name belongs to exactly one channel of a platform."""
    names = [name for name in list_channel_names(scene.settings) if platform_of(name) == platform]
    if not names:
        return ()
    title = load_platforms()[platform].title
    try:
        channels = await list_channels()
    except PlatformError as error:
        return (CheckResult("fail", f"{title}: cannot list its channels. {error}", BY_ID),)
    readings = [read_name(name, channels, scene.names.get(name, "")) for name in names]
    return tuple(finding for reading in readings for finding in _describe_reading(title, reading))


def _describe_reading(title: str, reading: NameReading) -> Iterator[CheckResult]:
    if reading.fault:
        yield CheckResult("fail", f"{title}: {reading.name} gives no one access: {reading.fault}.", BY_ID)
    elif reading.note:
        yield CheckResult("warn", f"{title}: {reading.name} {reading.note}.", _MOVED)
    else:
        yield CheckResult("ok", f"{title}: {reading.name} is {reading.id}.")
