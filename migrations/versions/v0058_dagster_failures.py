"""What fails in Dagster."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0058"
down_revision = "0057"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0058_dagster_failures.sql").read_text())
