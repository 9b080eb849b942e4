/* cli/command: the command line as a table. The commands here print what they were given. */
#include <limits.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/version.h"
#include "cli/command.h"
#include "tests.h"

/* ---- a table to try -------------------------------------------------------------------------- */

static void show(const struct command_line *line)
{
    (void)printf("ran");
    for (size_t i = 0; i < command_argument_count(line); i++)
        (void)printf(" [%s]", command_argument(line, i));
    for (size_t i = 0; i < command_option_count(line, "cidr"); i++)
        (void)printf(" cidr=%s", command_option_at(line, "cidr", i));
    if (command_option(line, "label") != NULL)
        (void)printf(" label=%s", command_option(line, "label"));
    if (command_option(line, "casino") != NULL)
        (void)printf(" casino");
    if (command_json(line))
        (void)printf(" json");
    if (command_config_path(line) != NULL)
        (void)printf(" config=%s", command_config_path(line));
}

static void refuse(const struct command_line *line)
{
    command_note(line, "about to refuse %d", 1);
    command_refuse(line, "no such thing: %s", "x");
}

static void misuse(const struct command_line *line)
{
    command_usage(line, "must be %s", "y");
}

static void configure(const struct command_line *line)
{
    assert_non_null(command_config(line));
}

static const struct command_option add_options[] = {
    {"cidr", "CIDR", "addresses the key works from", true},
    {"label", "LABEL", "a name for people", false},
    {"casino", NULL, "may use the casino", false},
    {0},
};

/* The subject's own. */
static size_t make_options(const void *subject, struct command_option *made, size_t room)
{
    const struct command_option *options = subject;
    size_t count = 0;
    for (; options[count].name != NULL && count < room; count++)
        made[count] = options[count];
    return count;
}

static const struct command_help add_help = {"add a customer", "It gets an id.",
                                             "croupier customer add 'Acme'\nnext", add_options};
static const struct command_help refuse_help = {"always refuse", "", "croupier customer refuse",
                                                add_options};
static const struct command_help misuse_help = {"always misuse", "", NULL, NULL};
static const struct command_help list_help = {"list customers", NULL, "croupier customer list",
                                              NULL};
static const struct command_help serve_help = {"the service", NULL, "croupier serve", add_options};
static const struct command_help check_help = {"check", NULL, "croupier check", NULL};

static const struct command customer_commands[] = {
    {"add", "NAME [NICK]", &add_help, .run = show},
    {"refuse", "", &refuse_help, .run = refuse},
    {"misuse", "", &misuse_help, .run = misuse},
    {"list", "[WHICH…]", &list_help, .make_options = make_options, .run = show},
    {0},
};
static const struct command top_commands[] = {
    {"serve", "", &serve_help, .run = show},
    {"check", "", &check_help, .run = configure},
    {0},
};
static const struct command_group table[] = {
    {"", "", top_commands, NULL},
    {"customer", "who may call", customer_commands, add_options},
    {0},
};

/* ---- running it ------------------------------------------------------------------------------ */

static char out[65536];
static char err[65536];

static void read_back(int descriptor, char *into, size_t size)
{
    ssize_t got = pread(descriptor, into, size - 1, 0);
    assert_true(got >= 0);
    into[got] = '\0';
    (void)close(descriptor);
}

static int temporary(void)
{
    char name[] = "/tmp/croupier-test-command-XXXXXX";
    int descriptor = mkstemp(name);
    assert_true(descriptor >= 0);
    (void)unlink(name);
    return descriptor;
}

/* Runs "customer add X" with words split at spaces; stdout and stderr end up in `out` and `err`. */
static int run(const char *line)
{
    char *copy = memory_copy_string(line);
    static char program[] = "croupier";
    static char empty[] = "";
    char *argv[32] = {program};
    int argc = 1;
    for (char *word = strtok(copy, " "); word != NULL && argc < 31; word = strtok(NULL, " "))
        argv[argc++] = strcmp(word, "''") == 0 ? empty : word;
    (void)fflush(stdout);
    (void)fflush(stderr);
    int old_out = dup(1);
    int old_err = dup(2);
    int new_out = temporary();
    int new_err = temporary();
    assert_true(dup2(new_out, 1) == 1 && dup2(new_err, 2) == 2);
    int code = command_main(table, argc, argv);
    (void)fflush(stdout);
    (void)fflush(stderr);
    assert_true(dup2(old_out, 1) == 1 && dup2(old_err, 2) == 2);
    (void)close(old_out);
    (void)close(old_err);
    read_back(new_out, out, sizeof out);
    read_back(new_err, err, sizeof err);
    memory_free(copy);
    return code;
}

static void expect_run(const char *line, const char *printed)
{
    int code = run(line);
    assert_string_equal(err, "");
    assert_string_equal(out, printed);
    assert_int_equal(code, EXIT_DONE);
}

