"""The OpenAPI document, asked of schemathesis: no 5xx, no answer that it does not name. By itself: `pytest -m document`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.serve.conftest import DEALS

SETTINGS = """
[parameters]
"path.topic" = "deals"
"query.wait" = 0

[[operations]]
include-name = "DELETE /topics/{topic}"
parameters = { "path.topic" = "other" }

[[operations]]
include-name = "POST /topics/{topic}/subscriptions"
enabled = false
"""
"""It has no way to write NDJSON or Arrow; what those take is tried in `test_subscriptions`."""
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


@pytest.mark.document
def test_no_failure_and_no_answer_that_is_not_documented(client, tmp_path):
    client.put("/topics/deals", json=DEALS)
    client.put("/topics/deals/subscriptions/ann", json={"filter": "price < 5"})
    (tmp_path / "schemathesis.toml").write_text(SETTINGS)
    program = str(Path(sys.executable).with_name("st"))
    options = [
        "--checks",
        CHECKS,
        "--max-examples",
        "20",
        "--phases",
        "coverage,fuzzing",
        "--continue-on-failure",
        "--request-timeout",
        "60",
    ]
    command = [program, "--config-file", "schemathesis.toml", "run", f"{client.base_url}/openapi.json", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:]
