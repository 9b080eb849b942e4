/* admission/policies against the real embedded store: the last use of a key arrives in it. */
#include <time.h>
#include <unistd.h>

#include "admission/admission.h"
#include "admission/key.h"
#include "base/clock.h"
#include "base/memory.h"
#include "question.h"
#include "stores/platform_records.h"
#include "test_directory.h"
#include "tests.h"

#define PATIENCE_MS 60000U

struct scene {
    char directory[TEST_DIRECTORY_SIZE];
    char uri[96];
    struct platform_store *store; /* the operator's handle */
    struct policies *policies;
    struct admission *admission;
};

static int set_up(void **state)
{
    struct scene *scene = memory_alloc_zeroed(1, sizeof *scene);
    struct error error = {.text = ""};
    uint32_t before;
    uint32_t after;
    test_directory_make(scene->directory);
    (void)snprintf(scene->uri, sizeof scene->uri, "sqlite:%s/platform.db", scene->directory);
    struct platform_store_options store = {.uri = scene->uri, .timeout_ms = 30000, .create = true};
    assert_int_equal(platform_store_open(&scene->store, &store, &error), STATUS_OK);
    assert_int_equal(platform_store_migrate(scene->store, &before, &after, &error), STATUS_OK);
    store.create = false;
    scene->policies = policies_create(&store, 5);
    scene->admission = admission_create(scene->policies, (struct cidr_list){0});
    assert_true(wait_until_ready(scene->policies, PATIENCE_MS));
    *state = scene;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;
    char path[128];
    static const char *const endings[] = {"", "-wal", "-shm"};
    admission_destroy(&scene->admission);
    policies_destroy(&scene->policies);
    platform_store_close(&scene->store);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/platform.db%s", scene->directory, endings[i]);
        (void)unlink(path);
    }
    (void)rmdir(scene->directory);
    memory_free(scene);
    return 0;
}

static struct customer_record add_customer(struct scene *scene)
{
    struct error error = {.text = ""};
    struct customer_record record = {.enabled = true,
                                     .usable = true,
                                     .sports = SPORT_SET_ALL,
                                     .cidr_count = 1,
                                     .created_ms = clock_wall_ms()};
    assert_int_equal(cidr_parse(TEXT("192.0.2.0/24"), &record.cidrs[0], NULL), STATUS_OK);
    record_id_generate("cus_", record.id, sizeof record.id);
    (void)snprintf(record.name, sizeof record.name, "a customer");
    assert_int_equal(platform_add(scene->store, &customer_table, &record, &error), STATUS_OK);
    return record;
}

static struct key_record add_key(struct scene *scene, const char *customer_id, char out[KEY_SIZE])
{
    struct error error = {.text = ""};
    struct key_record record = {.created_ms = clock_wall_ms()};
    key_generate(out);
    record_id_generate("key_", record.id, sizeof record.id);
    memcpy(record.customer_id, customer_id, sizeof record.customer_id);
    key_prefix(text_of(out), record.prefix);
    key_digest(text_of(out), record.digest);
    assert_int_equal(platform_add(scene->store, &key_table, &record, &error), STATUS_OK);
    return record;
}

static enum admission_denial ask(struct scene *scene, const char *key)
{
    const struct policy *policy;
    struct address client;
    struct admission_question question = {.api_key_count = 1,
                                          .api_key = text_of(key),
                                          .now_mono_ms = 0, /* no table is too old */
                                          .now_wall_ms = clock_wall_ms()};
    assert_int_equal(address_parse(TEXT("192.0.2.1"), &question.peer), STATUS_OK);
    return question_judge(scene->admission, NULL, &question, &policy, &client);
}

static bool becomes(struct scene *scene, const char *key, enum admission_denial expected)
{
    uint64_t began_ms = clock_monotonic_ms();
    while (ask(scene, key) != expected) {
        struct timespec moment = {.tv_nsec = 1000000};
        (void)nanosleep(&moment, NULL);
        if (clock_monotonic_ms() - began_ms > PATIENCE_MS)
            return false;
    }
    return true;
}

static bool keep_last_use(void *context, const void *visited)
{
    const struct key_record *record = visited;
    int64_t *last_used_ms = context;
    *last_used_ms = record->last_used_ms;
    return true;
}

TEST_OF(scene, the_last_use_arrives_in_the_store)
{
    struct error error = {.text = ""};
    char key[KEY_SIZE];
    int64_t last_used_ms = 0;
    struct customer_record customer = add_customer(scene);
    (void)add_key(scene, customer.id, key);
    int64_t began_ms = clock_wall_ms();
    assert_true(becomes(scene, key, DENIAL_NONE));
    admission_destroy(&scene->admission);
    policies_destroy(&scene->policies);
    assert_int_equal(
        platform_list(scene->store, &key_table, customer.id, keep_last_use, &last_used_ms, &error),
        STATUS_OK);
    assert_true(last_used_ms >= began_ms);
}
