// Rows for people, as a table, and for programs, as JSON.
#pragma once

#include "session.hpp"

#include <string>
#include <vector>

namespace leasectl {

enum class Kind {
    text,
    number,
    seconds, // a number in JSON, a duration for people
};

struct Column {
    const char *name = ""; // in JSON; in capitals above a table
    Kind kind = Kind::text;
    bool in_table = true;
};

std::string format_table(const std::vector<Column> &columns, const std::vector<Row> &rows);

// An array with an object a line.
std::string format_json(const std::vector<Column> &columns, const std::vector<Row> &rows);

std::string json_object(const std::vector<Column> &columns, const Row &row);

// Bytes that are no UTF-8 (an SQL_ASCII database has what it has) become U+FFFD.
std::string json_string(const std::string &text);

// To standard output, at once. Throws Failure(exit_output) where that takes nothing.
void print(const std::string &text);

} // namespace leasectl
