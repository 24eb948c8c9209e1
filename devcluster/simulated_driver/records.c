/* The allocations of living processes, and the PID under which the caller may see each.
 *
 * An allocation is two files: `<id>.record` (one line, replaced by renaming) and `<id>.lock`, on
 * which its process holds a POSIX write lock for as long as it lives. Asking the kernel who holds
 * that lock (F_GETLK) answers three questions at once, across every container that shares the
 * folder, and needs no right to look into other processes:
 *   - nobody: the process is gone, however it died, and whatever has its PID now;
 *   - a PID: the holder's, translated by the kernel into the PID namespace of the caller;
 *   - PID 0: it lives, in a namespace that the caller cannot see.
 * This is what pid_vnr() does in NVIDIA's kernel module (and locks_translate_pid() in fs/locks.c).
 *
 * A process is never told about its own locks, and closing a descriptor of a file drops every
 * POSIX lock that the process has on it. So this process's own locks are not opened here.
 */
#include "simulation.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const KIND_TEXTS[] = {"compute", "graphics", "mps"};

enum kind parse_kind(const char *text)
{
    for (unsigned i = 0; i < 3; i++)
        if (strcmp(text, KIND_TEXTS[i]) == 0)
            return (enum kind)i;
    return KIND_COMPUTE;
}

const char *kind_text(enum kind kind)
{
    return KIND_TEXTS[kind];
}

uint64_t own_pid_namespace(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? (uint64_t)status.st_ino : 0;
}

/* Whether the holder of the lock lives; then the PID by which this process may know it. */
static bool find_holder(const char *id, pid_t *visible_pid)
{
    char name[80], path[PATH_MAX];
    if (held_by_this_process(id)) {
        *visible_pid = getpid();
        return true;
    }
    snprintf(name, sizeof name, "%.63s.lock", id);
    if (!state_path(path, sizeof path, "allocations", name))
        return false;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    bool known = fcntl(file, F_GETLK, &lock) == 0;
    close(file);
    *visible_pid = lock.l_pid;
    return known && lock.l_type != F_UNLCK;
}

static bool parse_record(const char *line, const char *id, struct record *record)
{
    char kind[16];
    memset(record, 0, sizeof *record);
    snprintf(record->id, sizeof record->id, "%s", id);
    field_text(line, "kind", kind, sizeof kind);
    field_text(line, "cgroup", record->cgroup, sizeof record->cgroup);
    record->kind = parse_kind(kind);
    record->pid_namespace = field_number(line, "pid_namespace", 0);
    record->pid = (pid_t)field_number(line, "pid", 0);
    record->start_time = field_number(line, "start_time", 0);
    record->bytes = field_number(line, "bytes", 0);
    record->managed_bytes = field_number(line, "managed_bytes", 0);
    return field_text(line, "uuid", record->uuid, sizeof record->uuid) && record->pid > 0;
}

static bool read_record(const char *name, struct record *record)
{
    char path[PATH_MAX], id[64];
    size_t length = strlen(name);
    if (length <= 7 || length - 7 >= sizeof id || strcmp(name + length - 7, ".record") != 0)
        return false;
    snprintf(id, sizeof id, "%.*s", (int)(length - 7), name);
    if (!state_path(path, sizeof path, "allocations", name))
        return false;
    char *text = read_text(path);
    bool read = text != NULL && parse_record(text, id, record);
    free(text);
    return read && find_holder(id, &record->visible_pid);
}

static bool append(struct records *records, const struct record *record)
{
    if (records->count % 32 == 0) {
        size_t size = (records->count + 32) * sizeof *record;
        struct record *larger = realloc(records->items, size);
        if (larger == NULL)
            return false;
        records->items = larger;
    }
    records->items[records->count++] = *record;
    return true;
}

static int by_id(const void *left, const void *right)
{
    return strcmp(((const struct record *)left)->id, ((const struct record *)right)->id);
}

/* False when the folder cannot be read: that is not the same as "no allocations". */
bool read_records(struct records *records)
{
    char path[PATH_MAX];
    struct record record;
    bool complete = true;
    *records = (struct records){NULL, 0};
    DIR *folder = state_path(path, sizeof path, "allocations", "") ? opendir(path) : NULL;
    if (folder == NULL)
        return false;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
        if (read_record(entry->d_name, &record))
            complete = append(records, &record) && complete;
    closedir(folder);
    if (records->count > 1)
        qsort(records->items, records->count, sizeof *records->items, by_id);
    return complete;
}

void free_records(struct records *records)
{
    free(records->items);
    *records = (struct records){NULL, 0};
}

/* A card counts what its MIG instances hold as well. */
bool belongs_to(const struct record *record, struct target target)
{
    if (target.instance != NULL)
        return strcmp(record->uuid, target.instance->uuid) == 0;
    if (strcmp(record->uuid, target.device->uuid) == 0)
        return true;
    for (unsigned i = 0; i < target.device->instance_count; i++)
        if (strcmp(record->uuid, target.device->instances[i].uuid) == 0)
            return true;
    return false;
}

uint64_t used_bytes(const struct records *records, struct target target)
{
    uint64_t used = 0;
    for (size_t i = 0; i < records->count; i++)
        if (belongs_to(&records->items[i], target))
            used += records->items[i].bytes + records->items[i].managed_bytes;
    return used;
}

/* The lock last: until then the rest is known to be dead. */
void remove_record(const char *id)
{
    static const char *const ENDINGS[] = {"record", "hostpid", "lock"};
    char name[80], path[PATH_MAX];
    for (unsigned i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%.63s.%s", id, ENDINGS[i]);
        if (state_path(path, sizeof path, "allocations", name))
            unlink(path);
    }
}

/* Only for who holds the gate of holding.c: nobody registers meanwhile. */
void remove_dead_records(void)
{
    char path[PATH_MAX], id[64];
    pid_t ignored;
    DIR *folder = state_path(path, sizeof path, "allocations", "") ? opendir(path) : NULL;
    if (folder == NULL)
        return;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        size_t length = strlen(entry->d_name);
        if (length <= 5 || length - 5 >= sizeof id)
            continue;
        if (strcmp(entry->d_name + length - 5, ".lock") != 0)
            continue;
        snprintf(id, sizeof id, "%.*s", (int)(length - 5), entry->d_name);
        if (find_holder(id, &ignored))
            continue;
        remove_record(id);
    }
    closedir(folder);
}
