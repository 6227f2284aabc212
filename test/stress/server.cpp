#include "server.hpp"

#include <stdexcept>

namespace stress {

namespace {

using Result = std::unique_ptr<PGresult, void (*)(PGresult *)>;

Answer answer_of(PGresult *result, const PGconn *connection) {
    Answer answer;
    const ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
        answer.state = state != nullptr ? state : "08006";
        answer.message =
            result != nullptr ? PQresultErrorMessage(result) : PQerrorMessage(connection);
        return answer;
    }
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

Session::Session(const std::string &application)
    : connection_(PQconnectdb(("application_name=" + application).c_str()), PQfinish) {
    if (PQstatus(connection_.get()) != CONNECTION_OK)
        throw std::runtime_error(PQerrorMessage(connection_.get()));
    PQsetNoticeProcessor(
        connection_.get(), [](void *, const char *) {}, nullptr);
}

Answer Session::ask(const std::string &sql, const std::vector<std::string> &parameters) {
    std::vector<const char *> values;
    values.reserve(parameters.size());
    for (const std::string &parameter : parameters)
        values.push_back(parameter.c_str());
    const Result result(PQexecParams(connection_.get(), sql.c_str(),
                                     static_cast<int>(values.size()), nullptr, values.data(),
                                     nullptr, nullptr, 0),
                        PQclear);
    return answer_of(result.get(), connection_.get());
}

Answer Session::must(const std::string &sql, const std::vector<std::string> &parameters) {
    Answer answer = ask(sql, parameters);
    if (!answer.ok())
        throw std::runtime_error(sql + ": " + answer.message);
    return answer;
}

} // namespace stress
