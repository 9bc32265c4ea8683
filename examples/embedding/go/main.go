// main core.wasm core.abi.json test/core: runs the case files, prints one JSON document. Vocabularies
// lie beside core.wasm.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
)

// Case is a row of any suite.
type Case struct {
	Text
	Title, Name, Pattern, Message, Bytes, Refused, Code string
	MaxBytes, MaxFields                                 *int
	Expect                                              map[string]any
	Spans                                               [][2]int
	Full                                                *bool
	Offset                                              int32
	Rules                                               []Rule
	Masked, MaskedHex                                   *string
	Hold                                                *int32
	Data, Trailers, Rest                                string
	Open                                                bool
	Flags                                               []string
	Listeners                                           [][2]any
	Routes                                              []Route
	Requests                                            []Request
	Encoding                                            string
	Count                                               int32
	IDs                                                 []uint32
	Rate, Unit, Burst                                   float64
	Steps                                               []Step
}

// Step is one demand on a rate bucket.
type Step struct {
	Do               string
	Amount, At       float64
	Is               *bool
	Remaining, Reset *float64
	Wait             any
}

func headProblem(c *Core, each Case) string {
	maxBytes, maxFields := 65536, 100
	if each.MaxBytes != nil {
		maxBytes = *each.MaxBytes
	}
	if each.MaxFields != nil {
		maxFields = *each.MaxFields
	}
	code, head := c.readHead(each.Message, fromLatin1(each.Bytes), maxBytes, maxFields)
	wanted := c.abi[each.Refused]
	if each.Refused != "" && each.Message == "response" {
		wanted = c.abi["ERROR_RESPONSE"] - -wanted%100
	}
	if code != wanted {
		return fmt.Sprintf("code %d instead of %d", code, wanted)
	}
	for key, value := range each.Expect {
		if !isSame(head[key], value, key == "flags") {
			return fmt.Sprintf("%s is %v", key, head[key])
		}
	}
	return ""
}

// isSame compares with what JSON decodes to.
func isSame(actual, expected any, unordered bool) bool {
	var plain any
	text, _ := json.Marshal(actual)
	_ = json.Unmarshal(text, &plain)
	if list, isList := expected.([]any); isList && unordered {
		sort.Slice(list, func(i, j int) bool { return list[i].(string) < list[j].(string) })
	}
	return reflect.DeepEqual(plain, expected)
}

func regexProblem(c *Core, each Case) string {
	handle, err := c.compile(each.Pattern)
	if each.Code != "" {
		if (err == CodeError{c.abi[each.Code], each.Offset}) {
			return ""
		}
		return fmt.Sprint(handle, err)
	}
	if err != nil {
		return err.Error()
	}
	defer c.call("regex_free", handle)
	text := each.Text.bytes()
	found, err := c.findAll(handle, text, 1024)
	if err != nil || len(found) != len(each.Spans) || len(found) > 0 && !reflect.DeepEqual(found, each.Spans) {
		return fmt.Sprint(found, err)
	}
	if c.test("regex_is_match", handle, text) != (len(found) > 0) {
		return "is_match differs"
	}
	if each.Full != nil && c.test("regex_full_match", handle, text) != *each.Full {
		return "full_match differs"
	}
	return ""
}

// bodyProblem reads a body whole, cut at every byte, and everywhere at once.
func bodyProblem(c *Core, each Case) string {
	bytes := fromLatin1(each.Bytes)
	wanted := body{c.abi["CHUNKS_END"], each.Data, each.Trailers, each.Rest, append([]string(nil), each.Flags...)}
	if each.Open {
		wanted.code = c.abi["CHUNKS_MORE"]
	}
	sort.Strings(wanted.flags)
	all := every(1, min(len(bytes), 200))
	tries := [][]int{nil, all}
	for _, cut := range all {
		tries = append(tries, []int{cut})
	}
	for _, cuts := range tries {
		seen := c.readBody(bytes, cuts, 256)
		isRight := reflect.DeepEqual(seen, wanted)
		if each.Refused != "" {
			isRight = seen.code == c.abi[each.Refused]
		}
		if !isRight {
			return fmt.Sprintf("%v when cut at %v", seen, cuts[:min(3, len(cuts))])
		}
	}
	return ""
}

