"""Every check of `footnote doctor`, in the order in which it is told. A platform adds its own at the end."""

from bot.discord import examining as discord_checks
from bot.doctoring import home_checks, server_checks, settings_checks, source_checks, sources_there, store_checks
from bot.doctoring.checks import Check
from bot.slack import examining as slack_checks

CHECKS: tuple[Check, ...] = (
    home_checks.clock,
    home_checks.home,
    home_checks.lock,
    home_checks.disk,
    store_checks.database,
    store_checks.embedder,
    store_checks.indexes,
    settings_checks.corpora,
    settings_checks.channels,
    settings_checks.schedule,
    sources_there.sources,
    source_checks.git,
    server_checks.model,
    settings_checks.prices,
    server_checks.port,
    settings_checks.platforms,
    slack_checks.slack,
    discord_checks.discord,
)
