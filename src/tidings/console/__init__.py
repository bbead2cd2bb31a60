"""The console: the page at `/`, which shows what is told, to whom, and why.

The page is ours to the last line: HTML, a style sheet and plain ES modules (`page/`), without a build and without anything from
elsewhere. It asks the service's public API only, in the browser, with the key that was typed in. Read `pages` (what serves the
files, and what a browser may do with them), `coasts` (lines for the map), then `page/console.js`; `demo` is what `tidings serve
--demo` publishes. May import the client, for the demo; knows nothing of the service.
"""
