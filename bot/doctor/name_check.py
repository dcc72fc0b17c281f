"""Tell which channels the names in the settings mean, for the doctor's checks of platforms."""

from collections.abc import Awaitable, Callable, Iterator, Sequence

from bot.desk.platform_port import PlatformError
from bot.doctor.diagnosis import CheckResult, Inspection
from bot.settings.live.channel_names import BY_ID, NamedChannel, NameReading, list_channel_names, read_name
from bot.settings.platform_registry import load_platforms, platform_of

_MOVED = "Write the id of the channel that is meant; the other gets nothing by the name."


async def check_channel_names(
    scene: Inspection, platform: str, list_channels: Callable[[], Awaitable[Sequence[NamedChannel]]]
) -> Sequence[CheckResult]:
    """Check that each name of a platform's channels means one."""
    names = [name for name in list_channel_names(scene.settings) if platform_of(name) == platform]
    if not names:
        return ()
    title = load_platforms()[platform].title
    try:
        channels = await list_channels()
    except PlatformError as error:
        return (CheckResult("fail", f"{title}: its channels cannot be listed. {error}", BY_ID),)
    readings = [read_name(name, channels, scene.names.get(name, "")) for name in names]
    return tuple(finding for one in readings for finding in _describe_reading(title, one))


def _describe_reading(title: str, reading: NameReading) -> Iterator[CheckResult]:
    if reading.fault:
        yield CheckResult("fail", f"{title}: nobody reads by {reading.name}: {reading.fault}.", BY_ID)
    elif reading.note:
        yield CheckResult("warn", f"{title}: {reading.name} is {reading.note}.", _MOVED)
    else:
        yield CheckResult("ok", f"{title}: {reading.name} is {reading.id}.")
