// The scenario of `expected`, with lib/pq behind database/sql: pq NAME
package main

import (
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/lib/pq"
)

var (
	name           = os.Args[1]
	job, me, other = "job-" + name, name + "-1", name + "-2"
	warnings       string
	db             *sql.DB
)

func show(what string, value interface{}) { fmt.Printf("%s: %v\n", what, value) }

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// The first column of the first row goes to result. Outside of Begin each statement is a
// transaction of its own.
func get(result interface{}, query string, args ...interface{}) error {
	return db.QueryRow(query, args...).Scan(result)
}

func truth(query string, args ...interface{}) (answer bool) {
	must(get(&answer, query, args...))
	return
}

func token(query string, args ...interface{}) (answer sql.NullInt64) {
	must(get(&answer, query, args...))
	return
}

func orNull(token sql.NullInt64) string {
	if !token.Valid {
		return "null"
	}
	return fmt.Sprint(token.Int64)
}

func sqlstate(err error) string {
	var failure *pq.Error
	if errors.As(err, &failure) {
		return string(failure.Code)
	}
	return fmt.Sprint(err)
}

// Writes in one transaction, behind the fence if there is a token.
func write(token sql.NullInt64) (rows int64, err error) {
	tx, err := db.Begin()
	must(err)
	defer tx.Rollback() // nothing, after the commit
	if token.Valid {
		if _, err = tx.Exec("SELECT lease_fence($1, $2)", job, token); err != nil {
			return
		}
	}
	result, err := tx.Exec("INSERT INTO work_"+name+" (token) VALUES ($1)", token)
	if err != nil {
		return
	}
	rows, err = result.RowsAffected()
	must(err)
	return rows, tx.Commit()
}

func scenario() {
	show("try", truth("SELECT lease_try($1, $2, $3)", job, me, "30 s"))
	show("another's try", truth("SELECT lease_try($1, $2, $3)", job, other, "30 s"))
	show("renew", truth("SELECT lease_renew($1, $2, $3)", job, me, "30 s"))
	first := token("SELECT lease_token($1, $2)", job, me)
	show("token", first.Int64 > 0)
	again := token("SELECT lease_token($1, $2) WHERE lease_try($1, $2, $3)", job, me, "30 s")
	show("token and answer in one round trip", again == first)
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
	_, err = write(sql.NullInt64{})
	show("write without it", sqlstate(err))

	slots := []string{"slot-" + name + "-1", "slot-" + name + "-2"}
	var slot string
	must(get(&slot, "SELECT lease_try_any($1, $2, $3)", pq.Array(slots), me, "30 s"))
	show("a slot", slot == slots[0] || slot == slots[1])
	for _, slot := range slots {
		truth("SELECT lease_try($1, $2, $3)", slot, me, "30 s")
	}
	var renewed []string
	must(get(pq.Array(&renewed), "SELECT lease_renew_all($1, $2, $3)", pq.Array(slots), me, "30 s"))
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
	show("acquire", later.Int64 > first.Int64)
	show("acquire in vain", orNull(token("CALL lease_acquire($1, $2, $3, $4)", job, other, "30 s", "50 ms")))
	turn := token("CALL lease_acquire($1, $2, $3, $4)", "turn-"+name, me, "30 s", "30 s")
	show("acquire in turn", turn.Int64 > 0)
	show("watch in vain", token("CALL lease_watch($1, $2, $3)", job, later, "50 ms") == later)
	truth("SELECT lease_release($1, $2)", job, me)
	show("watch", orNull(token("CALL lease_watch($1, $2, $3)", job, later, "30 s")))
}

func main() {
	settings := "sslmode=disable" // server, user and database are in PGHOST, PGPORT...
	if os.Getenv("POOLED") != "" {
		settings += " binary_parameters=yes" // else a statement is prepared in one transaction and run in the next
	}
	connector, err := pq.NewConnector(settings)
	must(err)
	db = sql.OpenDB(pq.ConnectorWithNoticeHandler(connector, func(notice *pq.Error) { warnings += notice.Message }))
	defer db.Close()
	scenario()
}
