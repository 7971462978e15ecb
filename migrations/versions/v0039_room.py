"""What one provider cannot take delays no other."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0039"
down_revision = "0038"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0039_room.sql").read_text())
