/* What the commands on the platform store share; see platform.h. */
#include "commands/platform.h"

#include <inttypes.h>
#include <pwd.h>
#include <unistd.h>

#include "base/memory.h"
#include "stores/configured.h"

/* ---- who it is ------------------------------------------------------------------------------- */

#define NO_LOGIN UINT32_MAX
#define PASSWD_ROOM 16384

/* Who logged in, which the kernel remembers through sudo and su and lets no one change; NO_LOGIN
 * where there was no login (a timer, a container). */
static uint32_t login_user(void)
{
    char digits[16] = "";
    uint64_t user = NO_LOGIN;
    FILE *file = fopen("/proc/self/loginuid", "re");
    if (file == NULL)
        return NO_LOGIN;
    size_t size = fread(digits, 1, sizeof digits - 1, file);
    (void)fclose(file);
    return text_to_u64((struct text){digits, size}, NO_LOGIN, &user) == STATUS_OK ? (uint32_t)user
                                                                                  : NO_LOGIN;
}

/* The name of the user, or its number where it has none that can be shown. */
static void find_user(char out[TRAIL_WHO_SIZE])
{
    uint32_t user = login_user();
    struct passwd entry;
    struct passwd *found = NULL;
    char *room = memory_alloc(PASSWD_ROOM);
    if (user == NO_LOGIN)
        user = getuid();
    bool named = getpwuid_r(user, &entry, room, PASSWD_ROOM, &found) == 0 && found != NULL &&
                 record_text_is_sound(entry.pw_name, TRAIL_WHO_SIZE, 1);
    if (named)
        (void)snprintf(out, TRAIL_WHO_SIZE, "%s", entry.pw_name);
    else
        (void)snprintf(out, TRAIL_WHO_SIZE, "uid %" PRIu32, user);
    memory_free(room);
}

/* What is changed is done by this user, with this command. */
static void sign(const struct command_line *line, struct platform_store *store)
{
    char who[TRAIL_WHO_SIZE];
    char command[TRAIL_COMMAND_SIZE];
    find_user(who);
    command_name(line, command, sizeof command);
    platform_store_act_as(store, who, command);
}

/* ---- what they share ------------------------------------------------------------------------- */

bool command_open_platform(const struct command_line *line, bool create,
                           struct platform_store **store)
{
    const struct config *config = NULL;
    struct error error = {0};
    if (!command_config(line, &config))
        return false;
    struct platform_store_options options = platform_store_configured(config);
    options.create = create;
    enum status status = platform_store_open(store, &options, &error);
    config_release(&config);
    if (status != STATUS_OK) {
        (void)command_refuse(line, "%s", error.text);
        return false;
    }
    sign(line, *store);
    return true;
}

int command_fail(const struct command_line *line, enum status status, const struct error *error)
{
    return status == STATUS_INVALID ? command_usage(line, "%s", error->text)
                                    : command_refuse(line, "%s", error->text);
}

void command_program(const struct command_line *line, char out[PROGRAM_TEXT_SIZE])
{
    const char *path = command_option(line, "config");
    (void)snprintf(out, PROGRAM_TEXT_SIZE, "croupier%s%s", path == NULL ? "" : " -c ",
                   path == NULL ? "" : path);
}
