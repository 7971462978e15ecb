"""When the parts of the pipeline last gave a sign of life, and how long tasks take."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0064"
down_revision = "0063"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0064_health.sql").read_text())
