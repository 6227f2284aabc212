// The entry point of the stress tests: one program for all files of this directory.
#define BOOST_TEST_MODULE stress
#include <boost/test/unit_test.hpp>
