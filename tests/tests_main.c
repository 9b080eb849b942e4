/* For the programs of tests that have no main; see tests.h. */
#include "tests.h"

int main(void)
{
    return tests_run();
}
