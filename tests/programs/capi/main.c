// Usage: battery PART
#include "check.h"

int main(int argc, char **argv) {
    CHECK(argc == 2);
    CHECK(shx_abi_version() == SHX_ABI_VERSION && shx_version()[0] != '\0');
    if (strcmp(argv[1], "nulls") == 0) {
        nulls();
    } else if (strncmp(argv[1], "host-", 5) == 0) {
        hosts(argv[1]);
    } else if (strncmp(argv[1], "refuse-", 7) == 0) {
        refusals(argv[1]);
    } else {
        objects(argv[1]);
    }
    printf("done %s\n", argv[1]);
    return 0;
}
