"""A history changes its basis with its own provider."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0041"
down_revision = "0040"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0041_bases.sql").read_text())
