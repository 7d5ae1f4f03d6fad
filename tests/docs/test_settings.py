"""docs/settings.md follows from the code."""

from pathlib import Path

from gateway.config import session_settings_markdown, settings_markdown

ROOT = Path(__file__).resolve().parents[2]


def test_settings_page_is_current() -> None:
    wanted = settings_markdown() + "\n" + session_settings_markdown()
    assert (ROOT / "docs" / "settings.md").read_text() == wanted, "run: python -m gateway.config > docs/settings.md"