func routeProblem(c *Core, each Case) string {
	routes, err := c.newRoutes()
	if err != nil {
		return err.Error()
	}
	defer routes.free()
	if each.Listeners == nil {
		each.Listeners = [][2]any{{"", 0.0}}
	}
	for _, listener := range each.Listeners {
		if err := routes.addListener(listener[0].(string), int32(listener[1].(float64))); err != nil {
			return err.Error()
		}
	}
	for _, route := range each.Routes {
		if err := routes.addRoute(route); err != nil {
			return err.Error()
		}
	}
	for _, request := range each.Requests {
		wanted, isCode := request.Expect.(string)
		id := routes.match(request)
		if isCode && id != c.abi[wanted] || !isCode && id != int32(request.Expect.(float64)) {
			return fmt.Sprintf("%d instead of %v", id, request.Expect)
		}
	}
	return ""
}

var vocabularies = map[string]int32{}

// tokensProblem loads each vocabulary once, when the first text needs it.
func tokensProblem(c *Core, each Case) string {
	vocabulary, isLoaded := vocabularies[each.Encoding]
	if !isLoaded {
		file, err := readVocabulary(filepath.Join(filepath.Dir(os.Args[1]), each.Encoding+".tokens.br"))
		if err == nil {
			vocabulary, err = c.loadVocabulary(file)
		}
		if err != nil {
			return err.Error()
		}
		vocabularies[each.Encoding] = vocabulary
	}
	text := each.Text.bytes()
	if count, err := c.countTokens(vocabulary, text); err != nil || count != each.Count {
		return fmt.Sprintf("%d tokens instead of %d, %v", count, each.Count, err)
	}
	if ids, err := c.encodeTokens(vocabulary, text, len(each.IDs)); err != nil || !slices.Equal(ids, each.IDs) {
		return fmt.Sprint("other ids: ", ids, err)
	}
	return ""
}

func rateProblem(c *Core, each Case) (problem string) {
	const groups, keyBytes = int32(4), int32(48)
	size, err := c.check(c.call("rate_size", groups, keyBytes))
	if err != nil {
		return err.Error()
	}
	table := uint32(c.call("block_new", size))
	defer c.call("block_free", table)
	c.scratch(func() {
		secret := make([]byte, 16)
		_, _ = rand.Read(secret)
		c.call("rate_format", table, groups, keyBytes, c.put(secret))
		out, key := c.alloc(int(c.abi["RATE_SIZE"])), c.put([]byte("key"))
		period, capacity := each.Unit/each.Rate, each.Rate+each.Burst
		for _, step := range each.Steps {
			answer := c.call("rate_"+step.Do, table, int32(1), key, int32(3), period, capacity, step.Amount, step.At, out)
			wait, remaining, reset := c.double(out), c.double(out+8), c.double(out+16)
			isRight := answer >= 0 && (step.Is == nil || *step.Is == (answer == 1)) &&
				(step.Remaining == nil || *step.Remaining == remaining) &&
				(step.Reset == nil || math.Abs(*step.Reset-reset) < 1e-4)
			switch expected := step.Wait.(type) {
			case string:
				isRight = isRight && math.IsInf(wait, 1)
			case float64:
				isRight = isRight && math.Abs(expected-wait) < 1e-4
			}
			if !isRight {
				problem = fmt.Sprintf("%s at %v: %d, %v, %v, %v", step.Do, step.At, answer, wait, remaining, reset)
				return
			}
		}
	})
	return problem
}

var suites = map[string]func(*Core, Case) string{
	"heads": headProblem, "chunks": bodyProblem, "regex/cases": regexProblem, "regex/masks": maskProblem,
	"routes": routeProblem, "tokens/cases": tokensProblem, "rate": rateProblem,
}

// readCases reads the files of a folder: a list of cases, or an object that has one.
func readCases(folder string) (cases []Case, err error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.json"))
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var list []Case
		if json.Unmarshal(text, &list) != nil {
			var file struct{ Cases []Case }
			if err := json.Unmarshal(text, &file); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			list = file.Cases
		}
		cases = append(cases, list...)
	}
	return cases, err
}

func main() {
	if len(os.Args) != 4 {
		panic("usage: main core.wasm core.abi.json test/core")
	}
	core, err := openCore(context.Background(), os.Args[1], os.Args[2])
	if err != nil {
		panic(err)
	}
	run, failures := map[string]int{}, []string{}
	for name, problemOf := range suites {
		cases, err := readCases(filepath.Join(os.Args[3], name))
		if err != nil {
			panic(err)
		}
		run[name] = len(cases)
		for _, each := range cases {
			if problem := problemOf(core, each); problem != "" {
				failures = append(failures, fmt.Sprintf("%s: %s%s %s: %s", name, each.Title, each.Name, each.Pattern, problem))
			}
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"run": run, "failures": failures})
	if len(failures) > 0 {
		os.Exit(1)
	}
}
