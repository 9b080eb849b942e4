/* What nodes of a Redis Cluster say. */
#include "tests.h"

#include <string.h>

#include "stores/odds/redis/cluster.h"

#define TAIL " 0 1795525625366 "

static struct redis_cluster_view view;

static void read_nodes(const char *nodes, uint32_t slot, bool names)
{
    const struct redis_host asked = {.name = "asked", .port = 1};
    redis_cluster_read(text_of(nodes), slot, &asked, names, &view);
}

TEST(the_slot_is_that_of_the_hash_tag)
{
    uint32_t slot = 0;
    uint32_t other = 0;
    assert_true(redis_cluster_slot("{croupier}:", &slot));
    assert_int_equal(slot, 10240); /* as CLUSTER KEYSLOT says */
    assert_true(redis_cluster_slot("a{123456789}{b}", &slot));
    assert_int_equal(slot, 0x31C3); /* of the specification */
    assert_true(redis_cluster_slot("x:{{croupier}}:", &other));
    assert_int_not_equal(other, 10240);
    static const char *const none[] = {"", "croupier:", "{}x{y}", "}{", "{croupier"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_false(redis_cluster_slot(none[i], &slot));
}

TEST(the_master_of_a_slot_and_all_nodes)
{
    static const char nodes[] =
        "a1 10.0.0.1:7000@17000 master -" TAIL "1 connected 0-99 200 300-400\n"
        "a2 :7001@17001,host-2 myself,slave a1" TAIL "1 connected\n"
        "a3 ::1:7002@17002,host-3,shard-id=7 master -" TAIL "18 connected 100-199 201 [300->-a1]\n"
        "a4 :0@0 master,noaddr -" TAIL "9 disconnected\n"
        "a5 10.0.0.5:7004@17004 handshake -" TAIL "9 connected\n";
    read_nodes(nodes, 201, false);
    assert_int_equal(view.node_count, 3);
    assert_string_equal(view.nodes[1].name, "asked");
    assert_int_equal(view.nodes[1].port, 7001);
    assert_string_equal(view.master.name, "::1");
    assert_int_equal(view.master.port, 7002);
    assert_int_equal(view.epoch, 18);
    read_nodes(nodes, 201, true);
    assert_string_equal(view.master.name, "host-3");
    assert_string_equal(view.nodes[0].name, "10.0.0.1");
    static const uint32_t of_the_first[] = {0, 99, 200, 300, 400};
    for (size_t i = 0; i < sizeof of_the_first / sizeof of_the_first[0]; i++) {
        read_nodes(nodes, of_the_first[i], false);
        assert_int_equal(view.master.port, 7000);
    }
    read_nodes(nodes, 401, false);
    assert_int_equal(view.master.port, 0);
}

TEST(lines_that_are_cut_name_no_master)
{
    static const char line[] = "a1 10.0.0.1:7000@17000 master -" TAIL "1 connected 0-99";
    for (size_t size = 0; size < sizeof line - 4; size++) {
        char cut[sizeof line] = "";
        memcpy(cut, line, size);
        read_nodes(cut, 5, true);
        assert_int_equal(view.master.port, 0);
    }
    read_nodes("a1 h:70000@1 master -" TAIL "1 connected 0-99", 5, false);
    assert_int_equal(view.node_count, 0);
}

TEST(only_so_many_nodes_are_remembered)
{
    char nodes[4096] = "";
    for (int i = 1; i <= 40; i++)
        (void)snprintf(nodes + strlen(nodes), sizeof nodes - strlen(nodes),
                       "n h%d:%d@1 master -" TAIL "1 connected %d\n", i, i, i);
    read_nodes(nodes, 40, false);
    assert_int_equal(view.node_count, REDIS_HOSTS_MAX);
    assert_string_equal(view.master.name, "h40");
}

static enum redis_redirect redirect(const char *text, struct redis_host *host)
{
    struct redis_reply reply = {.type = REDIS_ERROR, .text = text_of(text)};
    return redis_redirect_read(&reply, "asked", host);
}

TEST(redirections)
{
    struct redis_host host = {.port = 0};
    assert_int_equal(redirect("MOVED 10240 10.0.0.1:7000", &host), REDIS_MOVED);
    assert_int_equal(redirect("TRYAGAIN Multiple keys request", &host), REDIS_LATER);
    assert_int_equal(redirect("ASK 10240 ::1:7000", &host), REDIS_ASK);
    assert_string_equal(host.name, "::1");
    assert_int_equal(host.port, 7000);
    assert_int_equal(redirect("ASK 10240 :7001", &host), REDIS_ASK);
    assert_string_equal(host.name, "asked");
    assert_int_equal(redirect("ASK 10240 ?:7001", &host), REDIS_ASK);
    assert_string_equal(host.name, "asked");
    static const char *const others[] = {"", "ASK", "ASKING x", "ERR MOVED 1 a:1", "CLUSTERDOWN x"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_int_equal(redirect(others[i], &host), REDIS_NOT_REDIRECTED);
    static const char *const broken[] = {"ASK 1", "ASK 1 a", "ASK 1 a:", "ASK 1 a:0", "ASK 1 a:x"};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++)
        assert_int_equal(redirect(broken[i], &host), REDIS_LATER);
}
