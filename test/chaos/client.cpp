#include "client.hpp"

#include "caller.hpp"
#include "text.hpp"

namespace chaos {

namespace {

class Client {
public:
    Client(const Plan &plan, Shared &shared, const Teller &teller, int life)
        : plan_(plan), shared_(shared), watches_(teller.client() < plan.watchers),
          dice_(plan.seed, life), caller_(plan, teller, shared, dice_) {}

    [[noreturn]] void live() {
        for (Phase before = shared_.phase;;) {
            const Phase phase = shared_.phase;
            // What was attached goes on for as long as its session.
            if (caller_.lost() || watches_ || phase != before || dice_.one_in(200))
                caller_.connect();
            before = phase;
            if (watches_)
                caller_.watch(lease(), 0);
            else if (phase == Phase::chaos)
                live_dangerously();
            else
                live_calmly();
        }
    }

private:
    int lease() { return static_cast<int>(dice_.between(0, plan_.leases - 1)); }
    std::vector<int> some_leases() { return {lease(), lease(), lease()}; }
    // A few are long, so that not everything ends by itself.
    Usec ttl() {
        return dice_.between(plan_.shortest_ttl, plan_.longest_ttl) * (dice_.one_in(10) ? 5 : 1);
    }
    void think(Usec most) { sleep_for(dice_.between(0, most)); }

    // Waits and hand-overs, and losing tries beside them.
    void live_calmly() {
        const int which = lease();
        if (dice_.one_in(3)) {
            if (caller_.acquire(which, 3 * second, 2 * second) == Outcome::yes) {
                think(5 * millisecond);
                write_block(which);
                caller_.release(which, true);
            }
            return;
        }
        for (int i = 0; i < 5; i++) {
            if (caller_.try_lease(which, ttl()) == Outcome::yes)
                caller_.release(which, true);
            think(3 * millisecond);
        }
        if (dice_.one_in(10))
            losing_block(which);
    }

    void live_dangerously() {
        switch (plan_.habit) {
        case Habit::everything:
            live_at_random();
            break;
        case Habit::duel:
            duel(lease());
            break;
        case Habit::renew:
            renew_on_and_on(lease());
        }
        think(5 * millisecond);
    }

    void duel(int which) {
        if (dice_.one_in(3))
            open_grant(which);
        else
            write_block(which);
    }

    void renew_on_and_on(int which) {
        bool holds = caller_.try_lease(which, plan_.longest_ttl) == Outcome::yes;
        for (int renewals = 0; holds && renewals < 500; renewals++)
            holds = caller_.renew(which, plan_.longest_ttl, true) == Outcome::yes;
    }

    void live_at_random() {
        switch (dice_.between(1, 10)) {
        case 1:
        case 2:
        case 3:
            whole_tenure(lease());
            break;
        case 4:
        case 5:
            block();
            break;
        case 6:
            losing_block(lease());
            break;
        case 7:
            open_grant(lease());
            break;
        default:
            call();
        }
    }

    // As a holder does that does not look whether it still holds the lease.
    void whole_tenure(int which) {
        const bool taken =
            (dice_.one_in(2) ? caller_.try_lease(which, ttl())
                             : caller_.acquire(which, ttl(), 200 * millisecond)) == Outcome::yes;
        if (!taken)
            return;
        if (dice_.one_in(8))
            caller_.attach(which);
        for (int writes = static_cast<int>(dice_.between(1, 4)); writes > 0; writes--) {
            if (caller_.lost())
                return;
            write_block(which);
            if (dice_.one_in(3))
                caller_.renew(which, ttl(), dice_.one_in(2));
            think(10 * millisecond);
        }
        if (dice_.one_in(3)) // it forgets, and the lease ends by itself
            return;
        if (dice_.one_in(2))
            caller_.release(which, dice_.one_in(2));
        else
            caller_.release_and_keep(which, ttl());
    }

    void write_block(int which) {
        if (!caller_.begin())
            return;
        if (write(which))
            caller_.commit();
        else
            caller_.rollback();
    }

    // In a block. What it read counts from now on, so that a stop here makes it stale.
    bool write(int which) {
        if (caller_.token(which) == 0 || (plan_.fenced && caller_.fence(which) != Outcome::yes))
            return false;
        const std::int64_t before = caller_.read_register(which);
        think(dice_.one_in(10) ? plan_.longest_ttl : 4 * millisecond);
        return before >= 0 && caller_.write(which, before) == Outcome::yes;
    }

