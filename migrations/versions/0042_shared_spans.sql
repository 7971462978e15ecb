-- A shared answer is read bar by bar, which takes ten times as long as reading the columns of one symbol's answer. Behind
-- three years of bars that outweighs the calls that are saved.
UPDATE pricing.provider_capabilities SET window_days_per_call = 2000
WHERE provider = 'twelvedata' AND fetcher = 'daily_bars' AND window_days_per_call = 6000;
