// The server under test: connections by libpq, and its crashes. Where it is, the environment says.
#ifndef LEASE_CHAOS_SERVER_HPP
#define LEASE_CHAOS_SERVER_HPP

#include "moments.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <libpq-fe.h>

namespace chaos {

// The answer to one statement: rows of texts, or an SQLSTATE.
struct Answer {
    std::string state;   // "" if it succeeded
    std::string message; // of the error
    bool lost = false;   // the connection is of no use any more, and what was asked may be done
    std::string tag;     // what was done: "COMMIT", say
    std::vector<std::vector<std::optional<std::string>>> rows;

    bool ok() const { return state.empty(); }
    // The first value, which must be there.
    const std::string &value(std::size_t column = 0) const { return *rows.at(0).at(column); }
};

using Parameters = std::vector<std::string>;

class Session {
public:
    // `options` are those of libpq. Throws std::runtime_error if there is no server for it.
    explicit Session(const std::string &options);

    // Waits for the answer, but no longer than `patience`.
    Answer ask(const std::string &sql, const Parameters &parameters = {});
    // Throws std::runtime_error on an error.
    Answer must(const std::string &sql, const Parameters &parameters = {});

    static constexpr Usec patience = 20 * second;
    static constexpr const char *no_answer = "no answer"; // message, when that was over

private:
    bool wait_for_result();

    std::unique_ptr<PGconn, void (*)(PGconn *)> connection_;
};

// Tries until there is one, for half a minute at the most.
Session connect_patiently(const std::string &options);

// By what the server's clock can be set; see telling.hpp.
std::string shared_file();

// Stops the server as a power cut would, and starts it again; with the clock that can be set.
void crash_server();

} // namespace chaos

#endif
