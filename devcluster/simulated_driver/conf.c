/* Reads driver.conf of a SIMULATED driver, and the small files of its state.
 *
 * A line is a kind and then fields `key=value`, all parted by tabs, so that names may hold spaces:
 *   driver  version=580.159.03  cuda=13000  host_pid_namespace=4026531836
 *   device  uuid=GPU-...  name=Simulated H200  total=...  reserved=...
 *   mig     uuid=MIG-...  parent=GPU-...  index=0  total=...
 */
#include "simulation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *state_folder(void)
{
    const char *folder = getenv("SIMULATED_NVIDIA_DRIVER");
    return folder != NULL && folder[0] != '\0' ? folder : NULL;
}

bool state_path(char *path, size_t size, const char *part, const char *name)
{
    const char *folder = state_folder();
    if (folder == NULL)
        return false;
    int length = snprintf(path, size, "%s/%s%s%s", folder, part, name[0] == '\0' ? "" : "/", name);
    return length > 0 && (size_t)length < size;
}

/* Reads in a loop and not by the file's size: files under /proc and cgroups say that it is 0. */
char *read_text(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return NULL;
    size_t room = 4096, length = 0;
    char *text = malloc(room);
    while (text != NULL) {
        ssize_t got = read(file, text + length, room - length - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        length += (size_t)got;
        if (room - length > 1)
            continue;
        char *larger = realloc(text, room * 2);
        if (larger == NULL) {
            free(text);
            text = NULL;
        } else {
            text = larger;
            room *= 2;
        }
    }
    close(file);
    if (text != NULL)
        text[length] = '\0';
    return text;
}

/* By renaming: a reader sees the old text or the new one, never half of it. */
bool write_text(const char *path, const char *text)
{
    char temporary[PATH_MAX];
    int length = snprintf(temporary, sizeof temporary, "%s.new.%ld.%p", path, (long)getpid(),
                          (const void *)text);
    if (length < 0 || (size_t)length >= sizeof temporary)
        return false;
    int file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0)
        return false;
    size_t size = strlen(text);
    bool written = write(file, text, size) == (ssize_t)size;
    /* Containers of other users read it, whatever the umask of this process. */
    written = fchmod(file, 0644) == 0 && written;
    close(file);
    if (written && rename(temporary, path) == 0)
        return true;
    unlink(temporary);
    return false;
}

/* False, and an empty value, where the line has no such field or it does not fit. */
bool field_text(const char *line, const char *key, char *value, size_t size)
{
    size_t key_length = strlen(key);
    value[0] = '\0';
    for (const char *at = line; at != NULL; at = strchr(at, '\t')) {
        at += *at == '\t';
        if (strncmp(at, key, key_length) != 0 || at[key_length] != '=')
            continue;
        const char *start = at + key_length + 1;
        size_t length = strcspn(start, "\t\n");
        if (length >= size)
            return false;
        memcpy(value, start, length);
        value[length] = '\0';
        return true;
    }
    return false;
}

uint64_t field_number(const char *line, const char *key, uint64_t otherwise)
{
    char text[32];
    if (!field_text(line, key, text, sizeof text) || text[0] < '0' || text[0] > '9')
        return otherwise;
    return strtoull(text, NULL, 10);
}

struct version parse_version(const char *text)
{
    struct version version = {0, 0, 0};
    sscanf(text, "%u.%u.%u", &version.major, &version.minor, &version.patch);
    return version;
}

bool older_than(struct version version, unsigned major, unsigned minor, unsigned patch)
{
    if (version.major != major)
        return version.major < major;
    if (version.minor != minor)
        return version.minor < minor;
    return version.patch < patch;
}

static void read_driver_line(struct driver *driver, const char *line)
{
    field_text(line, "version", driver->version_text, sizeof driver->version_text);
    driver->version = parse_version(driver->version_text);
    driver->cuda_version = (int)field_number(line, "cuda", 0);
    driver->host_pid_namespace = field_number(line, "host_pid_namespace", 0);
}

static void read_device_line(struct driver *driver, const char *line)
{
    if (driver->device_count == MAX_DEVICES)
        return;
    struct device *device = &driver->devices[driver->device_count++];
    field_text(line, "uuid", device->uuid, sizeof device->uuid);
    field_text(line, "name", device->name, sizeof device->name);
    field_text(line, "pci", device->pci, sizeof device->pci);
    device->minor = (unsigned)field_number(line, "minor", 0);
    device->compute_major = (unsigned)field_number(line, "compute_major", 0);
    device->compute_minor = (unsigned)field_number(line, "compute_minor", 0);
    device->multiprocessors = (unsigned)field_number(line, "multiprocessors", 0);
    device->total_bytes = field_number(line, "total", 0);
    device->reserved_bytes = field_number(line, "reserved", 0);
    device->mig_enabled = field_number(line, "mig", 0) != 0;
    device->max_instances = (unsigned)field_number(line, "max_mig", 0);
}

static void read_instance_line(struct driver *driver, const char *line)
{
    char parent[UUID_SIZE];
    field_text(line, "parent", parent, sizeof parent);
    for (unsigned i = 0; i < driver->device_count; i++) {
        struct device *device = &driver->devices[i];
        if (strcmp(device->uuid, parent) != 0 || device->instance_count == MAX_INSTANCES)
            continue;
        struct instance *instance = &device->instances[device->instance_count++];
        field_text(line, "uuid", instance->uuid, sizeof instance->uuid);
        field_text(line, "profile", instance->profile, sizeof instance->profile);
        instance->index = (unsigned)field_number(line, "index", 0);
        instance->gpu_instance = (unsigned)field_number(line, "gi", 0);
        instance->compute_instance = (unsigned)field_number(line, "ci", 0);
        instance->slices = (unsigned)field_number(line, "slices", 1);
        instance->multiprocessors = (unsigned)field_number(line, "multiprocessors", 0);
        instance->total_bytes = field_number(line, "total", 0);
        instance->reserved_bytes = field_number(line, "reserved", 0);
    }
}

bool load_driver(struct driver *driver)
{
    char path[PATH_MAX];
    memset(driver, 0, sizeof *driver);
    char *text = state_path(path, sizeof path, "driver.conf", "") ? read_text(path) : NULL;
    if (text == NULL)
        return false;
    char *rest = text;
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        if (strncmp(line, "driver\t", 7) == 0)
            read_driver_line(driver, line);
        else if (strncmp(line, "device\t", 7) == 0)
            read_device_line(driver, line);
        else if (strncmp(line, "mig\t", 4) == 0)
            read_instance_line(driver, line);
    }
    free(text);
    return driver->version_text[0] != '\0';
}

bool find_target(const struct driver *driver, const char *uuid, struct target *target)
{
    for (unsigned i = 0; i < driver->device_count; i++) {
        const struct device *device = &driver->devices[i];
        *target = (struct target){device, NULL};
        if (strcmp(device->uuid, uuid) == 0)
            return true;
        for (unsigned j = 0; j < device->instance_count; j++) {
            target->instance = &device->instances[j];
            if (strcmp(device->instances[j].uuid, uuid) == 0)
                return true;
        }
    }
    *target = (struct target){NULL, NULL};
    return false;
}
