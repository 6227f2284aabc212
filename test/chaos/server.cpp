#include "server.hpp"

#include "telling.hpp"
#include "text.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <poll.h>
#include <sys/wait.h>

namespace chaos {

namespace {

using Result = std::unique_ptr<PGresult, void (*)(PGresult *)>;

std::string field(const PGresult *result, int code, const char *without) {
    const char *value = PQresultErrorField(result, code);
    return value != nullptr ? value : without;
}

Answer answer_of(PGresult *result, const PGconn *connection) {
    Answer answer;
    const ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        answer.state = field(result, PG_DIAG_SQLSTATE, "08006");
        answer.message =
            result != nullptr ? PQresultErrorMessage(result) : PQerrorMessage(connection);
        answer.lost = field(result, PG_DIAG_SEVERITY_NONLOCALIZED, "FATAL") != "ERROR" ||
                      PQstatus(connection) != CONNECTION_OK;
        return answer;
    }
    answer.tag = PQcmdStatus(result);
    for (int row = 0; row < PQntuples(result); row++) {
        auto &values = answer.rows.emplace_back();
        for (int column = 0; column < PQnfields(result); column++) {
            if (PQgetisnull(result, row, column) != 0)
                values.emplace_back();
            else
                values.emplace_back(PQgetvalue(result, row, column));
        }
    }
    return answer;
}

} // namespace

Session::Session(const std::string &options)
    : connection_(PQconnectdb((options + " connect_timeout=5").c_str()), PQfinish) {
    if (PQstatus(connection_.get()) != CONNECTION_OK)
        throw std::runtime_error(PQerrorMessage(connection_.get()));
    PQsetNoticeProcessor(
        connection_.get(), [](void *, const char *) {}, nullptr);
}

bool Session::wait_for_result() {
    const Usec until = now() + patience;
    while (PQisBusy(connection_.get()) != 0) {
        pollfd one = {PQsocket(connection_.get()), POLLIN, 0};
        const Usec left = until - now();
        if (left <= 0)
            return false;
        if (poll(&one, 1, static_cast<int>(left / millisecond) + 1) > 0 &&
            PQconsumeInput(connection_.get()) == 0)
            return true; // libpq will tell why
    }
    return true;
}

Answer Session::ask(const std::string &sql, const Parameters &parameters) {
    std::vector<const char *> values;
    values.reserve(parameters.size());
    for (const std::string &parameter : parameters)
        values.push_back(parameter.c_str());
    Result last(nullptr, PQclear);
    if (PQsendQueryParams(connection_.get(), sql.c_str(), static_cast<int>(values.size()), nullptr,
                          values.data(), nullptr, nullptr, 0) != 0)
        // An error at the commit of a statement comes after its rows.
        for (;;) {
            if (!wait_for_result())
                return {"08006", no_answer, true, "", {}};
            PGresult *next = PQgetResult(connection_.get());
            if (next == nullptr)
                break;
            last.reset(next);
        }
    return answer_of(last.get(), connection_.get());
}

Answer Session::must(const std::string &sql, const Parameters &parameters) {
    Answer answer = ask(sql, parameters);
    if (!answer.ok())
        throw std::runtime_error(sql + ": " + answer.message);
    return answer;
}

Session connect_patiently(const std::string &options) {
    const Usec until = now() + 30 * second;
    for (;;) {
        try {
            return Session(options);
        } catch (const std::runtime_error &) {
            if (now() > until)
                throw;
            sleep_for(20 * millisecond);
        }
    }
}

std::string shared_file() {
    return std::string(std::getenv("PGHOST")) + "/shared";
}

void crash_server() {
    const std::string data = std::getenv("PGDATA");
    pid_t postmaster = 0;
    // At once: pg_ctl would take its time.
    if (std::ifstream(data + "/postmaster.pid") >> postmaster)
        kill(postmaster, SIGQUIT);
    const std::string preload = std::filesystem::absolute("build/chaos/clock.so");
    const std::string ctl = text(std::getenv("BINDIR"), "/pg_ctl -s -w -D '", data, "' -l '",
                                 std::getenv("LEASE_LOG"), "'");
    const std::string command =
        text(ctl, " -m immediate stop 2>/dev/null; CHAOS_SHARED='", shared_file(), "' LD_PRELOAD='",
             preload, "' ", ctl, " start >/dev/null");
    if (std::system(command.c_str()) != 0)
        throw std::runtime_error("the server does not start again");
}

} // namespace chaos
