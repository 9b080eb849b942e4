package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"
)

const usage = "customer poll SPORT EVENT CHANGES | launch GAME REFERENCE CURRENCY | " +
	"deposit|withdraw PLAYER AMOUNT_MINOR CURRENCY | bet PLAYER AMOUNT_MINOR CURRENCY GAME ROUND | " +
	"win PLAYER AMOUNT_MINOR CURRENCY GAME ROUND BET | settle; an amount is in digits: 250 is 2.50 EUR"

func launch(game, reference, currency string) {
	body, err := json.Marshal(map[string]string{"mode": "real", "player_reference": reference, "currency": currency})
	must(err)
	status, _, text, err := ask("POST", "/api/v1/casino/games/"+game+"/launch", body, nil, 15*time.Second)
	must(err)
	if status != 200 {
		refuse(status, text)
	}
	fmt.Println(string(text))
}

// The fields that a command takes, in their order. A stake names its game and round, and so does
// its win, which also names the stake's transaction_id. A DEBIT that names neither game nor round
// is money out: a blocked player's is not refused.
var names = []string{"player_id", "amount_minor", "currency", "game_id", "round_id", "reference_transaction_id"}

// A command's operation, and how many of the fields it takes.
var moves = map[string]struct {
	operation string
	takes     int
}{"deposit": {"CREDIT", 3}, "withdraw": {"DEBIT", 3}, "bet": {"DEBIT", 5}, "win": {"CREDIT", 6}}

func move(operation string, words []string) bool {
	var random [16]byte
	_, err := rand.Read(random[:])
	must(err)
	id := hex.EncodeToString(random[:])
	fields := map[string]interface{}{"operation": operation, "transaction_id": id}
	for at, word := range words {
		fields[names[at]] = word
	}
	fields["amount_minor"], err = strconv.ParseInt(words[1], 10, 64)
	must(err)
	body, err := json.Marshal(fields)
	must(err)
	entry := line{ID: id, Send: string(body)}
	note(entry)
	return settle(entry, true)
}

var digits = regexp.MustCompile("^[0-9]{1,13}$") // the wallet takes amounts to 10^12

// Whether a command has the words that it takes.
func right(command string, words []string) bool {
	chosen, moving := moves[command]
	switch {
	case command == "settle":
		return len(words) == 1
	case command == "launch":
		return len(words) == 4
	case command == "poll":
		return len(words) == 4 && digits.MatchString(words[3])
	}
	return moving && len(words) == 1+chosen.takes && digits.MatchString(words[2])
}

func main() {
	words := os.Args[1:]
	command := ""
	if len(words) > 0 {
		command = words[0]
	}
	if key == "" {
		must(errors.New("set KEY to the key that the operator gave you (crk_…)"))
	}
	if !right(command, words) {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	applied := true
	chosen, moving := moves[command]
	if command == "settle" || moving {
		for _, entry := range unanswered() { // first what was left open
			applied = settle(entry, false) && applied
		}
	}
	switch {
	case command == "poll":
		changes, err := strconv.Atoi(words[3])
		must(err)
		poll(words[1], words[2], changes)
	case command == "launch":
		launch(words[1], words[2], words[3])
	case moving:
		applied = move(chosen.operation, words[1:]) && applied
	}
	if !applied {
		os.Exit(1)
	}
}
