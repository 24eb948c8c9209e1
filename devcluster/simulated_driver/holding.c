/* An allocation of this process: what cuMemAlloc would be to a real driver.
 *
 * Used by the program simulated-alloc, and through `gpumem_simulated_hold` by a process that
 * wants to hold memory itself while it measures itself.
 */
#include "simulation.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_HELD 64

/* Ids, not descriptors: a forked child inherits this table but none of the locks. */
static struct {
    pid_t pid;
    char id[64];
} held[MAX_HELD];
static pthread_mutex_t held_guard = PTHREAD_MUTEX_INITIALIZER;

static bool note_held(const char *before, const char *after)
{
    bool noted = false;
    pthread_mutex_lock(&held_guard);
    for (unsigned i = 0; i < MAX_HELD && !noted; i++) {
        bool stale = held[i].pid != getpid();
        if (before[0] == '\0' ? (held[i].id[0] != '\0' && !stale) : strcmp(held[i].id, before) != 0)
            continue;
        held[i].pid = getpid();
        snprintf(held[i].id, sizeof held[i].id, "%s", after);
        noted = true;
    }
    pthread_mutex_unlock(&held_guard);
    return noted;
}

bool held_by_this_process(const char *id)
{
    bool found = false;
    pthread_mutex_lock(&held_guard);
    for (unsigned i = 0; i < MAX_HELD && !found; i++)
        found = held[i].pid == getpid() && strcmp(held[i].id, id) == 0;
    pthread_mutex_unlock(&held_guard);
    return found;
}

/* Field 22 of /proc/self/stat, in clock ticks since boot; the name before it may hold spaces. */
static unsigned long long own_start_time(void)
{
    unsigned long long start_time = 0;
    char *text = read_text("/proc/self/stat");
    char *after_name = text != NULL ? strrchr(text, ')') : NULL;
    if (after_name != NULL)
        sscanf(after_name + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
                               " %*s %*s %*s %llu", &start_time);
    free(text);
    return start_time;
}

