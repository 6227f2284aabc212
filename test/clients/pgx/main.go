// The scenario of `expected`, with pgx: pgx NAME
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgconn"
	"github.com/jackc/pgx/v4"
)

var (
	ctx            = context.Background()
	name           = os.Args[1]
	job, me, other = "job-" + name, name + "-1", name + "-2"
	warnings       string
	db             *pgx.Conn
)

func show(what string, value interface{}) { fmt.Printf("%s: %v\n", what, value) }

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// The first column of the first row goes to result. Outside of Begin each statement is a
// transaction of its own.
func get(result interface{}, sql string, args ...interface{}) error {
	return db.QueryRow(ctx, sql, args...).Scan(result)
}

func truth(sql string, args ...interface{}) (answer bool) {
	must(get(&answer, sql, args...))
	return
}

// A token; nil if it is NULL.
func token(sql string, args ...interface{}) (answer *int64) {
	must(get(&answer, sql, args...))
	return
}

func orNull(token *int64) string {
	if token == nil {
		return "null"
	}
	return fmt.Sprint(*token)
}

func sqlstate(err error) string {
	var failure *pgconn.PgError
	if errors.As(err, &failure) {
		return failure.Code
	}
	return fmt.Sprint(err)
}

// Writes in one transaction, behind the fence if there is a token.
func write(token *int64) (rows int64, err error) {
	err = db.BeginFunc(ctx, func(tx pgx.Tx) error {
		if token != nil {
			if _, err := tx.Exec(ctx, "SELECT lease_fence($1, $2)", job, token); err != nil {
				return err
			}
		}
		tag, err := tx.Exec(ctx, "INSERT INTO work_"+name+" (token) VALUES ($1)", token)
		rows = tag.RowsAffected()
		return err
	})
	return
}

func scenario() {
	show("try", truth("SELECT lease_try($1, $2, $3)", job, me, "30 s"))
	show("another's try", truth("SELECT lease_try($1, $2, $3)", job, other, "30 s"))
	show("renew", truth("SELECT lease_renew($1, $2, $3)", job, me, 30*time.Second))
	first := token("SELECT lease_token($1, $2)", job, me)
	show("token", *first > 0)
	again := token("SELECT lease_token($1, $2) WHERE lease_try($1, $2, $3)", job, me, "30 s")
	show("token and answer in one round trip", *again == *first)
	show("renew that tenure", truth("SELECT lease_renew($1, $2, $3, $4)", job, me, "30 s", first))
	count := 0
	for count < 10 && truth("SELECT lease_renew($1, $2, $3)", job, me, "30 s") {
		count++
	}
	show("renew ten times", count)
	show("another's token", orNull(token("SELECT lease_token($1, $2)", job, other)))
	rows, err := write(first)
	must(err)
	show("write behind the fence", rows)
	_, err = write(nil)
	show("write without it", sqlstate(err))

	slots := []string{"slot-" + name + "-1", "slot-" + name + "-2"}
	var slot string
	must(get(&slot, "SELECT lease_try_any($1, $2, $3)", slots, me, 30*time.Second))
	show("a slot", slot == slots[0] || slot == slots[1])
	for _, slot := range slots {
		truth("SELECT lease_try($1, $2, $3)", slot, me, "30 s")
	}
	var renewed []string
	must(get(&renewed, "SELECT lease_renew_all($1, $2, $3)", slots, me, "30 s"))
	show("renew all", len(renewed))

	show("release", truth("SELECT lease_release($1, $2)", job, me))
	warnings = ""
	show("release again", truth("SELECT lease_release($1, $2, token => $3)", job, me, first))
	show("with a warning", strings.Contains(warnings, "is not held"))
	_, err = write(first)
	show("fence too late", sqlstate(err))
	var none bool
	show("no ttl", sqlstate(get(&none, "SELECT lease_try($1, $2, $3)", job, me, nil)))

	later := token("CALL lease_acquire($1, $2, $3)", job, me, "30 s")
	show("acquire", *later > *first)
	show("acquire in vain", orNull(token("CALL lease_acquire($1, $2, $3, $4)", job, other, "30 s", "50 ms")))
	turn := token("CALL lease_acquire($1, $2, $3, $4)", "turn-"+name, me, 30*time.Second, "30 s")
	show("acquire in turn", *turn > 0)
	show("watch in vain", *token("CALL lease_watch($1, $2, $3)", job, later, "50 ms") == *later)
	truth("SELECT lease_release($1, $2)", job, me)
	show("watch", orNull(token("CALL lease_watch($1, $2, $3)", job, later, "30 s")))
}

func main() {
	settings := "" // server, user and database are in PGHOST, PGPORT...
	if os.Getenv("POOLED") != "" {
		settings = "statement_cache_mode=describe" // no prepared statements on a connection that others use, too
	}
	config, err := pgx.ParseConfig(settings)
	must(err)
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) { warnings += notice.Message }
	db, err = pgx.ConnectConfig(ctx, config)
	must(err)
	defer db.Close(ctx)
	scenario()
}
