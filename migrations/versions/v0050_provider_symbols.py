"""A table of spellings that people have given."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0050"
down_revision = "0049"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0050_provider_symbols.sql").read_text())
