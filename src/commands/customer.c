/* croupier customer add | list | show | set | enable | disable. */
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/resource.h"
#include "commands/stores.h"
#include "operator/customers.h"
#include "operator/keys.h"

static void print(const struct command_line *line, const void *record, bool added)
{
    const struct customer_record *customer = record;
    const char *program = command_program(line);
    if (added)
        (void)puts(customer->id);
    else
        resource_print(line, &customer_resource, record);
    if (customer->cidr_count == 0)
        command_note(line,
                     "it has no CIDR block, so it is denied everywhere until: %s customer set %s "
                     "--cidr CIDR",
                     program, customer->id);
    if (added)
        command_note(line, "next, a key: %s key issue %s", program, customer->id);
}

/* People see its keys below it. */
static void run_show(const struct command_line *line)
{
    resource_run_show(line);
    if (command_json(line))
        return;
    (void)putchar('\n');
    resource_run_list_of(line, &key_resource, NULL);
}

const struct resource_commands customer_subject = {&customer_resource, "name", print};

const struct command customer_commands[] = {
    {"add", "NAME", &help_customer_add, resource_add_options, resource_run_add},
    {"list", "", &help_customer_list, .run = resource_run_list},
    {"show", "ID", &help_customer_show, .run = run_show},
    {"set", "ID", &help_customer_set, resource_set_options, resource_run_set},
    {"enable", "ID", &help_customer_enable, .run = resource_run_enable},
    {"disable", "ID", &help_customer_disable, .run = resource_run_disable},
    {"conduct", "ID", &help_customer_conduct, .run = resource_run_conduct},
    {0},
};
