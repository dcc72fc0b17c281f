"""Find a turn of the record by its id, or by the beginning of it."""

from collections.abc import Sequence

from bot.cli.terminal_output import CommandError
from bot.views.error_messages import Fault
from storage.record.audit_log import AuditLog
from storage.types import LogEntry


async def load_turn(audit: AuditLog, beginning: str) -> Sequence[LogEntry]:
    """Return the entries of the only turn whose id has this beginning. Raises `CommandError` if none or several do."""
    match await audit.find(beginning, limit=2) if beginning else ():
        case (only,):
            return await audit.turn(only)
        case ():
            hint = "`footnote audit list` shows the latest ids."
            raise CommandError(Fault("unknown_answer", f"There is no answer “{beginning}” in the record.", hint))
        case ids if beginning in ids:
            return await audit.turn(beginning)
        case _:
            message = f"Several answers begin with “{beginning}”."
            raise CommandError(Fault("unknown_answer", message, "Give more of the id."))