    // Keeps others out until its block ends, whatever the ttl says.
    void open_grant(int which) {
        if (!caller_.begin())
            return;
        const bool granted = caller_.try_lease(which, ttl()) == Outcome::yes;
        if (granted)
            think(plan_.longest_ttl / 2);
        if (granted && (dice_.one_in(2) || write(which)))
            caller_.commit();
        else
            caller_.rollback();
    }

    void losing_block(int which) {
        if (!caller_.begin())
            return;
        if (caller_.try_lease(which, ttl()) == Outcome::no)
            caller_.check_leftovers();
        caller_.rollback();
    }

    void block() {
        if (!caller_.begin())
            return;
        bool stands = true;
        for (int calls = static_cast<int>(dice_.between(1, 4)); calls > 0 && stands; calls--) {
            if (dice_.one_in(3))
                stands = caller_.savepoint();
            stands = stands && (dice_.one_in(3) ? write(lease()) : call());
            if (!caller_.lost() && (!stands || dice_.one_in(6)))
                stands = caller_.rollback_to_savepoint() || stands;
            think(5 * millisecond);
        }
        if (dice_.one_in(5))
            think(plan_.longest_ttl / 2);
        end_block(stands);
    }

    void end_block(bool stands) {
        if (!stands || dice_.one_in(6)) {
            caller_.rollback();
            return;
        }
        if (!dice_.one_in(5)) {
            caller_.commit();
            return;
        }
        if (!caller_.prepare())
            return;
        think(plan_.shortest_ttl * 2);
        caller_.end_prepared(!dice_.one_in(4));
    }

    // Any call; whether it came to an answer.
    bool call() {
        const int which = lease();
        switch (dice_.between(1, 13)) {
        case 1:
        case 2:
            return answered(caller_.try_lease(which, ttl()));
        case 3:
            return answered(caller_.try_any(some_leases(), ttl()));
        case 4:
        case 5:
            return answered(caller_.acquire(which, ttl(), dice_.between(0, second)));
        case 6:
            return answered(caller_.renew(which, ttl(), dice_.one_in(2)));
        case 7:
            return answered(caller_.renew_all(some_leases(), ttl()));
        case 8:
            return answered(caller_.release(which, dice_.one_in(2)));
        case 9:
            return answered(caller_.release_and_keep(which, ttl()));
        case 10:
            return answered(caller_.watch(which, dice_.between(0, second / 5)));
        case 11:
            return answered(caller_.attach(which));
        case 12:
            return caller_.detach(which);
        default:
            return answered(caller_.look(which));
        }
    }

    static bool answered(Outcome outcome) {
        return outcome == Outcome::yes || outcome == Outcome::no;
    }

    const Plan &plan_;
    Shared &shared_;
    bool watches_;
    Dice dice_;
    Caller caller_;
};

} // namespace

void make_tables(const Plan &plan) {
    Session session("application_name=chaos");
    session.must("DROP EXTENSION IF EXISTS lease CASCADE"); // the triggers of a run before
    session.must("CREATE EXTENSION lease");
    for (int lease = 0; lease < plan.leases; lease++) {
        session.must(text("DROP TABLE IF EXISTS register_", lease, ", writes_", lease));
        session.must(text("CREATE TABLE register_", lease, " (writes bigint NOT NULL)"));
        session.must(text("INSERT INTO register_", lease, " VALUES (0)"));
        session.must(text("CREATE TABLE writes_", lease,
                          " (number bigint, token bigint, "
                          "contender int, id bigint, before bigint)"));
        if (!plan.fenced)
            continue;
        for (const char *table : {"register_", "writes_"})
            session.must(text("CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON ", table,
                              lease, " FOR EACH ", lease % 2 == 0 ? "STATEMENT" : "ROW",
                              " EXECUTE FUNCTION lease_fenced('", name_of_lease(lease), "')"));
    }
}

std::vector<Write> read_writes(const Plan &plan) {
    Session session("application_name=chaos");
    std::vector<Write> writes;
    for (int lease = 0; lease < plan.leases; lease++) {
        const Answer answer =
            session.must(text("SELECT number, token, contender, id, before FROM writes_", lease));
        for (const auto &row : answer.rows)
            writes.push_back({lease, std::stoll(*row[0]), std::stoll(*row[1]), std::stoi(*row[2]),
                              std::stoll(*row[3]), std::stoll(*row[4])});
    }
    return writes;
}

void be_client(const Plan &plan, Shared &shared, const Teller &teller, int life) {
    Client(plan, shared, teller, life).live();
}

} // namespace chaos
