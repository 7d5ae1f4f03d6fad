"""Plugin list; the fixtures are in the fix_*.py files."""

pytest_plugins = ["tests.fix_disk", "tests.fix_server", "tests.fix_shared", "tests.fix_spark"]
