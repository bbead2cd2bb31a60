"""The changelog's section of a release; the packages themselves are checked by `make release`."""

from __future__ import annotations

import pytest

from scripts.release import released, section_of

CHANGELOG = "# Changelog\n\nNewest first.\n\n## Unreleased\n\n- New.\n- Newer.\n\n## 0.1.0 (2026-01-31)\n\n- First.\n"


def test_the_section_is_what_stands_under_unreleased():
    assert section_of(CHANGELOG, "0.2.0", "2026-11-16") == "## 0.2.0 (2026-11-16)\n\n- New.\n- Newer.\n"


def test_the_changelog_keeps_the_rest_and_begins_anew():
    after = released(CHANGELOG, "0.2.0", "2026-11-16")
    assert after == CHANGELOG.replace("## Unreleased\n\n", "## Unreleased\n\n## 0.2.0 (2026-11-16)\n\n")
    with pytest.raises(SystemExit, match="nothing stands under Unreleased"):
        released(after, "0.3.0", "2026-11-17")


def test_a_first_release_has_no_older_section():
    first = "# Changelog\n\n## Unreleased\n\n- New.\n"
    assert released(first, "0.1.0", "2026-11-16") == "# Changelog\n\n## Unreleased\n\n## 0.1.0 (2026-11-16)\n\n- New.\n"


def test_a_version_is_released_once():
    with pytest.raises(SystemExit, match=r"a section of 0\.1\.0 already"):
        section_of(CHANGELOG, "0.1.0", "2026-11-16")
