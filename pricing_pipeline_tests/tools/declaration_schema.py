"""Writes the JSON Schema of a provider's declaration from its models; `make pages` runs it."""

from __future__ import annotations

from pricing_pipeline.providers.declaration_file import SCHEMA, schema_text

if __name__ == "__main__":
    SCHEMA.write_text(schema_text())
