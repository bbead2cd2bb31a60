"""Topics at a URL: `test_lake` and its neighbours on a folder, `test_s3` on a real S3 server."""
