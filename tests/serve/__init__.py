"""The service, over a real socket where that is the point and by its ASGI app where it is not."""
