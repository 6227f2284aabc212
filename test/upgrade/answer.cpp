// The function that the library of that version has besides.

#include "server.hpp"

extern "C" {
#pragma GCC visibility push(default)
PG_FUNCTION_INFO_V1(lease_answer);
#pragma GCC visibility pop
}

Datum lease_answer(PG_FUNCTION_ARGS) {
    PG_RETURN_INT32(42);
}
