"""A separate HTTP server that speaks the providers' real dialects, so that the real clients run against it.

It serves plausible prices (real ones where we have them), enforces a plan's limits with the providers' own refusals,
injects faults on request, and keeps the log of calls that tests audit. Nothing else in the project may import its
prices: the pipeline has to fetch them over HTTP.
"""
