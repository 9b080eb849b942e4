/* commands/check: every check is reported, and failing ones make the command fail. */
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_text.h"
#include "commands/commands.h"
#include "sealing/secrets.h"
#include "stores/odds.h"
#include "stores/platform.h"
#include "test_directory.h"
#include "tests.h"

static char directory[TEST_DIRECTORY_SIZE];
static char config_path[128];

static const struct command_group groups[] = {{"", "", service_commands, NULL}, {0}};

static int make_directory(void **state)
{
    test_directory_make(directory);
    (void)snprintf(config_path, sizeof config_path, "%s/c.conf", directory);
    return 0;
}

static int remove_directory(void **state)
{
    return test_directory_remove(directory) ? 0 : -1;
}

static void write_config(const char *server, const char *odds, const char *platform)
{
    FILE *file = fopen(config_path, "w");
    assert_non_null(file);
    (void)fprintf(file,
                  "[server]\n%s\n[operator]\nlisten = 127.0.0.1:0\n[odds]\nstore = "
                  "embedded:%s/%s\n[platform]\nstore = sqlite:%s/%s\n",
                  server, directory, odds, directory, platform);
    assert_int_equal(fclose(file), 0);
}

static void make_stores(void)
{
    char uri[256];
    struct error error = {0};
    (void)snprintf(uri, sizeof uri, "embedded:%s/odds", directory);
    struct odds_store *odds = NULL;
    assert_int_equal(
        odds_store_open(
            &odds, &(struct odds_store_options){.uri = uri, .timeout_ms = 1000, .create = true},
            &error),
        STATUS_OK);
    odds_store_close(&odds);
    (void)snprintf(uri, sizeof uri, "sqlite:%s/platform.db", directory);
    struct platform_store *platform = NULL;
    assert_int_equal(platform_store_open(&platform,
                                         &(struct platform_store_options){
                                             .uri = uri, .timeout_ms = 1000, .create = true},
                                         &error),
                     STATUS_OK);
    uint32_t before;
    uint32_t after;
    assert_int_equal(platform_store_migrate(platform, &before, &after, &error), STATUS_OK);
    platform_store_close(&platform);
    bool made;
    (void)snprintf(uri, sizeof uri, "%s/secrets.key", directory);
    assert_int_equal(secrets_make_key(uri, &made, &error), STATUS_OK);
}

/* Runs `croupier check --json -c …`; returns the document on stdout, which the next call replaces. */
static struct text check(int expected_code)
{
    static char document[65536];
    static char words[][12] = {"croupier", "check", "--json", "-c"};
    char *argv[] = {words[0], words[1], words[2], words[3], config_path};
    FILE *out = tmpfile();
    assert_non_null(out);
    (void)fflush(stdout);
    int old_out = dup(1);
    assert_int_equal(dup2(fileno(out), 1), 1);
    int code = command_main(groups, 5, argv);
    (void)fflush(stdout);
    assert_int_equal(dup2(old_out, 1), 1);
    (void)close(old_out);
    assert_int_equal(code, expected_code);
    rewind(out);
    size_t size = fread(document, 1, sizeof document, out);
    (void)fclose(out);
    assert_int_equal(json_text_check((struct text){document, size}, NULL, NULL), STATUS_OK);
    return json_text_trim((struct text){document, size});
}

static struct text result_of(struct text document, const char *check)
{
    struct json_text_cursor rows = json_text_open(document);
    struct text row;
    while (json_text_next_element(&rows, &row))
        if (text_equals(json_text_inside(json_text_member(row, TEXT("check"))), text_of(check)))
            return row;
    fail_msg("no check '%s'", check);
    return TEXT("");
}

static void expect_text(struct text value, const char *part)
{
    struct buffer plain = {0};
    assert_true(value.at != NULL && json_text_kind(value) == JSON_TEXT_STRING);
    assert_true(json_text_unescape(value, &plain));
    if (strstr(buffer_string(&plain), part) == NULL)
        fail_msg("'%s' does not say '%s'", buffer_string(&plain), part);
    buffer_free(&plain);
}

static void expect_result(struct text document, const char *check, bool ok, const char *message)
{
    struct text row = result_of(document, check), remedy = json_text_member(row, TEXT("remedy"));
    assert_true(text_equals(json_text_member(row, TEXT("ok")), text_of(ok ? "true" : "false")));
    expect_text(json_text_member(row, TEXT("message")), message);
    assert_int_equal(json_text_kind(remedy) == JSON_TEXT_STRING, !ok);
}

static void expect_remedy(struct text document, const char *check, const char *remedy)
{
    expect_text(json_text_member(result_of(document, check), TEXT("remedy")), remedy);
}

