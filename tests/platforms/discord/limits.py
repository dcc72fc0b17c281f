"""Discord's numbers, from its documents (API v10); seconds are by the server's clock."""

ACK_SECONDS = 3
"""How long an interaction waits for its first answer."""
TOKEN_SECONDS = 15 * 60
"""How long an interaction's token is good."""
NONCE_SECONDS = 3 * 60
"""How long an enforced nonce is remembered: "the past few minutes"."""
RESUME_SECONDS = 3 * 60
"""How long a session whose connection is gone can be resumed."""
TYPING_SECONDS = 10
HEARTBEAT_MS = 41_250
CONTENT = 2_000
COMPONENTS, COMPONENTS_TEXT, LEGACY_ROWS = 40, 4_000, 5
CUSTOM_ID, LABEL, ROW_BUTTONS = 100, 80, 5
MODAL_TITLE, MODAL_ROWS, INPUT, INPUT_LABEL = 45, 5, 4_000, 45
OPTION, OPTIONS = 100, 25  # of a select: characters of a label or value, and how many
NONCE, MENTIONS = 25, 100
THREAD_NAME = 100
FOLLOW_UPS = 5
"""How many follow-ups an interaction has where the app is installed for its user alone."""
INVALID, INVALID_SECONDS = 10_000, 600
GLOBAL, GLOBAL_SECONDS = 50, 1.0
COMMANDS = {1: 100, 2: 15, 3: 15}
"""How many global commands of each type: by slash, on users, on messages."""
PAGE = 100
"""How many messages a page of a history holds at most."""
