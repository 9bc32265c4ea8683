package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"unicode/utf16"
)

// Text is the bytes of a case: `text`, `hex` (what is not UTF-8) or `units` of UTF-16 (lone surrogates
// become U+FFFD), `repeat` times.
type Text struct {
	Text, Hex *string
	Units     []uint16
	Repeat    *int
}

func (t Text) bytes() []byte {
	var once []byte
	switch {
	case t.Hex != nil:
		once, _ = hex.DecodeString(*t.Hex)
	case t.Units != nil:
		once = []byte(string(utf16.Decode(t.Units)))
	default:
		once = []byte(*t.Text)
	}
	if t.Repeat == nil {
		return once
	}
	return bytes.Repeat(once, *t.Repeat)
}

var builtins = []Rule{
	{Builtin: "DETECT_SSN", Replacement: "<SSN>"}, {Builtin: "DETECT_CARD", Replacement: "<CREDIT_CARD>"},
	{Builtin: "DETECT_PHONE", Replacement: "<PHONE_NUMBER>"}, {Builtin: "DETECT_EMAIL", Replacement: "<EMAIL_ADDRESS>"},
	{Builtin: "DETECT_SIN", Replacement: "<CA_SIN>"},
}

// every is the multiples of a size below a length.
func every(size, length int) (cuts []int) {
	for at := 0; at < length; at += size {
		cuts = append(cuts, at)
	}
	return cuts
}

// cutsOf: nowhere, in two pieces at every byte, at every byte at once; a long text into some pieces.
func cutsOf(length int) [][]int {
	if length > 400 {
		return [][]int{nil, every(7, length), every(64, length), every(4096, length)}
	}
	cuts := [][]int{nil, {length}, every(1, length)}
	for _, cut := range every(1, length) {
		cuts = append(cuts, []int{cut})
	}
	return cuts
}

func maskProblem(c *Core, each Case) string {
	rules := each.Rules
	if rules == nil {
		rules = builtins
	}
	set, err := c.newMask(rules)
	if err != nil {
		return err.Error()
	}
	defer c.call("mask_free", set)
	text, wanted := each.Text.bytes(), Text{each.Masked, each.MaskedHex, nil, each.Repeat}.bytes()
	for _, cuts := range cutsOf(len(text)) {
		out, err := c.mask(set, text, cuts)
		if err != nil || !bytes.Equal(out, wanted) {
			return fmt.Sprintf("%q, %v, when cut at %v", out, err, cuts[:min(3, len(cuts))])
		}
	}
	if hold := c.call("mask_hold", set); each.Hold != nil && hold != *each.Hold {
		return fmt.Sprintf("may hold back %d bytes", hold)
	}
	return ""
}
