// leasectl break: ends somebody else's tenure.
#include "inspect.hpp"

#include "client.hpp"
#include "exit_status.hpp"
#include "log.hpp"
#include "output.hpp"

namespace leasectl {

int break_lease(int argc, char **argv) {
    ConnectionOptions connection;
    const std::string name = parse_operands(argc, argv, connection_options(connection), 1).front();
    Client client(connection);
    client.connect();
    // It waits for transactions behind the fence, which the server names. Who gives up waiting
    // does not want it to happen later.
    client.cancel_by_signals();
    const std::vector<Row> rows = client.query("SELECT @.lease_break($1)", {name});
    const bool broken = rows[0][0] == "t";
    print(quoted(name) + (broken ? " is broken\n" : " was not held\n"));
    return broken ? exit_ok : exit_no;
}

} // namespace leasectl
