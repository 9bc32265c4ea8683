package main

import (
	"math"
	"sort"
	"strings"
)

var spans = []string{"method", "target", "path", "query", "authority", "host", "upgrade", "reason"}

var numbers = map[string]string{
	"methodId": "HEAD_METHOD_ID", "status": "HEAD_STATUS", "minor": "HEAD_MINOR",
	"port": "HEAD_PORT", "scheme": "HEAD_SCHEME", "hostField": "HEAD_HOST_FIELD",
}

// readHead gives the code and, when that is 0, the record as plain data, as JSON would decode it.
func (c *Core) readHead(message string, bytes []byte, maxBytes, maxFields int) (code int32, head map[string]any) {
	abi := c.abi
	c.scratch(func() {
		record := c.alloc(int(abi["HEAD_SIZE"]) + maxFields*int(abi["FIELD_SIZE"]))
		for offset := uint32(0); offset < uint32(abi["HEAD_SIZE"]); offset += 4 {
			c.module.Memory().WriteUint32Le(record+offset, math.MaxUint32)
		}
		c.module.Memory().WriteUint32Le(record+uint32(abi["HEAD_FIELD_LIMIT"]), uint32(maxFields))
		start := c.put(bytes)
		end := start + uint32(len(bytes))
		if message == "trailers" {
			code = c.call("head_trailers", record, start, end)
		} else {
			code = c.call("head_"+message, record, start, end, int32(0), int32(maxBytes))
		}
		if code == 0 {
			head = c.describe(record, end)
		}
	})
	return code, head
}

func (c *Core) describe(record, end uint32) map[string]any {
	at := func(name string) uint32 { return record + uint32(c.abi[name]) }
	text := func(place uint32) any {
		start := c.word(place)
		if start == -1 {
			return nil
		}
		return latin1(c.read(uint32(start), uint32(c.word(place+4))))
	}
	head := map[string]any{"contentLength": c.double(at("HEAD_CONTENT_LENGTH"))}
	for _, name := range spans {
		head[name] = text(at("HEAD_" + strings.ToUpper(name)))
	}
	for name, field := range numbers {
		head[name] = float64(c.word(at(field)))
	}
	flags := []string{}
	for name, bit := range c.abi {
		if rest, isFlag := strings.CutPrefix(name, "FLAG_"); isFlag && c.word(at("HEAD_FLAGS"))&bit != 0 {
			flags = append(flags, rest)
		}
	}
	sort.Strings(flags)
	head["flags"] = flags
	fields, hops := [][]any{}, []any{}
	for i := range max(c.word(at("HEAD_FIELD_COUNT")), 0) {
		field := at("HEAD_FIELDS") + uint32(i*c.abi["FIELD_SIZE"])
		name, value := text(field+uint32(c.abi["FIELD_NAME"])), text(field+uint32(c.abi["FIELD_VALUE"]))
		fields = append(fields, []any{name, value})
		if c.word(field+uint32(c.abi["FIELD_INFO"]))&c.abi["INFO_HOP"] != 0 {
			hops = append(hops, float64(i))
		}
	}
	head["fields"], head["hops"] = fields, hops
	head["rest"] = latin1(c.read(min(uint32(c.word(at("HEAD_END"))), end), end))
	return head
}

// latin1 is text with one character a byte.
func latin1(bytes []byte) string {
	runes := make([]rune, len(bytes))
	for i, b := range bytes {
		runes[i] = rune(b)
	}
	return string(runes)
}

func fromLatin1(text string) []byte {
	bytes := []byte{}
	for _, r := range text {
		bytes = append(bytes, byte(r))
	}
	return bytes
}
