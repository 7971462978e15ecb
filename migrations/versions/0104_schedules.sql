-- A schedule that Dagster could not follow was taken, and vanished from it without a word. From now on
-- pricing.check_data_type refuses one. One that stands goes on standing, and `pricing-pipeline status` names it.
COMMENT ON COLUMN pricing.data_type_registry.refresh_schedule IS
    'Cron expression of a scheduled type, in schedule_timezone: five fields of numbers, names, *, ranges, steps and '
    'lists.';
