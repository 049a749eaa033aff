"""Golden files: what each report looks like, to be read in a review like code.

After a change that is meant to be seen:

    pytest tests/report --regenerate-goldens

writes them anew. Look at the difference before committing it.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN_FOLDER = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate-goldens", action="store_true", help="write the golden reports anew")


@pytest.fixture
def check_golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with the golden file of that name, or writes it when asked to."""

    def check(file_name: str, text: str) -> None:
        path = GOLDEN_FOLDER / file_name
        if request.config.getoption("--regenerate-goldens", default=False):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return check
