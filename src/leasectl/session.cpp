#include "session.hpp"

#include "duration.hpp"
#include "log.hpp"

#include <utility>

namespace leasectl {

namespace {

// No operator or function here is looked up in search_path. An SQL_ASCII database has bytes of no
// encoding, which the server would refuse to send as UTF-8.
constexpr const char *schema_query =
    "SELECT pg_catalog.quote_ident(n.nspname),"
    " CASE WHEN pg_catalog.current_setting('server_encoding') OPERATOR(pg_catalog.=) 'SQL_ASCII'"
    " THEN pg_catalog.set_config('client_encoding', 'SQL_ASCII', false) END"
    " FROM pg_catalog.pg_extension AS e JOIN pg_catalog.pg_namespace AS n"
    " ON n.oid OPERATOR(pg_catalog.=) e.extnamespace"
    " WHERE e.extname OPERATOR(pg_catalog.=) 'lease'";

std::string one_line(const char *message) {
    std::string line(message != nullptr ? message : "");
    while (!line.empty() && line.back() == '\n')
        line.pop_back();
    // A line that begins with a tab goes on with the one before.
    for (std::size_t at = line.find('\n'); at != std::string::npos; at = line.find('\n'))
        line.compare(at, 2, "\n\t") == 0 ? line.replace(at, 2, " ") : line.replace(at, 1, "; ");
    return printable(line);
}

// Warnings (a release that came too late) and notices (whom a break waits for).
void tell_notice(void *, const PGresult *result) {
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
    std::string line = one_line(message);
    if (severity != nullptr && std::string(severity) == "WARNING")
        line = "warning: " + line;
    if (detail != nullptr)
        line += ": " + one_line(detail);
    say(line);
}

Answer read_result(const PGresult *result) {
    Answer answer;
    const ExecStatusType status = PQresultStatus(result);
    answer.fine = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
    if (!answer.fine) {
        const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
        const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
        const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
        answer.sqlstate = sqlstate != nullptr ? sqlstate : "";
        answer.error = one_line(message != nullptr ? message : PQresultErrorMessage(result));
        if (detail != nullptr)
            answer.error += ": " + one_line(detail);
    }
    for (int i = 0; i < PQntuples(result); i++) {
        Row row;
        for (int j = 0; j < PQnfields(result); j++) {
            if (PQgetisnull(result, i, j))
                row.emplace_back();
            else
                row.emplace_back(std::string(PQgetvalue(result, i, j),
                                             static_cast<std::size_t>(PQgetlength(result, i, j))));
        }
        answer.rows.push_back(std::move(row));
    }
    return answer;
}

} // namespace

Session::Session(ConnectionOptions &options, Usec patience, bool needs_extension)
    : options_(options), patience_(patience), needs_extension_(needs_extension) {}

Session::~Session() {
    close();
}

void Session::open() {
    close();
    may_ask_password_ = false;
    dialing_.emplace(options_);
    state_ = State::opening;
}

void Session::close() {
    dialing_.reset();
    if (connection_ != nullptr) {
        if (state_ == State::idle || PQstatus(connection_) != CONNECTION_OK)
            PQfinish(connection_);
        else
            abandon(connection_);
    }
    connection_ = nullptr;
    has_pending_ = false;
    broken_ = false;
    answer_by_ = never;
    state_ = State::closed;
}

void Session::cancel_request() {
    if (connection_ != nullptr && state_ == State::busy)
        cancel(connection_);
}

void Session::send(const std::string &sql, const std::vector<Value> &parameters, Usec answer_by) {
    std::string qualified = sql;
    for (std::size_t at = 0; (at = qualified.find("@.", at)) != std::string::npos;
         at += schema_.size())
        qualified.replace(at, 1, schema_);
    transmit(qualified, parameters, answer_by);
    state_ = State::busy;
}

void Session::transmit(const std::string &sql, const std::vector<Value> &parameters,
                       Usec answer_by) {
    std::vector<const char *> values;
    values.reserve(parameters.size());
    for (const Value &each : parameters)
        values.push_back(each ? each->c_str() : nullptr);
    has_pending_ = false;
    pending_ = Answer();
    asked_at_ = boot_now();
    answer_by_ = answer_by;
    // A failure is told by the next advance().
    broken_ = PQsendQueryParams(connection_, sql.c_str(), static_cast<int>(values.size()), nullptr,
                                values.data(), nullptr, nullptr, 0) == 0;
    flushed_ = broken_ || PQflush(connection_) == 0;
}

std::optional<Answer> Session::advance() {
    if (state_ == State::closed)
        return std::nullopt;
    if (dialing_) {
        PGconn *made = dialing_->result();
        if (made == nullptr)
            return std::nullopt;
        dialing_.reset();
        return connected(made);
    }
    if (!flushed_)
        flushed_ = PQflush(connection_) == 0;
    if (broken_ || PQconsumeInput(connection_) == 0 || PQstatus(connection_) != CONNECTION_OK)
        return lost();
    std::optional<Answer> answer = collect();
    if (!answer)
        return boot_now() < answer_by_ ? std::nullopt : std::optional<Answer>(unanswered());
    answer_by_ = never;
    if (state_ == State::opening)
        return looked_up(*answer);
    if (answer->sqlstate.compare(0, 3, "57P") == 0) { // the server goes away, or threw us out
        answer->disconnected = true;
        close();
    }
    return answer;
}

std::optional<Answer> Session::connected(PGconn *made) {
    connection_ = made;
    if (PQstatus(made) != CONNECTION_OK) {
        may_ask_password_ = PQconnectionNeedsPassword(made) == 1;
        return lost();
    }
    PQsetnonblocking(made, 1);
    PQsetNoticeReceiver(made, tell_notice, nullptr);
    transmit(schema_query, {}, boot_now() + patience_);
    return std::nullopt;
}

std::optional<Answer> Session::looked_up(const Answer &schema) {
    Answer failure = schema;
    if (schema.fine && (!schema.rows.empty() || !needs_extension_)) {
        schema_ = schema.rows.empty() ? "" : *schema.rows[0][0];
        state_ = State::idle;
        return std::nullopt;
    }
    if (schema.fine) {
        failure = Answer();
        failure.sqlstate = "42704"; // undefined_object
        failure.error = "the extension lease is not installed in database " +
                        quoted(PQdb(connection_)) + ": CREATE EXTENSION lease";
    }
    state_ = State::idle;
    close();
    failure.disconnected = true;
    failure.fine = false;
    return failure;
}

// An answer is complete when libpq says that no more results come.
std::optional<Answer> Session::collect() {
    while (PQisBusy(connection_) == 0) {
        PGresult *result = PQgetResult(connection_);
        if (result == nullptr) {
            if (!has_pending_)
                return std::nullopt; // nothing was asked
            has_pending_ = false;
            if (PQstatus(connection_) != CONNECTION_OK)
                return lost();
            if (state_ == State::busy)
                state_ = State::idle;
            return std::move(pending_);
        }
        if (!has_pending_ || pending_.fine)
            pending_ = read_result(result);
        has_pending_ = true;
        PQclear(result);
    }
    return std::nullopt;
}

Answer Session::unanswered() {
    Answer answer;
    answer.disconnected = true;
    answer.in_vain = boot_now() - asked_at_;
    answer.error = "no answer for " + format_duration(answer.in_vain);
    close();
    return answer;
}

Answer Session::lost() {
    Answer answer;
    answer.disconnected = true;
    answer.error = has_pending_ && !pending_.error.empty() ? pending_.error
                                                           : one_line(PQerrorMessage(connection_));
    state_ = State::idle; // nothing to cancel
    close();
    return answer;
}

pollfd Session::wanted() const {
    if (dialing_)
        return {dialing_->fd(), POLLIN, 0};
    if (connection_ == nullptr)
        return {-1, 0, 0};
    return {PQsocket(connection_), static_cast<short>(flushed_ ? POLLIN : POLLIN | POLLOUT), 0};
}

bool supply_password(const Session &session, ConnectionOptions &options) {
    return session.may_ask_password() && !options.never_ask && !options.password &&
           ask_password(options);
}

} // namespace leasectl
