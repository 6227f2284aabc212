#include "environment.hpp"

#include "connection.hpp"

#include <unistd.h>

namespace leasectl {

std::vector<char *> environment_with(const std::vector<std::string> &added) {
    std::vector<char *> result;
    for (char **each = environ; *each != nullptr; each++) {
        const std::string assignment = *each;
        const std::string prefix = assignment.substr(0, assignment.find('=') + 1);
        bool replaced = is_own_variable(assignment);
        for (const std::string &one : added)
            replaced = replaced || one.rfind(prefix, 0) == 0;
        if (!replaced)
            result.push_back(*each);
    }
    for (const std::string &one : added)
        result.push_back(const_cast<char *>(one.c_str()));
    result.push_back(nullptr);
    return result;
}

} // namespace leasectl
