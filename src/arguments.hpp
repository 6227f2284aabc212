// Arguments of SQL functions, checked: every function reads all of its arguments
// through these before it does anything else.
#ifndef LEASE_ARGUMENTS_HPP
#define LEASE_ARGUMENTS_HPP

#include "core/tenure.hpp"

#include "server.hpp"

namespace lease {

// A name or an owner: 1 to 255 bytes. `what` names the argument in the message.
// Errors: 22004 if it is NULL, 22023 if it is empty or longer.
std::string_view text_argument(FunctionCallInfo fcinfo, int number, const char *what);

// A ttl: errors 22004, 22023 (zero, negative, infinite, months), 22008 (does not fit).
Usec ttl_argument(FunctionCallInfo fcinfo, int number);

// A keep, NULL for none: errors 22023 (negative, infinite, months), 22008.
std::optional<Usec> keep_argument(FunctionCallInfo fcinfo, int number);

// A wait or an idle time, which `what` names: errors 22004, 22023 (negative). Months count 30
// days; what is too long to count is for ever.
Usec wait_argument(FunctionCallInfo fcinfo, int number, const char *what);

// A token, NULL for any.
std::optional<std::int64_t> token_argument(FunctionCallInfo fcinfo, int number);

// A token that has to be there: error 22004.
std::int64_t required_token_argument(FunctionCallInfo fcinfo, int number);

// An array of names: errors 22004 if it is or contains NULL, 22023 as for a name.
struct Names {
    int count;
    std::string_view *names;
};
Names names_argument(FunctionCallInfo fcinfo, int number);

} // namespace lease

#endif
