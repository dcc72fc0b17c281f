"""What `footnote doctor` looks at of Slack: whether the tokens are taken, and whether they may do what is needed."""

from collections.abc import Iterator, Sequence

from bot.doctor.diagnosis import CheckResult, Inspection
from bot.settings.platform_settings import SlackSettings
from bot.slack.needs import SCOPES

_TOKEN = "Copy the bot token (xoxb-…) anew from the app's page, under OAuth & Permissions, to SLACK_BOT_TOKEN."  # noqa: S105
_APP_TOKEN = (
    "Make an app token (xapp-…) with the scope connections:write on the app's page, under Basic Information, "  # noqa: S105
    "and set SLACK_APP_TOKEN; Socket Mode must be on."
)
_SECRET = "Copy the signing secret anew from the app's page, under Basic Information, to SLACK_SIGNING_SECRET."  # noqa: S105
_AWAY = "See whether this machine reaches slack.com, then try again."
_LETTERS = frozenset("0123456789abcdef")
_SECRET_LENGTH = 32


async def slack(scene: Inspection) -> Sequence[CheckResult]:
    """Whether Slack takes the tokens, and whether they may do all that is needed."""
    settings = scene.settings.slack
    if not settings.configured or settings.missing:
        return ()  # what is missing is told by the check of platforms
    found = await _bot(settings)
    return (*found, *(await _socket(settings) if settings.mode == "socket" else _http(settings)))


async def _bot(settings: SlackSettings) -> Sequence[CheckResult]:
    from slack_sdk.errors import SlackApiError

    from bot.slack.calling import web_client

    try:
        who = await web_client(settings.bot_token.get_secret_value(), settings.api_url).auth_test()
    except SlackApiError as error:
        return (CheckResult("fail", f"Slack: the bot token is refused: {_code(error)}.", _TOKEN),)
    except Exception as error:  # noqa: BLE001 - whatever it is, Slack could not be asked
        return (CheckResult("fail", f"Slack: it cannot be reached: {type(error).__name__}.", _AWAY),)
    given = {name.strip() for name in str(who.headers.get("x-oauth-scopes", "")).split(",")}
    known = f"Slack: the bot is {who.get('user')} in {who.get('team')} (slack:{who.get('team_id')})."
    return (CheckResult("ok", known), *lacking(given))


def lacking(given: set[str]) -> Iterator[CheckResult]:
    """Tell what the bot token may not do, by the scopes that it was given; pure."""
    for scope in SCOPES:
        if scope not in given:
            hint = f"It {SCOPES[scope]}. Update the app by slack-manifest.yaml, and install it again."
            yield CheckResult("fail", f"Slack: the scope {scope} was not given.", hint)


async def _socket(settings: SlackSettings) -> Sequence[CheckResult]:
    from slack_sdk.errors import SlackApiError

    from bot.slack.calling import web_client

    try:
        await web_client("", settings.api_url).apps_connections_open(app_token=settings.app_token.get_secret_value())
    except SlackApiError as error:
        return (CheckResult("fail", f"Slack: the app token opens no socket: {_code(error)}.", _APP_TOKEN),)
    except Exception as error:  # noqa: BLE001 - as above
        return (CheckResult("fail", f"Slack: no socket can be asked for: {type(error).__name__}.", _AWAY),)
    return (CheckResult("ok", "Slack: the app token opens sockets."),)


def _http(settings: SlackSettings) -> Sequence[CheckResult]:
    secret = settings.signing_secret.get_secret_value()
    if len(secret) != _SECRET_LENGTH or not set(secret) <= _LETTERS:
        return (
            CheckResult("warn", "Slack: the signing secret does not look like one (32 digits and a to f).", _SECRET),
        )
    return (CheckResult("ok", "Slack: there is a signing secret; Slack sends to /slack/events."),)


def _code(error: Exception) -> str:
    """Return Slack's word for a refusal, and nothing else of it."""
    response = getattr(error, "response", None)
    code = response.get("error", "") if response is not None and hasattr(response, "get") else ""
    return code if isinstance(code, str) and code.replace("_", "").isalnum() else "it did not say why"
