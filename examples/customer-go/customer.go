// A customer of croupier in one file: polls odds, launches a game, and moves a player's money so
// that nothing is lost or done twice, even when this program or the server is killed in between.
// README.md shows how to run it.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const waitSeconds = 55 // how long a poll may wait for a change

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

var (
	base    = strings.TrimSuffix(strings.TrimRight(setting("BASE", "http://127.0.0.1:8080"), "/"), "/api/v1")
	key     = os.Getenv("KEY")
	journal = setting("JOURNAL", "wallet.journal")
	client  = http.Client{}
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "customer:", err)
		os.Exit(1)
	}
}

// Ends the program with the sentence of an error document.
func refuse(status int, text []byte) {
	var document struct{ Error, Message string }
	if json.Unmarshal(text, &document) != nil || document.Message == "" {
		must(fmt.Errorf("the server answered %d: %s", status, text))
	}
	must(fmt.Errorf("%s (%d %s)", document.Message, status, document.Error))
}

// Waits before the next attempt: for Retry-After, where the answer has it.
func wait(fields http.Header, otherwise time.Duration) {
	if seconds, err := strconv.Atoi(fields.Get("Retry-After")); err == nil {
		otherwise = time.Duration(seconds) * time.Second
	}
	time.Sleep(otherwise)
}

// Status, headers and text of an answer; an error when there is none.
func ask(method, path string, body []byte, headers map[string]string, timeout time.Duration) (int, http.Header, []byte, error) {
	client.Timeout = timeout
	request, err := http.NewRequest(method, base+path, bytes.NewReader(body))
	must(err)
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, answer.Header, text, err
}

// ---- odds ------------------------------------------------------------------------------------

type event struct {
	Odds []struct {
		MarketName string `json:"marketName"`
		Runners    []struct {
			RunnerName string `json:"runnerName"`
			Ex         struct {
				AvailableToBack []struct {
					Price json.Number `json:"price"`
				} `json:"availableToBack"`
			} `json:"ex"`
		} `json:"runners"`
	} `json:"odds"`
}

// The best price of each runner.
func printPrices(text []byte) {
	var now event
	must(json.Unmarshal(text, &now))
	for _, market := range now.Odds {
		for _, runner := range market.Runners {
			back := runner.Ex.AvailableToBack
			if len(back) > 0 && back[0].Price != "" && back[0].Price != "0" {
				fmt.Printf("%s: %s %s\n", market.MarketName, runner.RunnerName, back[0].Price)
			}
		}
	}
}

// Prints an event's prices, and again whenever they change.
func poll(sport, id string, changes int) {
	tag, before := "", []byte(nil)
	for seen := 0; seen < changes; {
		headers := map[string]string{}
		if tag != "" {
			headers = map[string]string{"If-None-Match": tag, "Prefer": fmt.Sprintf("wait=%d", waitSeconds)}
		}
		status, fields, text, err := ask("GET", "/api/v1/"+sport+"/events/"+id, nil, headers, (waitSeconds+5)*time.Second)
		if given := fields.Get("ETag"); given != "" {
			tag = given
		}
		switch {
		case err == nil && status == 200 && !bytes.Equal(text, before):
			before = text
			seen++
			printPrices(text)
		case err == nil && (status == 200 || status == 304): // no change
			if fields.Get("Preference-Applied") == "" {
				time.Sleep(time.Second) // it did not wait, so it is not asked for again at once
			}
		case err != nil || status == 429 || status >= 500 || bytes.Contains(text, []byte("odds_not_found")):
			fmt.Fprintln(os.Stderr, status, string(text), err) // asking again tells the feed that odds are wanted
			wait(fields, time.Second)
		default:
			refuse(status, text)
		}
	}
}

// ---- the wallet ------------------------------------------------------------------------------

// A line of the journal: what is to be sent, or what was answered.
type line struct {
	ID     string `json:"id"`
	Send   string `json:"send,omitempty"`
	Status int    `json:"status,omitempty"`
	Answer string `json:"answer,omitempty"`
}

// Into the journal, and on the disk before this returns.
func note(entry line) {
	text, err := json.Marshal(entry)
	must(err)
	file, err := os.OpenFile(journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(err)
	_, err = file.Write(append(text, '\n'))
	must(err)
	must(file.Sync())
	must(file.Close())
}

// What was to be sent and has no answer yet, in its order. What a kill left of a line is cut off: it
// was not sent, and the next one begins a line.
func unanswered() (waiting []line) {
	text, err := os.ReadFile(journal)
	if os.IsNotExist(err) {
		return nil
	}
	must(err)
	whole := bytes.LastIndexByte(text, '\n') + 1
	must(os.Truncate(journal, int64(whole)))
	answered := map[string]bool{}
	for _, part := range bytes.Split(text[:whole], []byte{'\n'}) {
		var entry line
		if len(part) > 0 {
			must(json.Unmarshal(part, &entry))
		}
		if entry.Send != "" {
			waiting = append(waiting, entry)
		}
		answered[entry.ID] = entry.Send == ""
	}
	open := waiting[:0]
	for _, entry := range waiting {
		if !answered[entry.ID] {
			open = append(open, entry)
		}
	}
	return open
}

// The refusals beside 409 and 422 that decide: this operation was not applied, in an earlier attempt either. player_not_found
// decides about a first attempt alone: an earlier one may have been applied with the key of another customer of yours.
var decides = regexp.MustCompile(`"error":"(player_blocked|reference_not_found|game_not_found|invalid_request|unknown_field)"`)

// Sends the same bytes under the same id until there is an answer, which is kept: whether it was applied. first: nobody has sent
// them yet.
func settle(entry line, first bool) bool {
	for pause := 100 * time.Millisecond; ; pause *= 2 {
		status, fields, text, err := ask("POST", "/api/v1/casino/wallet", []byte(entry.Send), nil, 15*time.Second)
		if err == nil && (status == 200 || status == 409 || status == 422 || decides.Match(text) ||
			first && bytes.Contains(text, []byte(`"player_not_found"`))) {
			note(line{ID: entry.ID, Status: status, Answer: string(text)})
			fmt.Println(status, string(text))
			return status == 200
		}
		if err == nil && status >= 400 && status < 500 && status != 408 && status != 429 {
			refuse(status, text) // of the key, the address or the HTTP: the operation stays in the journal, applied before or not
		}
		if pause > 10*time.Second {
			pause = 10 * time.Second
		}
		first = false
		fmt.Fprintf(os.Stderr, "no answer yet (%d %s %v); the same again\n", status, text, err)
		wait(fields, pause)
	}
}
