// The scenario of `expected`, with JDBC: java -cp ... Jdbc NAME
import java.sql.*;
import java.util.List;

class Jdbc {
    interface Action { Object run() throws SQLException; }

    static String name, job, me, other;
    static Connection db;

    static void show(String what, Object value) { System.out.println(what + ": " + value); }

    // The first column of the first row; null if there is no row. Autocommit is JDBC's default.
    static Object one(String sql, Object... args) throws SQLException {
        try (PreparedStatement statement = sql.startsWith("{") ? db.prepareCall(sql) : db.prepareStatement(sql)) {
            for (int i = 0; i < args.length; i++)
                statement.setObject(i + 1, args[i]);
            try (ResultSet rows = statement.executeQuery()) {
                return rows.next() ? rows.getObject(1) : null;
            }
        }
    }

    static String sqlstate(Action action) {
        try {
            action.run();
            return "no error";
        } catch (SQLException error) {
            return error.getSQLState();
        }
    }

    // Writes in one transaction, behind the fence if there is a token.
    static Object write(Long token) throws SQLException {
        db.setAutoCommit(false);
        try {
            if (token != null)
                one("SELECT lease_fence(?, ?)", job, token);
            try (PreparedStatement insert = db.prepareStatement("INSERT INTO work_" + name + " (token) VALUES (?)")) {
                insert.setObject(1, token, Types.BIGINT);
                int rows = insert.executeUpdate();
                db.commit();
                return rows;
            }
        } catch (SQLException error) {
            db.rollback();
            throw error;
        } finally {
            db.setAutoCommit(true);
        }
    }

    // A warning belongs to the statement that it came with.
    static void releaseAgain(long token) throws SQLException {
        try (PreparedStatement statement = db.prepareStatement("SELECT lease_release(?, ?, token => ?)")) {
            statement.setString(1, job);
            statement.setString(2, me);
            statement.setLong(3, token);
            ResultSet rows = statement.executeQuery();
            rows.next();
            show("release again", rows.getBoolean(1));
            SQLWarning warning = statement.getWarnings();
            show("with a warning", warning != null && warning.getMessage().contains("is not held"));
        }
    }

    static void scenario() throws SQLException {
        show("try", one("SELECT lease_try(?, ?, ?::interval)", job, me, "30 s"));
        show("another's try", one("SELECT lease_try(?, ?, ?::interval)", job, other, "30 s"));
        Object halfAMinute = new org.postgresql.util.PGInterval(0, 0, 0, 0, 0, 30);
        show("renew", one("SELECT lease_renew(?, ?, ?)", job, me, halfAMinute));
        Long token = (Long) one("SELECT lease_token(?, ?)", job, me);
        show("token", token > 0);
        show("token and answer in one round trip", token.equals(
            one("SELECT lease_token(?, ?) WHERE lease_try(?, ?, ?::interval)", job, me, job, me, "30 s")));
        show("renew that tenure", one("SELECT lease_renew(?, ?, ?::interval, ?)", job, me, "30 s", token));
        int count = 0;
        while (count < 10 && (Boolean) one("SELECT lease_renew(?, ?, ?)", job, me, halfAMinute))
            count++;
        show("renew ten times", count);
        show("another's token", one("SELECT lease_token(?, ?)", job, other));
        show("write behind the fence", write(token));
        show("write without it", sqlstate(() -> write(null)));
        List<String> names = List.of("slot-" + name + "-1", "slot-" + name + "-2");
        Array slots = db.createArrayOf("text", names.toArray());
        show("a slot", names.contains(one("SELECT lease_try_any(?, ?, ?)", slots, me, halfAMinute)));
        one("SELECT lease_try(name, ?, ?) FROM unnest(?) AS name", me, halfAMinute, slots);
        Array renewed = (Array) one("SELECT lease_renew_all(?, ?, ?)", slots, me, halfAMinute);
        show("renew all", ((Object[]) renewed.getArray()).length);
        show("release", one("SELECT lease_release(?, ?)", job, me));
        releaseAgain(token);
        show("fence too late", sqlstate(() -> write(token)));
        show("no ttl", sqlstate(() -> one("SELECT lease_try(?, ?, ?::interval)", job, me, null)));
        Long later = (Long) one("CALL lease_acquire(?, ?, ?::interval)", job, me, "30 s");
        show("acquire", later > token);
        show("acquire in vain", one("{call lease_acquire(?, ?, ?, ?::interval)}", job, other, halfAMinute, "50 ms"));
        show("acquire in turn",
            (Long) one("CALL lease_acquire(?, ?, ?, ?)", "turn-" + name, me, halfAMinute, halfAMinute) > 0);
        show("watch in vain", later.equals(one("CALL lease_watch(?, ?, ?::interval)", job, later, "50 ms")));
        one("SELECT lease_release(?, ?)", job, me);
        show("watch", one("CALL lease_watch(?, ?, ?)", job, later, halfAMinute));
    }

    public static void main(String[] args) throws SQLException {
        name = args[0];
        job = "job-" + name;
        me = name + "-1";
        other = name + "-2";
        // JDBC knows TCP only, and none of libpq's variables.
        String url = String.format("jdbc:postgresql://%s:%s/%s?user=%s&escapeSyntaxCallMode=call", System.getenv("PGHOST"),
            System.getenv("PGPORT"), System.getenv("PGDATABASE"), System.getenv("PGUSER"));
        if (System.getenv("POOLED") != null)
            url += "&prepareThreshold=0"; // no prepared statements on a connection that others use, too
        try (Connection connection = DriverManager.getConnection(url)) {
            db = connection;
            scenario();
        }
    }
}