static void expect_usage(const char *line, const char *message)
{
    int code = run(line);
    assert_string_equal(out, "");
    assert_string_equal(err, message);
    assert_int_equal(code, EXIT_USAGE);
}

/* ---- specifications -------------------------------------------------------------------------- */

TEST(options_stand_before_or_after_arguments)
{
    expect_run("customer add A", "ran [A]");
    expect_run("customer add --label x A", "ran [A] label=x");
    expect_run("customer add A --label x", "ran [A] label=x");
    expect_run("customer add A --label=x", "ran [A] label=x");
    expect_run("customer add A --label=", "ran [A] label=");
    expect_run("customer add A --label=a=b", "ran [A] label=a=b");
    expect_run("customer add A --label ''", "ran [A] label=");
    expect_run("customer add A --casino B", "ran [A] [B] casino");
    expect_run("serve", "ran");
    expect_run("customer list 1 2 3 4 5", "ran [1] [2] [3] [4] [5]");
}

TEST(repeatable_options_keep_their_order)
{
    expect_run("customer add --cidr a A --cidr=b --cidr c", "ran [A] cidr=a cidr=b cidr=c");
}

TEST(two_dashes_end_the_options)
{
    expect_run("customer add -- --label", "ran [--label]");
    expect_run("customer add --casino -- -- ", "ran [--] casino");
}

TEST(one_dash_is_an_argument)
{
    expect_run("customer add -", "ran [-]");
    expect_run("customer add A --label -", "ran [A] label=-");
}

TEST(common_options_stand_anywhere)
{
    expect_run("-c f --json customer add A", "ran [A] json config=f");
    expect_run("customer -c f add A --json", "ran [A] json config=f");
    expect_run("customer add A -cf", "ran [A] config=f");
    expect_run("customer add A --config=f --json --json", "ran [A] json config=f");
}

TEST(what_is_unknown_is_refused_with_the_nearest_name)
{
    expect_usage("custmer add A", "croupier: there is no command 'custmer'; did you mean "
                                  "'customer'? (see: croupier --help)\n");
    expect_usage("sevre", "croupier: there is no command 'sevre'; did you mean 'serve'? (see: "
                          "croupier --help)\n");
    expect_usage("zzz serve", "croupier: there is no command 'zzz' (see: croupier --help)\n");
    expect_usage("''", "croupier: there is no command '' (see: croupier --help)\n");
    expect_usage("add A", "croupier: there is no command 'add' (see: croupier --help)\n");
    expect_usage("customer lst", "croupier customer: there is no command 'lst'; did you mean "
                                 "'list'? (see: croupier customer --help)\n");
    expect_usage("customer serve", "croupier customer: there is no command 'serve' (see: croupier "
                                   "customer --help)\n");
    expect_usage("customer add A --lable=x", "croupier customer add: there is no option "
                                             "'--lable'; did you mean '--label'? (see: croupier "
                                             "customer add --help)\n");
    expect_usage("customer add A -xyz8Q", "croupier customer add: there is no option '-xyz8Q'; an "
                                          "argument that begins with '-' stands after '--' (see: "
                                          "croupier customer add --help)\n");
    expect_usage("customer add A -x", "croupier customer add: there is no option '-x' (see: "
                                      "croupier customer add --help)\n");
    expect_usage("--label x customer add A", "croupier: there is no option '--label' before the "
                                             "command (see: croupier --help)\n");
}

TEST(wrong_use_is_refused)
{
    expect_usage("customer add",
                 "croupier customer add: too few arguments: customer add NAME [NICK] "
                 "(see: croupier customer add --help)\n");
    expect_usage("customer add A B C", "croupier customer add: 'C' is one argument too many (see: "
                                       "croupier customer add --help)\n");
    expect_usage("customer add A --label", "croupier customer add: --label needs a value: --label "
                                           "LABEL (see: croupier customer add --help)\n");
    expect_usage("customer add A --label --json",
                 "croupier customer add: --label needs a value: --label LABEL (see: croupier "
                 "customer add --help)\n");
    expect_usage("customer add A -c", "croupier customer add: --config needs a value: --config "
                                      "FILE (see: croupier customer add --help)\n");
    expect_usage("customer add A --casino=yes", "croupier customer add: --casino takes no value "
                                                "(see: croupier customer add --help)\n");
    expect_usage("customer add A --label x --label y",
                 "croupier customer add: --label is given twice (see: croupier customer add "
                 "--help)\n");
    expect_usage("customer", "croupier customer: which command? (see: croupier customer "
                             "--help)\n");
    expect_usage("customer misuse", "croupier customer misuse: must be y (see: croupier customer "
                                    "misuse --help)\n");
}