TEST(when_all_is_well_it_succeeds)
{
    make_stores();
    write_config("listen = 127.0.0.1:0", "odds", "platform.db");
    struct text document = check(EXIT_DONE);
    assert_int_equal(json_text_count(document), 7);
    expect_result(document, "configuration", true, config_path);
    expect_result(document, "tls", true, "plain HTTP");
    expect_result(document, "server.listen", true, "127.0.0.1:0 is free");
    expect_result(document, "operator.listen", true, "127.0.0.1:0 is free");
    expect_result(document, "odds store", true, "answers");
    expect_result(document, "platform store", true, "answers");
    expect_result(document, "secrets key", true, "secrets.key");
}

TEST(all_that_is_wrong_is_told_at_once)
{
    write_config("listen = 192.0.2.1:0\ntls_certificate = /nonexistent/c.pem\n"
                 "tls_key = /nonexistent/k.pem",
                 "nowhere/odds", "nowhere/platform.db");
    struct text document = check(EXIT_REFUSED);
    expect_result(document, "configuration", true, config_path);
    expect_result(document, "tls", false, "/nonexistent/c.pem");
    expect_result(document, "server.listen", false, "192.0.2.1:0 cannot be listened on");
    expect_result(document, "odds store", false,
                  "nowhere/odds is not there and cannot be made in its directory: No such file");
    expect_remedy(document, "odds store", "make that directory");
    expect_result(document, "platform store", false, "nowhere/platform.db");
}

/* A migration in the place of a disk that is not mounted would make another store. */
TEST(a_platform_store_that_is_not_there_is_not_made_anew_at_once)
{
    char path[256];
    make_stores();
    write_config("listen = 127.0.0.1:0", "odds", "away.db");
    struct text document = check(EXIT_REFUSED);
    expect_result(document, "platform store", false, "is its disk mounted?");
    expect_remedy(document, "platform store", "must be able to read and write it");
    (void)snprintf(path, sizeof path, "%s/away.db", directory);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    (void)fclose(file);
    document = check(EXIT_REFUSED);
    expect_result(document, "platform store", false, "is empty; run: croupier migrate");
    expect_remedy(document, "platform store", "do as the message says");
}

TEST(an_odds_store_that_can_be_made_is_fine)
{
    make_stores();
    write_config("listen = 127.0.0.1:0", "not-yet", "platform.db");
    struct text document = check(EXIT_DONE);
    expect_result(document, "odds store", true, "not there yet");
}

TEST(a_configuration_that_is_refused_is_the_only_check)
{
    write_config("listen = here\nthreads = few", "odds", "platform.db");
    struct text document = check(EXIT_USAGE);
    assert_int_equal(json_text_count(document), 2);
    expect_result(document, "configuration", false, ":2: [server] listen: ");
}

TEST(a_configuration_that_is_not_there_asks_for_another)
{
    (void)unlink(config_path);
    struct text document = check(EXIT_USAGE);
    expect_result(document, "configuration", false, "No such file");
    expect_remedy(document, "configuration", "name a file that is there with -c");
}

/* The file of an installed croupier is for root and the service: others need to know who may run it. */
TEST(a_configuration_that_may_not_be_read_names_the_user_to_be)
{
    write_config("listen = 127.0.0.1:0", "odds", "platform.db");
    assert_int_equal(chmod(config_path, 0), 0);
    uid_t user = geteuid();
    if (user == 0)
        assert_int_equal(seteuid(65534), 0);
    struct text document = check(EXIT_USAGE);
    if (user == 0)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(config_path, 0600), 0);
    expect_result(document, "configuration", false, "Permission denied");
    expect_remedy(document, "configuration", "sudo -u croupier croupier check");
}

/* Answers the first who connects as no croupier does, and ends. */
static void *answer_strangely(void *context)
{
    static const char greeting[] = "220 mail.example ESMTP\r\n";
    int connection = accept(*(int *)context, NULL, NULL);
    assert_int_equal(write(connection, greeting, sizeof greeting - 1), sizeof greeting - 1);
    (void)close(connection);
    return NULL;
}

TEST(an_address_that_something_else_has_is_a_failure)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int other = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(other, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(other, 1), 0);
    assert_int_equal(getsockname(other, (struct sockaddr *)&address, &size), 0);
    char line[64];
    (void)snprintf(line, sizeof line, "listen = 127.0.0.1:%d", ntohs(address.sin_port));
    make_stores();
    write_config(line, "odds", "platform.db");
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, answer_strangely, &other), 0);
    struct text document = check(EXIT_REFUSED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    expect_result(document, "server.listen", false, "something that does not answer as croupier");
    (void)close(other);
}

TESTS_WITH(make_directory, remove_directory);
