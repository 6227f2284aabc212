// A connection that is used without ever blocking: opened, asked one thing at a time, and dropped
// when it does not answer. Invariant: advance() does what can be done now and returns.
#pragma once

#include "connection.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leasectl {

using Value = std::optional<std::string>; // SQL NULL: nothing
using Row = std::vector<Value>;

struct Answer {
    bool fine = false;
    bool disconnected = false; // then the session is closed
    Usec in_vain = 0;          // disconnected because for so long no answer came
    std::string sqlstate;
    std::string error; // a line
    std::vector<Row> rows;

    bool is_true() const { return fine && rows.size() == 1 && rows[0][0] == "t"; }
    // The request itself is wrong (class 22: a name too long, a TTL above the limit).
    bool is_callers_fault() const { return sqlstate.compare(0, 2, "22") == 0; }
};

class Session {
public:
    enum class State { closed, opening, idle, busy };

    // Without the extension, opening fails, unless it is not needed. A server that was reached
    // has to answer what opening asks for within `patience`.
    Session(ConnectionOptions &options, Usec patience, bool needs_extension = true);
    ~Session();
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

    State state() const { return state_; }
    bool may_ask_password() const { return may_ask_password_; }

    void open();
    void close(); // from any state, at once; the server's work is cancelled
    void cancel_request();

    // A statement with parameters; the schema of the extension takes the place of the @ in "@.".
    // Without an answer by that instant the session is lost.
    void send(const std::string &sql, const std::vector<Value> &parameters, Usec answer_by);

    // The answer to what was sent, or why the session could not be opened or was lost.
    std::optional<Answer> advance();

    // What to wait for before the next advance(): the descriptor, or that instant.
    pollfd wanted() const;
    Usec due() const { return answer_by_; }

private:
    std::optional<Answer> connected(PGconn *made);
    std::optional<Answer> looked_up(const Answer &schema);
    std::optional<Answer> collect();
    Answer lost();
    Answer unanswered();
    void transmit(const std::string &sql, const std::vector<Value> &parameters, Usec answer_by);

    ConnectionOptions &options_;
    Usec patience_;
    bool needs_extension_;
    State state_ = State::closed;
    bool may_ask_password_ = false;
    std::optional<Dialing> dialing_;
    PGconn *connection_ = nullptr;
    std::string schema_; // quoted
    Answer pending_;
    bool has_pending_ = false;
    Usec asked_at_ = 0;
    Usec answer_by_ = never;
    bool flushed_ = true;
    bool broken_ = false; // a statement could not be sent
};

// The password is asked for if the server wants one and there is somebody to ask. True: open again.
bool supply_password(const Session &session, ConnectionOptions &options);

} // namespace leasectl
