"""The scenario of `expected`, with psycopg 2 or 3: dbapi.py NAME 2|3."""
import datetime
import importlib
import os
import sys

NAME, VERSION = sys.argv[1:]
JOB, ME, OTHER = f"job-{NAME}", f"{NAME}-1", f"{NAME}-2"

psycopg = importlib.import_module({"2": "psycopg2", "3": "psycopg"}[VERSION])
# Server, user and database are in PGHOST, PGPORT...
db = psycopg.connect("")
# Each statement is a transaction of its own: a CALL that waits needs that.
db.autocommit = True
warnings = []
if VERSION == "3":
    db.add_notice_handler(lambda notice: warnings.append(notice.message_primary))
    if os.environ.get("POOLED"):
        db.prepare_threshold = None  # no prepared statements on a connection that others use, too
else:
    warnings = db.notices


def one(sql, *args):
    """The first column of the first row; None if there is no row."""
    cursor = db.cursor()
    cursor.execute(sql, args)
    row = cursor.fetchone()
    return row and row[0]


def sqlstate(action):
    try:
        action()
    except psycopg.Error as error:
        return error.pgcode if VERSION == "2" else error.sqlstate
    return "no error"


def show(what, value):
    print(what + ":", "null" if value is None else str(value).lower() if isinstance(value, bool) else value)


def write(token):
    """Writes in one transaction, behind the fence if there is a token."""
    cursor = db.cursor()
    cursor.execute("BEGIN")
    try:
        if token:
            cursor.execute("SELECT lease_fence(%s, %s)", (JOB, token))
        cursor.execute(f"INSERT INTO work_{NAME} (token) VALUES (%s)", (token,))
        rows = cursor.rowcount
    except psycopg.Error:
        cursor.execute("ROLLBACK")
        raise
    cursor.execute("COMMIT")
    return rows


half_a_minute = datetime.timedelta(seconds=30)

show("try", one("SELECT lease_try(%s, %s, %s)", JOB, ME, "30 s"))
show("another's try", one("SELECT lease_try(%s, %s, %s)", JOB, OTHER, "30 s"))
show("renew", one("SELECT lease_renew(%s, %s, %s)", JOB, ME, half_a_minute))
token = one("SELECT lease_token(%s, %s)", JOB, ME)
show("token", token > 0)
show("token and answer in one round trip",
     one("SELECT lease_token(%s, %s) WHERE lease_try(%s, %s, %s)", JOB, ME, JOB, ME, "30 s") == token)
show("renew that tenure", one("SELECT lease_renew(%s, %s, %s, %s)", JOB, ME, "30 s", token))
show("renew ten times", sum(one("SELECT lease_renew(%s, %s, %s)", JOB, ME, "30 s") for _ in range(10)))
show("another's token", one("SELECT lease_token(%s, %s)", JOB, OTHER))
show("write behind the fence", write(token))
show("write without it", sqlstate(lambda: write(None)))
slots = [f"slot-{NAME}-1", f"slot-{NAME}-2"]
show("a slot", one("SELECT lease_try_any(%s, %s, %s)", slots, ME, half_a_minute) in slots)
one("SELECT lease_try(name, %s, %s) FROM unnest(%s::text[]) AS name", ME, "30 s", slots)
show("renew all", len(one("SELECT lease_renew_all(%s, %s, %s)", slots, ME, half_a_minute)))
show("release", one("SELECT lease_release(%s, %s)", JOB, ME))
warnings.clear()
show("release again", one("SELECT lease_release(%s, %s, token => %s)", JOB, ME, token))
show("with a warning", "is not held" in "".join(warnings))
show("fence too late", sqlstate(lambda: write(token)))
show("no ttl", sqlstate(lambda: one("SELECT lease_try(%s, %s, %s)", JOB, ME, None)))
later = one("CALL lease_acquire(%s, %s, %s)", JOB, ME, "30 s")
show("acquire", later > token)
show("acquire in vain", one("CALL lease_acquire(%s, %s, %s, %s)", JOB, OTHER, "30 s", "50 ms"))
show("acquire in turn", one("CALL lease_acquire(%s, %s, %s, %s)", f"turn-{NAME}", ME, half_a_minute, half_a_minute) > 0)
show("watch in vain", one("CALL lease_watch(%s, %s, %s)", JOB, later, "50 ms") == later)
one("SELECT lease_release(%s, %s)", JOB, ME)
show("watch", one("CALL lease_watch(%s, %s, %s)", JOB, later, half_a_minute))
