/* Lets a process hold memory of a SIMULATED card itself, through ctypes: what a framework's
 * allocator would be, for tests of code that measures the process it runs in.
 */
#include "simulation.h"

#include <stdlib.h>

/* NULL when the memory cannot be had; otherwise for gpumem_simulated_release. */
EXPORTED void *gpumem_simulated_hold(const char *gpu, const char *kind, uint64_t bytes,
                                     uint64_t managed_bytes)
{
    struct holding *holding = malloc(sizeof *holding);
    if (holding == NULL || hold(holding, gpu, parse_kind(kind), bytes, managed_bytes) == HELD)
        return holding;
    free(holding);
    return NULL;
}

/* 1 when it holds the new amount, 0 when it still holds the old one. */
EXPORTED int gpumem_simulated_resize(void *holding, uint64_t bytes, uint64_t managed_bytes)
{
    return resize(holding, bytes, managed_bytes) == HELD;
}

EXPORTED void gpumem_simulated_release(void *holding)
{
    release(holding);
    free(holding);
}
