"""The HTTP API: what applications in any language read and say, under `/v1`.

`app` puts it together, `access` knows who asks, `problems` words what is refused. Each other module has the routes of
one subject.
"""
