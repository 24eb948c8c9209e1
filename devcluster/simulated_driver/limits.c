/* Memory limits of cgroups (nvmlDeviceSetMemoryLimits_v1, from driver 615 on).
 *
 * A limit is one file per card and cgroup. The cgroup of a process is what the process itself sees
 * of it, or $SIMULATED_NVIDIA_CGROUP: a real driver knows it better.
 */
#include "simulation.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool inside_cgroup(const char *cgroup, const char *ancestor)
{
    size_t length = strlen(ancestor);
    while (length > 1 && ancestor[length - 1] == '/')
        length--;
    return length > 0 && strncmp(cgroup, ancestor, length) == 0 &&
           (cgroup[length] == '\0' || cgroup[length] == '/');
}

static bool read_limit(const char *name, struct limit *limit)
{
    char path[PATH_MAX];
    char *text = state_path(path, sizeof path, "limits", name) ? read_text(path) : NULL;
    bool read = text != NULL && field_text(text, "uuid", limit->uuid, sizeof limit->uuid) &&
                field_text(text, "cgroup", limit->cgroup, sizeof limit->cgroup);
    if (read) {
        limit->inode = field_number(text, "inode", 0);
        limit->soft = field_number(text, "soft", 0);
        limit->hard = field_number(text, "hard", NVML_DEVICE_MEMORY_LIMIT_MAX);
    }
    free(text);
    return read;
}

/* The limit of the nearest cgroup that has one: limits do not nest ("misc" backend). */
bool find_limit(const char *uuid, const char *cgroup, struct limit *nearest)
{
    char path[PATH_MAX];
    struct limit limit;
    bool found = false;
    struct stat status;
    DIR *folder = state_path(path, sizeof path, "limits", "") ? opendir(path) : NULL;
    if (folder == NULL)
        return false;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (entry->d_name[0] == '.' || !read_limit(entry->d_name, &limit) ||
            strcmp(limit.uuid, uuid) != 0 || !inside_cgroup(cgroup, limit.cgroup))
            continue;
        /* Where the cgroup cannot be seen (in a container), the limit stands. */
        if (stat(limit.cgroup, &status) == 0 && status.st_ino != limit.inode)
            continue;
        if (!found || strlen(limit.cgroup) > strlen(nearest->cgroup))
            *nearest = limit;
        found = true;
    }
    closedir(folder);
    return found;
}
