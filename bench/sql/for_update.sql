BEGIN;
SELECT lock_until, locked_by FROM shedlock WHERE name = 'held' FOR UPDATE;
COMMIT;
