"""The operations page: whether the pipeline works, and buttons that repair it.

It shows what other modules measure and calls the routes of `/v1` for what people decide. It neither measures nor
decides anything itself.
"""
