/* croupier key issue | list | find | revoke. */
#include "base/clock.h"
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/resource.h"
#include "commands/stores.h"
#include "operator/customers.h"
#include "operator/keys.h"

const struct resource_commands key_subject = {&key_resource, "customer", NULL};

/* ---- issue ----------------------------------------------------------------------------------- */

static void note_missing_rights(const struct command_line *line,
                                const struct customer_record *owner)
{
    const char *program = command_program(line);
    if (!owner->enabled)
        command_note(line, "%s is disabled, so the key opens nothing until: %s customer enable %s",
                     owner->id, program, owner->id);
    if (owner->cidr_count == 0)
        command_note(line,
                     "%s has no CIDR block, so the key opens nothing until: %s customer set %s "
                     "--cidr CIDR",
                     owner->id, program, owner->id);
}

static void run_issue(const struct command_line *line)
{
    struct customer_view owner;
    struct key_record record = {0};
    char key[KEY_SIZE] = "";
    const char *wanted = command_argument(line, 0);
    if (strlen(wanted) < CUSTOMER_ID_SIZE) /* else it can only be a name, which is refused below */
        resource_make_of_line(line, &key_subject, 0, &record);
    struct platform_store *store = command_platform(line);
    command_require_verb(
        line, resource_get(&customer_resource, store, wanted, &owner, command_error(line)));
    command_require_verb(line, keys_issue(store, &record, key, command_error(line)));
    resource_print_issued(line, &key_resource, &record, "key", key, "key revoke");
    note_missing_rights(line, &owner.record);
}

/* ---- find ------------------------------------------------------------------------------------ */

static void run_find(const struct command_line *line)
{
    command_require_verb(line, keys_check(command_argument(line, 0), command_error(line)));
    resource_run_list_of(line, &found_key_resource, "no key has that prefix or id");
}

/* ---- revoke ---------------------------------------------------------------------------------- */

/* A mistyped prefix may be that of another key, and a revoked key cannot be brought back. */
static void confirm_prefix(const struct command_line *line, struct platform_store *store,
                           const char *wanted, int64_t now_ms)
{
    struct key_record record;
    struct customer_view owner;
    if (strlen(wanted) != KEY_PREFIX_SIZE - 1 || command_json(line) || !command_at_terminal())
        return;
    command_require_verb(line, keys_find(store, wanted, now_ms, &record, command_error(line)));
    command_require_verb(line, resource_get(&customer_resource, store, record.customer_id, &owner,
                                            command_error(line)));
    if (!command_ask("%s, key %s of %s. Revoke it for good? yes or no: ", record.id, wanted,
                     owner.record.name))
        command_refuse(line, "nothing was revoked");
}

static void run_revoke(const struct command_line *line)
{
    const char *wanted = command_argument(line, 0);
    int64_t now_ms = clock_wall_ms();
    struct key_record record;
    command_require_verb(line, keys_check(wanted, command_error(line)));
    struct platform_store *store = command_platform(line);
    confirm_prefix(line, store, wanted, now_ms);
    command_require_verb(line, keys_revoke(store, wanted, now_ms, &record, command_error(line)));
    resource_print_revoked(line, &key_resource, &record, record.id,
                           record.revoked_ms != now_ms ? record.revoked_ms : 0);
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct command key_commands[] = {
    {"issue", "CUSTOMER", &help_key_issue, resource_add_options, run_issue},
    {"list", "CUSTOMER", &help_key_list, .run = resource_run_list},
    {"find", "KEY", &help_key_find, .run = run_find},
    {"revoke", "KEY", &help_key_revoke, .run = run_revoke},
    {0},
};
