/* croupier ip add | list | set | enable | disable | remove. */
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/resource.h"
#include "operator/tables.h"

const struct resource_commands address_subject = {&address_resource, "address",
                                                  resource_print_outcome};

const struct command ip_commands[] = {
    {"add", "ADDRESS", &help_ip_add, resource_add_options, resource_run_add},
    {"list", "", &help_ip_list, .run = resource_run_list},
    {"set", "ADDRESS", &help_ip_set, resource_set_options, resource_run_set},
    {"enable", "ADDRESS", &help_ip_enable, .run = resource_run_enable},
    {"disable", "ADDRESS", &help_ip_disable, .run = resource_run_disable},
    {"remove", "ADDRESS", &help_ip_remove, .run = resource_run_remove},
    {0},
};