/* A process in a cgroup namespace sees "/" only: whoever starts it may name its cgroup. */
static void own_cgroup(char *cgroup, size_t size)
{
    const char *given = getenv("SIMULATED_NVIDIA_CGROUP");
    char *text = given == NULL ? read_text("/proc/self/cgroup") : NULL;
    const char *line = text != NULL ? strstr(text, "0::") : NULL;
    cgroup[0] = '\0';
    if (given != NULL)
        snprintf(cgroup, size, "%s", given);
    else if (line != NULL)
        snprintf(cgroup, size, "/sys/fs/cgroup%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    free(text);
}

/* One process at a time checks what is free and takes it, so that cards are never overfilled. */
static int enter_gate(void)
{
    char path[PATH_MAX];
    if (!state_path(path, sizeof path, "allocations", ".gate"))
        return -1;
    int gate = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (gate < 0)
        return -1;
    fchmod(gate, 0666); /* fails for whoever did not create it, and then it is right already */
    if (flock(gate, LOCK_EX) == 0)
        return gate;
    close(gate);
    return -1;
}

static bool write_record(const struct holding *holding)
{
    char name[80], path[PATH_MAX], cgroup[512], text[1024];
    own_cgroup(cgroup, sizeof cgroup);
    snprintf(text, sizeof text,
             "allocation\tuuid=%s\tkind=%s\tbytes=%llu\tmanaged_bytes=%llu\tpid_namespace=%llu"
             "\tpid=%ld\tstart_time=%llu\tcgroup=%s\n",
             holding->uuid, kind_text(holding->kind), (unsigned long long)holding->bytes,
             (unsigned long long)holding->managed_bytes, (unsigned long long)own_pid_namespace(),
             (long)getpid(), own_start_time(), cgroup);
    snprintf(name, sizeof name, "%s.record", holding->id);
    return state_path(path, sizeof path, "allocations", name) && write_text(path, text);
}

static bool take_lock(struct holding *holding)
{
    static unsigned counter;
    char name[80], path[PATH_MAX];
    snprintf(holding->id, sizeof holding->id, "%llu-%ld-%llu-%u",
             (unsigned long long)own_pid_namespace(), (long)getpid(), own_start_time(), counter++);
    snprintf(name, sizeof name, "%s.lock", holding->id);
    if (!state_path(path, sizeof path, "allocations", name))
        return false;
    holding->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (holding->lock >= 0 && fchmod(holding->lock, 0644) == 0 &&
        fcntl(holding->lock, F_SETLK, &lock) == 0 && note_held("", holding->id))
        return true;
    if (holding->lock >= 0)
        close(holding->lock);
    unlink(path);
    return false;
}

static uint64_t used_inside(const struct records *records, const char *uuid, const char *cgroup)
{
    uint64_t used = 0;
    for (size_t i = 0; i < records->count; i++)
        if (strcmp(records->items[i].uuid, uuid) == 0 &&
            inside_cgroup(records->items[i].cgroup, cgroup))
            used += records->items[i].bytes;
    return used;
}

/* What the card has left for this allocation; one that is resized may keep what it has. */
static uint64_t free_on_card(const struct holding *holding, const struct records *records,
                             struct target target)
{
    uint64_t total =
        target.instance != NULL ? target.instance->total_bytes : target.device->total_bytes;
    uint64_t taken =
        target.instance != NULL ? target.instance->reserved_bytes : target.device->reserved_bytes;
    taken += used_bytes(records, target) - holding->bytes - holding->managed_bytes;
    return taken < total ? total - taken : 0;
}

static uint64_t free_in_cgroup(const struct holding *holding, const struct records *records)
{
    char cgroup[512];
    struct limit limit;
    own_cgroup(cgroup, sizeof cgroup);
    if (!find_limit(holding->uuid, cgroup, &limit))
        return NVML_DEVICE_MEMORY_LIMIT_MAX;
    uint64_t used = used_inside(records, holding->uuid, limit.cgroup) - holding->bytes;
    return used < limit.hard ? limit.hard - used : 0;
}

static enum holding_result check_room(struct holding *holding, struct target target,
                                      uint64_t bytes, uint64_t managed_bytes)
{
    struct records records;
    if (!read_records(&records))
        return STATE_UNUSABLE;
    uint64_t on_card = free_on_card(holding, &records, target);
    uint64_t in_cgroup = free_in_cgroup(holding, &records);
    free_records(&records);
    holding->free_bytes = on_card < in_cgroup ? on_card : in_cgroup;
    if (bytes > on_card || managed_bytes > on_card - bytes)
        return OUT_OF_MEMORY;
    return bytes > in_cgroup ? OVER_CGROUP_LIMIT : HELD;
}

static bool choose_target(const struct driver *driver, const char *gpu, struct target *target)
{
    char *end;
    unsigned long index = strtoul(gpu, &end, 10);
    if (end != gpu && *end == '\0' && index < driver->device_count)
        *target = (struct target){&driver->devices[index], NULL};
    else if (!find_target(driver, gpu, target))
        return false;
    /* With MIG on, CUDA runs on an instance only. */
    return target->instance != NULL || !target->device->mig_enabled;
}

enum holding_result hold(struct holding *holding, const char *gpu, enum kind kind, uint64_t bytes,
                         uint64_t managed_bytes)
{
    struct driver *driver = malloc(sizeof *driver);
    struct target target;
    memset(holding, 0, sizeof *holding);
    holding->lock = -1;
    holding->kind = kind;
    int gate = driver != NULL && load_driver(driver) ? enter_gate() : -1;
    enum holding_result result = STATE_UNUSABLE;
    if (gate >= 0 && !choose_target(driver, gpu, &target)) {
        result = NO_SUCH_DEVICE;
    } else if (gate >= 0) {
        snprintf(holding->uuid, sizeof holding->uuid, "%s",
                 target.instance != NULL ? target.instance->uuid : target.device->uuid);
        remove_dead_records();
        result = check_room(holding, target, bytes, managed_bytes);
        holding->bytes = bytes;
        holding->managed_bytes = managed_bytes;
        if (result == HELD && !(take_lock(holding) && write_record(holding)))
            result = STATE_UNUSABLE;
    }
    if (gate >= 0)
        close(gate);
    free(driver);
    return result;
}

enum holding_result resize(struct holding *holding, uint64_t bytes, uint64_t managed_bytes)
{
    struct driver *driver = malloc(sizeof *driver);
    struct target target;
    int gate = driver != NULL && load_driver(driver) ? enter_gate() : -1;
    enum holding_result result = STATE_UNUSABLE;
    if (gate >= 0 && !find_target(driver, holding->uuid, &target))
        result = NO_SUCH_DEVICE;
    else if (gate >= 0)
        result = check_room(holding, target, bytes, managed_bytes);
    if (result == HELD) {
        holding->bytes = bytes;
        holding->managed_bytes = managed_bytes;
        result = write_record(holding) ? HELD : STATE_UNUSABLE;
    }
    if (gate >= 0)
        close(gate);
    free(driver);
    return result;
}

void release(struct holding *holding)
{
    if (holding->lock < 0)
        return;
    remove_record(holding->id);
    note_held(holding->id, "");
    close(holding->lock);
    holding->lock = -1;
}
