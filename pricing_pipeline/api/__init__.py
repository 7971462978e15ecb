"""The HTTP API: the routes under `/v1` for applications in any language, health, metrics and the operations page.

`app` assembles it, `guard` and `access` check each request and its token, `problems` answers errors. Most other modules
have the routes of one subject each.
"""
