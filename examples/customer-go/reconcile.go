//go:build ignore

// Keeps a copy of your entries and proves its days equal to the operator's, also after a kill. README.md shows how to run it.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"
)

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

var (
	base     = strings.TrimSuffix(strings.TrimRight(setting("BASE", "http://127.0.0.1:8080"), "/"), "/api/v1")
	key      = os.Getenv("ACCOUNT_KEY")
	copyName = setting("COPY", "entries.copy")
	client   = http.Client{Timeout: 15 * time.Second}
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "reconcile:", err)
		os.Exit(1)
	}
}

// The text of an answer. Asks again while the server is busy or away.
func get(path string) []byte {
	for {
		pause := time.Second
		request, err := http.NewRequest("GET", base+"/api/v1/account/"+path, nil)
		must(err)
		request.Header.Set("Authorization", "Bearer "+key)
		answer, err := client.Do(request)
		var text []byte
		if err == nil {
			text, err = io.ReadAll(answer.Body)
			answer.Body.Close()
		}
		if err == nil && answer.StatusCode == 200 {
			return text
		}
		if err == nil {
			err = fmt.Errorf("%d %s", answer.StatusCode, text)
			if answer.StatusCode != 429 && answer.StatusCode < 500 {
				must(err)
			}
			if seconds, bad := strconv.Atoi(answer.Header.Get("Retry-After")); bad == nil {
				pause = time.Duration(seconds) * time.Second
			}
		}
		fmt.Fprintf(os.Stderr, "no answer yet (%v); the same again\n", err)
		time.Sleep(pause)
	}
}

type entry struct {
	CreatedAt string `json:"created_at"`
	Currency  string
	Operation string
	Movement  int64 `json:"movement_minor"`
}

type page struct {
	Entries []entry
	More    bool
	Next    string `json:"next_cursor"`
}

// Brings the copy up to now, and returns its entries. A line is a page as it came: its cursor stands or falls with its entries.
func copyEntries() (entries []entry) {
	file, err := os.OpenFile(copyName, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	must(err)
	text, err := io.ReadAll(file)
	must(err)
	whole := bytes.LastIndexByte(text, '\n') + 1
	must(file.Truncate(int64(whole))) // what a kill left of a line is asked for again
	last := page{More: true}
	take := func(line []byte) {
		last = page{}
		must(json.Unmarshal(line, &last))
		entries = append(entries, last.Entries...)
	}
	for _, line := range bytes.SplitAfter(text[:whole], []byte{'\n'}) {
		if len(line) > 0 {
			take(line)
		}
	}
	for last.More = true; last.More; {
		query := "entries?limit=200"
		if last.Next != "" {
			query += "&cursor=" + last.Next
		}
		line := get(query)
		take(line)
		if last.More || len(last.Entries) > 0 {
			_, err = file.Write(append(line, '\n'))
			must(err)
			must(file.Sync())
		}
	}
	must(file.Close())
	return entries
}

// How many entries, what they took, gave, and gave and took back.
type sums [5]int64

// By day and currency.
func mine(entries []entry) map[string]map[string]sums {
	days := map[string]map[string]sums{}
	for _, entry := range entries {
		day := entry.CreatedAt[:10]
		if days[day] == nil {
			days[day] = map[string]sums{}
		}
		row, at, moved := days[day][entry.Currency], 2, entry.Movement
		if moved < 0 {
			at, moved = 1, -moved
		}
		if entry.Operation == "ROLLBACK" {
			at = 5 - at
		}
		row[0]++
		row[at] += moved
		days[day][entry.Currency] = row
	}
	return days
}

var gave = []string{"wins_minor", "promos_minor", "jackpots_minor", "adjustments_minor", "transfers_in_minor"}
var took = []string{"stakes_minor", "transfers_out_minor"}

// The same of a day, by currency, from the operator's totals.
func theirs(day string) map[string]sums {
	var document struct{ Days []map[string]interface{} }
	decoder := json.NewDecoder(bytes.NewReader(get("days?day=" + day)))
	decoder.UseNumber()
	must(decoder.Decode(&document))
	found := map[string]sums{}
	for _, row := range document.Days {
		add := func(before string, names ...string) (sum int64) {
			for _, name := range names {
				value, err := row[before+name].(json.Number).Int64()
				must(err)
				sum += value
			}
			return sum
		}
		found[row["currency"].(string)] = sums{add("", "entries"), add("", took...), add("", gave...), add("rolled_back_", took...), add("rolled_back_", gave...)}
	}
	return found
}

const form = "2006-01-02" // of a day

// The first and the last day of the arguments; without any, today and yesterday.
func asked(words []string) (string, string) {
	now := time.Now().UTC()
	days := []string{now.Format(form), now.AddDate(0, 0, -1).Format(form)} // today is not over
	copy(days, words)
	_, bad := time.Parse(form, days[0])
	_, worse := time.Parse(form, days[1])
	if len(words) > 2 || bad != nil || worse != nil || len(words) > 0 && (days[0] > days[1] || days[1] > now.Format(form)) {
		fmt.Fprintln(os.Stderr, "reconcile [FIRST [LAST]]: days as 2026-11-29, in their order, LAST no later than today (UTC); without it, yesterday")
		os.Exit(2)
	}
	return days[0], days[1]
}

func main() {
	if key == "" {
		must(errors.New("set ACCOUNT_KEY to a key with the area account (crk_…)"))
	}
	first, last := asked(os.Args[1:])
	days := mine(copyEntries())
	for day := range days {
		if len(os.Args) == 1 && day < first {
			first = day
		}
	}
	status := 0
	day, err := time.Parse(form, first)
	must(err)
	for ; day.Format(form) <= last; day = day.AddDate(0, 0, 1) {
		name := day.Format(form)
		here, there := days[name], theirs(name)
		for currency := range here {
			there[currency] = there[currency] // zeros, where they have nothing
		}
		currencies := []string{}
		for currency := range there {
			currencies = append(currencies, currency)
		}
		sort.Strings(currencies)
		for _, currency := range currencies {
			ours, other := strings.Trim(fmt.Sprint(here[currency]), "[]"), strings.Trim(fmt.Sprint(there[currency]), "[]")
			verdict := "equal"
			if ours != other {
				verdict, status = "here, but "+other+" there", 1
			}
			fmt.Println(name, currency, ours, verdict)
		}
	}
	os.Exit(status)
}
