"""The site, built strictly as `make docs` builds it, and its landing page in a real Chromium: wide and narrow, light and dark."""

from __future__ import annotations

import io
import re
import subprocess

import matplotlib.image
import numpy as np
import pytest

from docs import generate_evidence, recording, site
from tests.browsing import looking, sticks_out

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def built():
    """Without a warning: `--strict` ends the build at the first."""
    generate_evidence.main()
    recording.main(3, 2)
    site.set_up()
    done = subprocess.run(site.command(), cwd=site.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return site.SITE


def test_nothing_is_fetched_from_elsewhere(built):
    for page in built.rglob("*.html"):
        text = page.read_text()
        assert not re.findall(r'<(?:script|img|iframe|source)[^>]*\ssrc="(?:https?:)?//[^"]*"', text), page.name
        assert not re.findall(r'<link[^>]*rel="(?:stylesheet|preconnect|preload)"[^>]*href="(?:https?:)?//[^"]*"', text), page.name
    assert not list(built.rglob("*.py"))


def test_the_tables_of_the_evidence_are_on_their_page(built):
    assert "python -m benchmarks.engine --full" in (built / "evidence.html").read_text()


def test_the_reference_has_signatures_and_examples(built):
    page = (built / "api" / "topic.html").read_text()
    assert 'id="tidings.Topic.match_batch"' in page
    assert "language-pycon" in page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
def test_the_landing_page_fits_and_follows_the_colours_asked_for(built, browser, tmp_path, width, scheme):
    with looking(browser, built.as_uri(), width=width, height=1500, scheme=scheme) as seen:
        seen.goto((built / "index.html").as_uri())
        assert not sticks_out(seen)
        pixels = matplotlib.image.imread(io.BytesIO(seen.screenshot(path=tmp_path / f"{scheme}-{width}.png")))
    assert (pixels[80, 2, :3].mean() < 0.3) == (scheme == "dark"), "the ground"
    assert len(np.unique(pixels[:, :, :3].reshape(-1, 3), axis=0)) > 50, "something is drawn"
