"""The column of demand that says until when a pair backs off is named so."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0047"
down_revision = "0046"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0047_words.sql").read_text())
