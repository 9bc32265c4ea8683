//go:build tiktoken

package main

import (
	"encoding/base64"
	"os"
	"strconv"
	"strings"

	"github.com/pkoukk/tiktoken-go"
)

// ranks is a file of ranks, instead of a download.
type ranks string

func (path ranks) LoadTiktokenBpe(string) (map[string]int, error) {
	text, err := os.ReadFile(string(path))
	if err != nil {
		return nil, err
	}
	loaded := map[string]int{}
	for line := range strings.Lines(string(text)) {
		token, rank, _ := strings.Cut(strings.TrimSpace(line), " ")
		loaded[string(must(base64.StdEncoding.DecodeString(token)))] = must(strconv.Atoi(rank))
	}
	return loaded, nil
}

func init() {
	tiktoken.SetBpeLoader(ranks(os.Args[2]))
	encoding := must(tiktoken.GetEncoding("o200k_base"))
	counters["tiktoken-go"] = func(text string) int { return len(encoding.EncodeOrdinary(text)) }
}
