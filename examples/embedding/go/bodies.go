package main

import (
	"sort"
	"strings"
)

// body is what there is of a chunked body, and the code of the last call. Texts are Latin-1.
type body struct {
	code                 int32
	data, trailers, rest string
	flags                []string
}

// readBody reads a body that arrives cut at `cuts`.
func (c *Core) readBody(bytes []byte, cuts []int, trailerLimit int32) (seen body) {
	c.scratch(func() {
		record := c.alloc(int(c.abi["BODY_SIZE"]))
		input := c.put(bytes)
		word := func(offset uint32) int32 { return c.word(record + offset) }
		at := func(name string) uint32 { return uint32(c.abi[name]) }
		text := func(offset uint32) string {
			return latin1(c.read(uint32(word(offset)), uint32(word(offset+4))))
		}
		c.call("chunks_start", record, trailerLimit)
		position := input
		for _, cut := range append(append([]int{}, cuts...), len(bytes)) {
			for again := true; again; again = seen.code == c.abi["CHUNKS_AGAIN"] {
				seen.code = c.call("chunks_read", record, position, input+uint32(cut))
				if seen.code < 0 {
					return
				}
				for i := range uint32(word(at("BODY_SPAN_COUNT"))) {
					seen.data += text(at("BODY_SPANS") + i*8)
				}
				if word(at("BODY_TRAILER")) != -1 {
					seen.trailers += text(at("BODY_TRAILER"))
				}
				position = uint32(word(at("BODY_CONSUMED")))
			}
			if seen.code == c.abi["CHUNKS_END"] {
				break
			}
		}
		for name, bit := range c.abi {
			if rest, isFlag := strings.CutPrefix(name, "BODY_HAS_"); isFlag && word(at("BODY_FLAGS"))&bit != 0 {
				seen.flags = append(seen.flags, rest)
			}
		}
		sort.Strings(seen.flags)
		seen.rest = latin1(bytes[position-input:])
	})
	return seen
}
