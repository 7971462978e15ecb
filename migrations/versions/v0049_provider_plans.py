"""A table of the plans in use."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0049"
down_revision = "0048"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0049_provider_plans.sql").read_text())
