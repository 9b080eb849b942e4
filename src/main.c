/* The commands, and what holds for each of them before it begins. */

#include <fcntl.h>
#include <signal.h>

#include "commands/commands.h"

static const struct command_group groups[] = {
    {"", "", service_commands, NULL},
    {"customer", "who may call, from where, how often", customer_commands, &customer_subject},
    {"key", "the API keys of customers", key_commands, &key_subject},
    {"ip", "addresses that are admitted to sports without a key", ip_commands, &address_subject},
    {"provider", "who hosts casino games", provider_commands, &provider_subject},
    {"game", "casino games, and who may use which", game_commands, &game_subject},
    {"player", "find players, and block them", player_commands, NULL},
    {"operator", "who may sign in to the console", operator_commands, &operator_subject},
    {"audit", "who changed what, and when", audit_commands, NULL},
    {"wallet", "players' money: statements, and the proof of the ledger", wallet_commands, NULL},
    {"platform", "move the platform store to another engine", platform_commands, NULL},
    {"odds", "move the odds store to another engine", odds_commands, NULL},
    {"feed", "publish catalogs and odds, and see what is polled", feed_commands, NULL},
    {0},
};

/* A file that gets one of these numbers would receive what is written for people. If standard
 * output alone is closed, a write to it fails, so that no command reports a key that it could not
 * show. */
static void open_standard_descriptors(void)
{
    const bool watched = fcntl(STDERR_FILENO, F_GETFD) >= 0;
    for (int number = STDIN_FILENO; number <= STDERR_FILENO; number++)
        if (fcntl(number, F_GETFD) < 0)
            (void)open("/dev/null", watched && number == STDOUT_FILENO ? O_RDONLY : O_RDWR);
}

static void end_by_signal(int number)
{
    _exit(128 + number);
}

/* The kernel gives process 1 of a container no signal that it does not handle. */
static void end_as_process_1(void)
{
    if (getpid() == 1) {
        (void)signal(SIGTERM, end_by_signal);
        (void)signal(SIGINT, end_by_signal);
    }
}

int main(int argc, char **argv)
{
    open_standard_descriptors();
    end_as_process_1();
    (void)signal(SIGXFSZ, SIG_IGN); /* a file that may not grow (RLIMIT_FSIZE) is a failed write */
    return command_main(groups, argc, argv);
}
