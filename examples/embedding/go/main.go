// main core.wasm core.abi.json test/core: runs the case files, prints one JSON document.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"sort"
)

// Case is a row of any suite.
type Case struct {
	Title, Name, Pattern, Message, Bytes, Refused, Code, Masked string
	MaxBytes, MaxFields                                         *int
	Expect                                                      map[string]any
	Text, Hex                                                   *string
	Spans                                                       [][2]int
	Full                                                        *bool
	Offset                                                      int32
	Rate, Unit, Burst                                           float64
	Steps                                                       []Step
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
	var text []byte
	if each.Hex != nil {
		text, _ = hex.DecodeString(*each.Hex)
	} else {
		text = []byte(*each.Text)
	}
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

var builtins = []rule{
	{"DETECT_SSN", "<SSN>"}, {"DETECT_CARD", "<CREDIT_CARD>"}, {"DETECT_PHONE", "<PHONE_NUMBER>"},
	{"DETECT_EMAIL", "<EMAIL_ADDRESS>"}, {"DETECT_SIN", "<CA_SIN>"},
}

func maskProblem(c *Core, each Case) string {
	set, err := c.newMask(builtins)
	if err != nil {
		return err.Error()
	}
	defer c.call("mask_free", set)
	text := []byte(*each.Text)
	middle := len(text) / 2
	whole, err := c.mask(set, text)
	halves, other := c.mask(set, text[:middle], text[middle:])
	if err != nil || other != nil || whole != each.Masked || halves != each.Masked {
		return fmt.Sprintf("%q, in two pieces %q, %v, %v", whole, halves, err, other)
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
	"heads": headProblem, "regex/cases": regexProblem, "regex/masks": maskProblem, "rate": rateProblem,
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
