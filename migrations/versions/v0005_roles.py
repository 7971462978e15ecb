"""Roles, grants and row-level protection."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0005_roles.sql").read_text())
