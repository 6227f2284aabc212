// The entry point of the chaos: one program for all files of this directory.
#define BOOST_TEST_MODULE chaos
#include <boost/test/unit_test.hpp>
