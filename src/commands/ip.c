/* croupier ip add | list | set | enable | disable | remove. */
#include "commands/commands.h"
#include "commands/platform.h"
#include "commands/resource.h"
#include "operator/addresses.h"

static void tell(const struct command_line *line, const void *record, bool added)
{
    (void)line;
    resource_tell_state(&address_resource, record, added ? "added" : "changed");
}

static int run_remove(const struct command_line *line)
{
    return resource_run_edit(line, address_remove, NULL, "removed");
}

const struct resource_commands address_subject = {&address_resource, "address", tell};

const struct command ip_commands[] = {
    {"add", "ADDRESS", "admit one address to sports without a key",
     "For legacy clients that send no key: ADDRESS is exactly the address that the service "
     "sees\n"
     "for them, v4 or v6. It opens the sports routes and never the casino. New clients should\n"
     "be customers with keys ('croupier customer add').\n"
     "\n"
     "The rate is the address's own: N is 1 to 1000000000, SECONDS 1 to 86400. A running "
     "server\n"
     "knows of every change within a second.",
     "croupier ip add 203.0.113.9\n"
     "croupier ip add 2001:db8::9 --sports cricket,tennis --rate 60/60",
     .make_options = resource_add_options, .run = resource_run_add},
    {"list", "", "all such addresses",
     "In the order of their addresses. --json prints an array of objects.",
     "croupier ip list\n"
     "croupier ip list --json",
     .run = resource_run_list},
    {"set", "ADDRESS", "change what an address may do",
     "Changes what is given and leaves the rest.",
     "croupier ip set 203.0.113.9 --rate 600/60\n"
     "croupier ip set 203.0.113.9 --sports all --rate off",
     .make_options = resource_set_options, .run = resource_run_set},
    {"enable", "ADDRESS", "admit a disabled address again", "Its sports and rate are as they were.",
     "croupier ip enable 203.0.113.9", .run = resource_run_enable},
    {"disable", "ADDRESS", "stop admitting an address, keeping its policy",
     "It is refused within a second.", "croupier ip disable 203.0.113.9",
     .run = resource_run_disable},
    {"remove", "ADDRESS", "stop admitting an address and forget its policy",
     "It is refused within a second. Adding it again starts afresh.",
     "croupier ip remove 203.0.113.9", .run = run_remove},
    {0},
};
