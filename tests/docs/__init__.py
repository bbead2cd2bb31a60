"""Of the site: its pages and what runs on them, its drawings, what is generated, and the built site in a real browser."""
