"""Routes for those who look."""
