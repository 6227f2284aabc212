#include "output.hpp"

#include "duration.hpp"
#include "exit_status.hpp"
#include "log.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>

namespace leasectl {

namespace {

// Length of the UTF-8 sequence at this place, 0 if it is none.
std::size_t sequence_length(const std::string &text, std::size_t at) {
    const auto byte = [&](std::size_t i) {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
    };
    const unsigned first = byte(at);
    if (first < 0x80)
        return 1;
    const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    for (std::size_t i = 1; i < length; i++)
        if ((byte(at + i) & 0xc0U) != 0x80)
            return 0;
    const unsigned next = byte(at + 1);
    const bool overlong = (first == 0xe0 && next < 0xa0) || (first == 0xf0 && next < 0x90);
    const bool too_far = (first == 0xed && next >= 0xa0) || (first == 0xf4 && next >= 0x90);
    return overlong || too_far ? 0 : length;
}

// Columns that a terminal gives it: wide and combining characters as the locale knows them.
std::size_t width(const std::string &text) {
    std::mbstate_t state = {};
    std::size_t total = 0;
    for (std::size_t at = 0; at < text.size();) {
        wchar_t wide = 0;
        const std::size_t length = std::mbrtowc(&wide, &text[at], text.size() - at, &state);
        if (length == 0 || length > text.size() - at) {
            // Not in this locale: count UTF-8 by its first bytes.
            total += (static_cast<unsigned char>(text[at]) & 0xc0U) != 0x80 ? 1 : 0;
            state = {};
            at++;
            continue;
        }
        total += static_cast<std::size_t>(std::max(wcwidth(wide), 0));
        at += length;
    }
    return total;
}

std::string heading(const char *name) {
    std::string text = name;
    for (char &each : text)
        each =
            each == '_' ? ' ' : static_cast<char>(std::toupper(static_cast<unsigned char>(each)));
    return text;
}

std::string cell(const Column &column, const Value &value) {
    if (!value)
        return "-";
    if (column.kind == Kind::seconds)
        return format_duration(static_cast<Usec>(std::strtod(value->c_str(), nullptr) * second));
    return printable(*value);
}

std::string format_line(const std::vector<std::string> &cells,
                        const std::vector<std::size_t> &widths, const std::vector<bool> &right) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); i++) {
        const std::string blanks(widths[i] - std::min(width(cells[i]), widths[i]), ' ');
        line += right[i] ? blanks + cells[i] : cells[i] + blanks;
        line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line + "\n";
}

} // namespace

std::string format_table(const std::vector<Column> &columns, const std::vector<Row> &rows) {
    std::vector<std::vector<std::string>> lines(rows.size() + 1);
    std::vector<std::size_t> widths;
    std::vector<bool> right;
    for (std::size_t c = 0; c < columns.size(); c++) {
        if (!columns[c].in_table)
            continue;
        lines[0].push_back(heading(columns[c].name));
        for (std::size_t r = 0; r < rows.size(); r++)
            lines[r + 1].push_back(cell(columns[c], rows[r][c]));
        std::size_t widest = 0;
        for (const auto &line : lines)
            widest = std::max(widest, width(line.back()));
        widths.push_back(widest);
        right.push_back(columns[c].kind != Kind::text);
    }
    std::string table;
    for (const auto &line : lines)
        table += format_line(line, widths, right);
    return table;
}

std::string json_string(const std::string &text) {
    std::string out = "\"";
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = sequence_length(text, at);
        const auto byte = static_cast<unsigned char>(text[at]);
        char escaped[8];
        if (length == 0) {
            out += "\xef\xbf\xbd";
        } else if (byte < 0x20 || byte == 0x7f) {
            std::snprintf(escaped, sizeof escaped, "\\u%04x", byte);
            out += escaped;
        } else {
            if (byte == '"' || byte == '\\')
                out += '\\';
            out.append(text, at, length);
        }
        at += std::max<std::size_t>(length, 1);
    }
    return out + "\"";
}

std::string json_object(const std::vector<Column> &columns, const Row &row) {
    std::string object = "{";
    for (std::size_t i = 0; i < columns.size(); i++) {
        object += i > 0 ? ", " : "";
        object += json_string(columns[i].name) + ": ";
        if (!row[i])
            object += "null";
        else
            object += columns[i].kind == Kind::text ? json_string(*row[i]) : *row[i];
    }
    return object + "}";
}

std::string format_json(const std::vector<Column> &columns, const std::vector<Row> &rows) {
    std::string array = "[";
    for (std::size_t i = 0; i < rows.size(); i++)
        array += (i > 0 ? ",\n " : "\n ") + json_object(columns, rows[i]);
    return array + (rows.empty() ? "]\n" : "\n]\n");
}

void print(const std::string &text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
        throw Failure(exit_output,
                      std::string("could not write the output: ") + std::strerror(errno));
}

} // namespace leasectl
