"""Print docs/settings.md."""

import sys

from gateway.config import session_settings_markdown, settings_markdown

sys.stdout.write(settings_markdown() + "\n" + session_settings_markdown())
