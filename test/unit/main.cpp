// The entry point of the unit tests: one program for all files of this directory.
// Neither they nor src/core see a server header, so a core that is not pure does not compile here.
#define BOOST_TEST_MODULE lease
#include "unit.hpp"
