"""The demo on a small scale, and its page in a real Chromium: wide and narrow, light and dark.

The screenshots stay in the test run's folder (`pytest --basetemp` says where).
"""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from rich.console import Console

from demo import offers
from demo.land import land
from tests.browsing import looking, sticks_out
from tests.spark.samples import SPARK
from tidings.spark.job.job_reading import load_job
from tidings.spark.job.runner import run

pytestmark = [*SPARK, pytest.mark.browser]


@pytest.fixture(scope="module")
def page(spark, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        for name, size in {"SUBSCRIPTIONS": 20_000, "BATCHES": 3, "EVENTS": 3_000, "CHANGES": 20}.items():
            patch.setattr(offers, name, size)
        offers.make(folder, np.datetime64("now", "us") + np.timedelta64(1, "h"))
    sources = {name: folder / name for name in ("events", "changes")} | {"subscriptions": folder / "subscriptions.parquet"}
    sinks = {"sink": folder / "notifications", "refused": folder / "refused"}
    sets = [f"{table}.options.path={path}" for table, path in (sources | sinks).items()]
    places = [f"topic.path={folder / 'topic'}", f"run.checkpoint={folder / 'checkpoint'}", f"run.report={folder / 'report.html'}"]
    run(load_job(Path("demo/job.toml"), [*sets, *places]), "local[2]", Console(file=io.StringIO()), land=land)
    return folder / "report.html"


def test_the_page_tells_who_heard_what_and_why(page):
    told = page.read_text()
    for heading in ("Who heard what", "A list over time", "One subscription", "Once warm", "Warm-up"):
        assert f"{heading}" in told
    for why in ("matched", "entered"):
        assert f'<span class="why">{why}</span>' in told
    assert "touches its box" in told
    assert told.count('class="coast"') == told.count('class="border"') == 2
    assert "pyspark 4" in told


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
def test_the_page_fits_and_follows_the_colours_asked_for(browser, page, width, scheme):
    with looking(browser, page.as_uri(), width=width, scheme=scheme) as seen:
        seen.goto(page.as_uri())
        assert not sticks_out(seen)
        pixels = matplotlib.image.imread(io.BytesIO(seen.screenshot(path=page.with_name(f"{scheme}-{width}.png"), full_page=True)))
    assert pixels.shape[1] == width
    assert (pixels[2, 2, :3].mean() < 0.3) == (scheme == "dark"), "the ground"
    assert len(np.unique(pixels[:, :, :3].reshape(-1, 3), axis=0)) > 50, "something is drawn"
