/* croupier customer add | list | show | set | enable | disable. */
#include "commands/commands.h"
#include "commands/platform.h"
#include "commands/resource.h"
#include "operator/customers.h"

static void tell(const struct command_line *line, const void *record, bool added)
{
    const struct customer_record *customer = record;
    char program[PROGRAM_TEXT_SIZE];
    command_program(line, program);
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

const struct resource_commands customer_subject = {&customer_resource, "name", tell};

const struct command customer_commands[] = {
    {"add", "NAME", "add a customer; prints its id",
     "A customer is who calls the API: with its keys, from its address blocks. NAME is for "
     "you:\n"
     "1 to 128 bytes. The id is printed alone, for scripts; --json prints the whole customer.\n"
     "\n"
     "Without a block the customer is denied everywhere; 0.0.0.0/0 and ::/0 are everywhere. A\n"
     "bare address is a block of one. The sports are cricket, football, tennis, horse-racing\n"
     "and greyhound-racing. The rate counts requests on sports routes, of all its keys\n"
     "together, in fixed windows: N is 1 to 1000000000, SECONDS 1 to 86400.\n"
     "\n"
     "A running server knows of every change within a second.",
     "croupier customer add \"Acme Sportsbook\" --cidr 203.0.113.0/24\n"
     "croupier customer add Acme --cidr 203.0.113.7 --cidr 2001:db8::/48 --rate 600/60\n"
     "croupier customer add Trial --cidr 0.0.0.0/0 --cidr ::/0 --sports cricket,tennis\n"
     "ID=$(croupier customer add Acme --cidr 203.0.113.0/24 --casino)",
     .make_options = resource_add_options, .run = resource_run_add},
    {"list", "", "all customers, as created",
     "KEYS counts those that are neither revoked nor expired. --json prints an array of\n"
     "the objects that 'customer show --json' prints.",
     "croupier customer list\n"
     "croupier customer list --json | jq -r '.[] | select(.enabled | not) | .id'",
     .run = resource_run_list},
    {"show", "ID", "one customer", "ID is what 'customer add' printed: cus_ and 16 characters.",
     "croupier customer show cus_7Qm2Zt0aXw9Lk3Rb\n"
     "croupier customer show cus_7Qm2Zt0aXw9Lk3Rb --json",
     .run = resource_run_show},
    {"set", "ID", "change a customer",
     "Changes what is given and leaves the rest. --cidr replaces the whole list, so give\n"
     "all blocks. A running server follows within a second.",
     "croupier customer set cus_7Qm2Zt0aXw9Lk3Rb --cidr 203.0.113.0/24 --cidr 198.51.100.7\n"
     "croupier customer set cus_7Qm2Zt0aXw9Lk3Rb --rate off --sports all\n"
     "croupier customer set cus_7Qm2Zt0aXw9Lk3Rb --name \"Acme Ltd\" --no-casino",
     .make_options = resource_set_options, .run = resource_run_set},
    {"enable", "ID", "admit a disabled customer again",
     "Its keys, blocks and limits are as they were.",
     "croupier customer enable cus_7Qm2Zt0aXw9Lk3Rb", .run = resource_run_enable},
    {"disable", "ID", "stop admitting a customer",
     "All its keys are refused within a second. Nothing is lost: 'enable' brings it back.",
     "croupier customer disable cus_7Qm2Zt0aXw9Lk3Rb", .run = resource_run_disable},
    {0},
};