TEST(control_characters_of_the_line_are_not_shown)
{
    expect_usage("\033[2Jx", "croupier: there is no command '?[2Jx' (see: croupier --help)\n");
}

TEST(a_refusal_is_one_line_and_a_note_is_for_people)
{
    assert_int_equal(run("customer refuse"), EXIT_REFUSED);
    assert_string_equal(err, "note: about to refuse 1\n"
                             "croupier customer refuse: no such thing: x\n");
    assert_int_equal(run("customer refuse --json"), EXIT_REFUSED);
    assert_string_equal(err, "croupier customer refuse: no such thing: x\n");
}

TEST(help_is_on_every_level_and_on_stdout)
{
    static const char *const lines[][2] = {
        {"--help", "Groups of commands:"},
        {"help", "Groups of commands:"},
        {"-h", "Groups of commands:"},
        {"customer --help", "Usage: croupier customer COMMAND"},
        {"help customer", "Usage: croupier customer COMMAND"},
        {"customer add --help", "Usage: croupier customer add [OPTIONS] NAME [NICK]\n"},
        {"help customer add", "Usage: croupier customer add [OPTIONS] NAME [NICK]\n"},
        {"customer add --label --help", "Usage: croupier customer add [OPTIONS] NAME [NICK]\n"},
        {"customer add --nonsense A B C D --help", "Usage: croupier customer add"},
        {"serve --help", "Usage: croupier serve [OPTIONS]\n"},
        {"help serve", "Usage: croupier serve [OPTIONS]\n"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_int_equal(run(lines[i][0]), EXIT_DONE);
        assert_string_equal(err, "");
        assert_non_null(strstr(out, lines[i][1]));
        assert_non_null(strstr(out, "Examples:\n  croupier "));
    }
    assert_int_equal(run("customer add --help"), EXIT_DONE);
    assert_non_null(strstr(out, "  --cidr CIDR        addresses the key works from (may be given "
                                "more than once)\n"));
    assert_non_null(strstr(out, "\n  It gets an id.\n"));
    assert_non_null(strstr(out, "  croupier customer add 'Acme'\n  next\n"));
    assert_int_equal(run("customer --help"), EXIT_DONE);
    assert_non_null(strstr(out, "list customers")); /* of the second row of that name */
}

TEST(help_on_what_is_unknown_is_refused)
{
    expect_usage("help custmer", "croupier: there is no command 'custmer'; did you mean "
                                 "'customer'? (see: croupier --help)\n");
    expect_usage("help customer add more", "croupier customer add: there is no help on 'more' "
                                           "(see: croupier customer add --help)\n");
}

TEST(help_settings_is_a_document_for_scripts_too)
{
    assert_int_equal(run("help settings"), EXIT_DONE);
    assert_non_null(strstr(out, "[odds]\nstore = embedded:/var/lib/croupier/odds\n"));
    assert_int_equal(run("help settings --json"), EXIT_DONE);
    assert_non_null(strstr(out,
                           "[{\"section\":\"server\",\"key\":\"listen\",\"variable\":\"CROUPIER"
                           "_SERVER_LISTEN\",\"default\":\"127.0.0.1:8080\""));
}

TEST(without_a_command_the_overview_goes_to_stderr)
{
    assert_int_equal(run(""), EXIT_USAGE);
    assert_string_equal(out, "");
    assert_non_null(strstr(err, "Usage: croupier [GROUP] COMMAND"));
}

TEST(the_version_is_told)
{
    char expected[100];
    assert_true(strlen(croupier_commit) >= 7);
    (void)snprintf(expected, sizeof expected, "croupier " CROUPIER_VERSION " (commit %s)\n",
                   croupier_commit);
    expect_run("--version", expected);
}

TEST(a_configuration_that_cannot_be_used_is_refused_by_the_command)
{
    assert_int_equal(run("check -c /nonexistent"), EXIT_USAGE);
    assert_string_equal(err, "croupier check: /nonexistent: cannot be opened: No such file or "
                             "directory\n");
}

TEST(an_answer_that_does_not_get_out_is_no_success)
{
    static char program[] = "croupier";
    static char help[] = "--help";
    char *argv[] = {program, help};
    (void)fflush(stdout);
    int old_out = dup(1);
    int old_err = dup(2);
    int new_err = temporary();
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    assert_true(dup2(fileno(full), 1) == 1 && dup2(new_err, 2) == 2);
    int code = command_main(table, 2, argv);
    (void)fflush(stderr);
    assert_true(dup2(old_out, 1) == 1 && dup2(old_err, 2) == 2);
    clearerr(stdout);
    (void)close(old_out);
    (void)close(old_err);
    (void)fclose(full);
    read_back(new_err, err, sizeof err);
    assert_int_equal(code, EXIT_REFUSED);
    assert_string_equal(err, "croupier: cannot write the output: No space left on device\n");
}
