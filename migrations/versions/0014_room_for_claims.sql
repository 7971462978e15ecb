-- Pages of the queue are left half empty.

-- Without room on its page an update goes into every index after all, and while a snapshot is held open no room comes free.
ALTER TABLE pricing.api_call_queue_live SET (fillfactor = 40);
