"""What an answer means: empty ones count, texts are kept, and what people enter is judged by."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0031_what_answers_mean.sql").read_text())
