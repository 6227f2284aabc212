// How to reach the server: options as psql has them, and connections that are made beside the
// caller's work.
#pragma once

#include "options.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <libpq-fe.h>

namespace leasectl {

struct ConnectionOptions {
    std::optional<std::string> host;
    std::optional<std::string> port;
    std::optional<std::string> user;
    std::optional<std::string> dbname; // or a connection string
    std::optional<std::string> password;
    bool never_ask = false; // -w
    bool ask_first = false; // -W
};

// -h -p -U -d -w -W
std::vector<Option> connection_options(ConnectionOptions &options);

// Where the user said nothing about it, one host may take that long to answer. Once, at the start.
void default_connect_timeout(Usec timeout);

// Environment variables that are leasectl's own and not for the programs that it runs.
bool is_own_variable(const std::string &assignment);

// Asks for the password on the terminal; false if there is none.
bool ask_password(ConnectionOptions &options);

// A connection attempt in a thread of its own. libpq's blocking call is the only one that
// goes on to the next host when one is silent, and a name server can be silent, too: that may
// take as long as it likes there.
class Dialing {
public:
    explicit Dialing(const ConnectionOptions &options);
    ~Dialing(); // what is connected later is closed at once

    Dialing(const Dialing &) = delete;
    Dialing &operator=(const Dialing &) = delete;

    int fd() const;   // readable when the attempt is over
    PGconn *result(); // null while it goes on; the caller owns it

private:
    struct Shared;
    std::shared_ptr<Shared> shared_;
};

// Closes a connection in the background, and cancels what the server is doing for it.
void abandon(PGconn *connection);

// Asks the server, in the background, to cancel what it is doing for this connection.
void cancel(PGconn *connection);

// Background threads that still run: then the process must end by _exit.
bool anything_in_background();

} // namespace leasectl
