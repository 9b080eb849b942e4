// Keeps a copy of your entries and proves its days equal to the operator's, also after a kill. README.md shows how to run it.

import java.io.*;
import java.net.URI;
import java.net.http.*;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.time.*;
import java.util.*;
import java.util.regex.*;
import java.util.stream.LongStream;

public final class Reconcile {
    static final String BASE = setting("BASE", "http://127.0.0.1:8080").replaceFirst("(/api/v1)?/*$", "");
    static final String KEY = setting("ACCOUNT_KEY", "");
    static final Path COPY = Path.of(setting("COPY", "entries.copy"));
    static final HttpClient CLIENT = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1)
            .connectTimeout(Duration.ofSeconds(5)).build();

    static String setting(String name, String otherwise) {
        String value = System.getenv(name);
        return value == null || value.isEmpty() ? otherwise : value;
    }

    /** Ends the program with a sentence. */
    static void fail(String sentence) {
        System.err.println("Reconcile: " + sentence);
        System.exit(1);
    }

    /** The text of an answer. Asks again while the server is busy or away. */
    static String get(String path) throws InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create(BASE + "/api/v1/account/" + path)).timeout(Duration.ofSeconds(15))
                .header("Authorization", "Bearer " + KEY).build();
        for (;;) {
            String reason;
            long pauseS = 1;
            try {
                HttpResponse<String> answer = CLIENT.send(request, HttpResponse.BodyHandlers.ofString());
                reason = answer.statusCode() + " " + answer.body();
                if (answer.statusCode() == 200)
                    return answer.body();
                if (answer.statusCode() != 429 && answer.statusCode() < 500)
                    fail(reason);
                pauseS = answer.headers().firstValueAsLong("Retry-After").orElse(pauseS);
            } catch (IOException failed) {
                reason = failed.toString();
            }
            System.err.println("no answer yet (" + reason + "); the same again");
            Thread.sleep(1000 * pauseS);
        }
    }

    // Java has no JSON of its own. Of what is read here, each row is an object without another one in it.
    static final String STRING = "\"(?:[^\"\\\\]++|\\\\.)*+\"";
    static final Pattern ROW = Pattern.compile("\\{(?:[^{}\"]++|" + STRING + ")*+\\}");
    static final Pattern MEMBER = Pattern.compile("(" + STRING + "):(" + STRING + "|[^,{}\\[\\]]++)");

    /** The rows of a list, by the names of their members. */
    static List<Map<String, String>> rows(String text) {
        List<Map<String, String>> rows = new ArrayList<>();
        for (Matcher row = ROW.matcher(text.substring(text.indexOf('['))); row.find();)
            rows.add(members(row.group()));
        return rows;
    }

    static Map<String, String> members(String text) {
        Map<String, String> members = new HashMap<>();
        for (Matcher member = MEMBER.matcher(text); member.find();)
            members.put(member.group(1).replace("\"", ""), member.group(2).replace("\"", ""));
        return members;
    }

    /** Brings the copy up to now, and returns its entries. A line is a page as it came: its cursor stands or falls with its entries. */
    static List<Map<String, String>> copyEntries() throws IOException, InterruptedException {
        List<Map<String, String>> entries = new ArrayList<>();
        String text = Files.exists(COPY) ? Files.readString(COPY, StandardCharsets.ISO_8859_1) : "";
        String whole = text.substring(0, text.lastIndexOf('\n') + 1);
        String cursor = "";
        for (String line : whole.lines().toList()) {
            entries.addAll(rows(line));
            cursor = "&cursor=" + members(line.substring(line.lastIndexOf(']'))).get("next_cursor");
        }
        try (FileChannel copy = FileChannel.open(COPY, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
            copy.truncate(whole.length()); // what a kill left of a line is asked for again
            copy.position(whole.length());
            for (boolean more = true; more;) {
                String page = get("entries?limit=200" + cursor);
                List<Map<String, String>> found = rows(page);
                Map<String, String> rest = members(page.substring(page.lastIndexOf(']')));
                cursor = "&cursor=" + rest.get("next_cursor");
                more = rest.get("more").equals("true");
                entries.addAll(found);
                if (more || !found.isEmpty()) {
                    for (ByteBuffer line = StandardCharsets.UTF_8.encode(page + "\n"); line.hasRemaining();)
                        copy.write(line);
                    copy.force(true);
                }
            }
        }
        return entries;
    }

    /** By day and currency: how many entries, what they took, gave, and gave and took back. */
    static SortedMap<String, Map<String, long[]>> mine(List<Map<String, String>> entries) {
        SortedMap<String, Map<String, long[]>> sums = new TreeMap<>();
        for (Map<String, String> entry : entries) {
            long moved = Long.parseLong(entry.get("movement_minor"));
            long[] row = sums.computeIfAbsent(entry.get("created_at").substring(0, 10), day -> new HashMap<>())
                    .computeIfAbsent(entry.get("currency"), currency -> new long[5]);
            row[0]++;
            row[entry.get("operation").equals("ROLLBACK") ? moved > 0 ? 3 : 4 : moved < 0 ? 1 : 2] += Math.abs(moved);
        }
        return sums;
    }

    static final String[] GAVE = {"wins_minor", "promos_minor", "jackpots_minor", "adjustments_minor", "transfers_in_minor"};
    static final String[] TOOK = {"stakes_minor", "transfers_out_minor"};

    static long add(Map<String, String> row, String before, String... names) {
        return Arrays.stream(names).mapToLong(name -> Long.parseLong(row.get(before + name))).sum();
    }

    /** The same of a day, by currency, from the operator's totals. */
    static Map<String, long[]> theirs(LocalDate day) throws InterruptedException {
        Map<String, long[]> sums = new HashMap<>();
        for (Map<String, String> row : rows(get("days?day=" + day)))
            sums.put(row.get("currency"), new long[] {add(row, "", "entries"), add(row, "", TOOK), add(row, "", GAVE),
                    add(row, "rolled_back_", TOOK), add(row, "rolled_back_", GAVE)});
        return sums;
    }

    static String words(long[] sums) {
        return String.join(" ", LongStream.of(sums == null ? new long[5] : sums).mapToObj(Long::toString).toList());
    }

    public static void main(String[] words) throws IOException, InterruptedException {
        Thread.setDefaultUncaughtExceptionHandler((thread, failed) -> fail("with the server " + BASE + " or the copy: " + failed));
        if (KEY.isEmpty())
            fail("set ACCOUNT_KEY to a key with the area account (crk_…)");
        LocalDate today = LocalDate.now(ZoneOffset.UTC), first = today, last = today.minusDays(1); // today is not over
        boolean right = words.length <= 2 && Arrays.stream(words).allMatch(word -> word.length() == 10);
        try {
            first = words.length > 0 ? LocalDate.parse(words[0]) : today;
            last = words.length > 1 ? LocalDate.parse(words[1]) : last;
        } catch (DateTimeException noDay) {
            right = false;
        }
        if (!right || words.length > 0 && (first.isAfter(last) || last.isAfter(today))) {
            System.err.println("Reconcile [FIRST [LAST]]: days as 2026-11-29, in their order, LAST no later than today (UTC); without it, yesterday");
            System.exit(2);
        }
        SortedMap<String, Map<String, long[]>> days = mine(copyEntries());
        LocalDate day = words.length > 0 || days.isEmpty() ? first : LocalDate.parse(days.firstKey());
        boolean differ = false;
        for (; !day.isAfter(last); day = day.plusDays(1)) {
            Map<String, long[]> here = days.getOrDefault(day.toString(), Map.of()), there = theirs(day);
            SortedSet<String> currencies = new TreeSet<>(here.keySet());
            currencies.addAll(there.keySet());
            for (String currency : currencies) {
                String ours = words(here.get(currency)), other = words(there.get(currency));
                differ |= !ours.equals(other);
                System.out.println(day + " " + currency + " " + ours + (ours.equals(other) ? " equal" : " here, but " + other + " there"));
            }
        }
        System.exit(differ ? 1 : 0);
    }
}
