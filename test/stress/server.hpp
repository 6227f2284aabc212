// A connection to the server under test, by libpq; where it is, the environment says.
#ifndef LEASE_STRESS_SERVER_HPP
#define LEASE_STRESS_SERVER_HPP

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <libpq-fe.h>

namespace stress {

// The answer to one statement: rows of texts, or an SQLSTATE.
struct Answer {
    std::string state;   // "" if it succeeded; "08006" if the connection was lost
    std::string message; // of the error
    std::vector<std::vector<std::optional<std::string>>> rows;

    bool ok() const { return state.empty(); }
    // The first value, which must be there.
    const std::string &value(std::size_t column = 0) const { return *rows.at(0).at(column); }
};

class Session {
public:
    // Throws std::runtime_error if there is no server.
    explicit Session(const std::string &application);

    Answer ask(const std::string &sql, const std::vector<std::string> &parameters = {});
    // Throws std::runtime_error on an error.
    Answer must(const std::string &sql, const std::vector<std::string> &parameters = {});

private:
    std::unique_ptr<PGconn, void (*)(PGconn *)> connection_;
};

} // namespace stress

#endif
