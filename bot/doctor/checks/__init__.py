"""Register every check of `footnote doctor`, in the order of its output."""

from bot.doctor.checks import home_checks, reader_checks, server_checks, settings_checks
from bot.doctor.diagnosis import HealthCheck
from bot.settings.platform_registry import load_platforms

CHECKS: tuple[HealthCheck, ...] = (
    home_checks.check_clock,
    home_checks.check_home,
    home_checks.check_lock,
    home_checks.check_disk,
    home_checks.check_database,
    home_checks.check_embedder,
    home_checks.check_vectors,
    home_checks.check_indexes,
    home_checks.check_followers,
    settings_checks.check_corpora,
    settings_checks.check_channels,
    settings_checks.check_schedule,
    server_checks.check_sources,
    server_checks.check_git,
    reader_checks.check_reader_programs,
    reader_checks.check_engine,
    server_checks.check_model,
    server_checks.check_search_engine,
    settings_checks.check_systems,
    settings_checks.check_prices,
    server_checks.check_port,
    settings_checks.check_pages,
    settings_checks.check_programs,
    settings_checks.check_platforms,
    *map(settings_checks.build_platform_check, load_platforms().values()),
)
