package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

const usage = "customer poll SPORT EVENT CHANGES | launch GAME REFERENCE CURRENCY | " +
	"debit|credit PLAYER AMOUNT_MINOR CURRENCY | settle"

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

func move(operation, player, amountMinor, currency string) bool {
	var random [16]byte
	_, err := rand.Read(random[:])
	must(err)
	amount, err := strconv.ParseInt(amountMinor, 10, 64)
	must(err)
	id := hex.EncodeToString(random[:])
	body, err := json.Marshal(map[string]interface{}{"operation": operation, "player_id": player,
		"transaction_id": id, "amount_minor": amount, "currency": currency})
	must(err)
	entry := line{ID: id, Send: string(body)}
	note(entry)
	return settle(entry)
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
	applied := true
	if command == "settle" || len(words) == 4 && (command == "debit" || command == "credit") {
		for _, entry := range unanswered() { // first what was left open
			applied = settle(entry) && applied
		}
	}
	switch {
	case command == "settle":
	case command == "poll" && len(words) == 4:
		changes, err := strconv.Atoi(words[3])
		must(err)
		poll(words[1], words[2], changes)
	case command == "launch" && len(words) == 4:
		launch(words[1], words[2], words[3])
	case command == "debit" && len(words) == 4:
		applied = move("DEBIT", words[1], words[2], words[3]) && applied
	case command == "credit" && len(words) == 4:
		applied = move("CREDIT", words[1], words[2], words[3]) && applied
	default:
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	if !applied {
		os.Exit(1)
	}
}
