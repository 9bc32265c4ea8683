// core.wasm in Go: linear memory, codes and offsets, with wazero alone.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Core is one instance: one goroutine at a time.
type Core struct {
	ctx    context.Context
	module api.Module
	abi    map[string]int32
}

// CodeError is a negative result.
type CodeError struct{ Code, Offset int32 }

func (e CodeError) Error() string { return fmt.Sprintf("code %d at %d", e.Code, e.Offset) }

func openCore(ctx context.Context, wasm, abi string) (*Core, error) {
	var described struct {
		Version   int32
		Constants []struct {
			Name  string
			Value int32
		}
	}
	text, err := os.ReadFile(abi)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &described); err != nil {
		return nil, err
	}
	binary, err := os.ReadFile(wasm)
	if err != nil {
		return nil, err
	}
	module, err := wazero.NewRuntime(ctx).Instantiate(ctx, binary)
	if err != nil {
		return nil, err
	}
	core := &Core{ctx, module, map[string]int32{}}
	for _, constant := range described.Constants {
		core.abi[constant.Name] = constant.Value
	}
	if version := core.call("abi_version"); version != described.Version {
		return nil, fmt.Errorf("core.wasm has ABI version %d", version)
	}
	return core, nil
}

// call runs an export. Arguments are int32, uint32 or float64; a trap panics: the instance is lost.
func (c *Core) call(name string, arguments ...any) int32 {
	words := make([]uint64, len(arguments))
	for i, argument := range arguments {
		switch value := argument.(type) {
		case int32:
			words[i] = api.EncodeI32(value)
		case uint32:
			words[i] = api.EncodeU32(value)
		case float64:
			words[i] = api.EncodeF64(value)
		}
	}
	results, err := c.module.ExportedFunction(name).Call(c.ctx, words...)
	if err != nil {
		panic(err)
	}
	if len(results) == 0 {
		return 0
	}
	return api.DecodeI32(results[0])
}

func (c *Core) check(result int32) (int32, error) {
	if result < 0 {
		return result, CodeError{result, c.call("last_error_offset")}
	}
	return result, nil
}

// scratch gives what `use` allocates back in one step.
func (c *Core) scratch(use func()) {
	place := c.call("mark")
	defer c.call("reset", place)
	use()
}

func (c *Core) alloc(size int) uint32 {
	address := uint32(c.call("alloc", int32(size)))
	if address == 0 {
		panic("no room")
	}
	return address
}

func (c *Core) put(bytes []byte) uint32 {
	address := c.alloc(len(bytes) + 16)
	c.module.Memory().Write(address, bytes)
	return address
}

// read copies, since memory may move at the next call.
func (c *Core) read(start, end uint32) []byte {
	view, _ := c.module.Memory().Read(start, end-start)
	return append([]byte(nil), view...)
}

func (c *Core) word(address uint32) int32 {
	word, _ := c.module.Memory().ReadUint32Le(address)
	return int32(word)
}

func (c *Core) double(address uint32) float64 {
	bits, _ := c.module.Memory().ReadUint64Le(address)
	return math.Float64frombits(bits)
}

// compile gives the handle of a regular expression.
func (c *Core) compile(pattern string) (handle int32, err error) {
	c.scratch(func() {
		bytes := []byte(pattern)
		handle, err = c.check(c.call("regex_compile", c.put(bytes), int32(len(bytes)), int32(0)))
	})
	return handle, err
}

// findAll gives all matches in bytes.
func (c *Core) findAll(handle int32, text []byte, limit int) (spans [][2]int, err error) {
	c.scratch(func() {
		out := c.alloc(limit * 8)
		var count int32
		count, err = c.check(c.call("regex_find_all", handle, c.put(text), int32(len(text)), int32(0), out, int32(limit)))
		for i := range uint32(max(count, 0)) {
			spans = append(spans, [2]int{int(c.word(out + i*8)), int(c.word(out + i*8 + 4))})
		}
	})
	return spans, err
}

func (c *Core) test(name string, handle int32, text []byte) (is bool) {
	c.scratch(func() { is = c.call(name, handle, c.put(text), int32(len(text))) == 1 })
	return is
}

// Rule is a builtin (DETECT_*) or a pattern, and what replaces its matches; where two meet, the one
// that begins first wins.
type Rule struct {
	Builtin, Pattern, Replacement string
	Words                         []string
}

func (c *Core) newMask(rules []Rule) (int32, error) {
	set, err := c.check(c.call("mask_new"))
	if err != nil {
		return 0, err
	}
	for _, each := range rules {
		if err := c.addRule(set, each); err != nil {
			return 0, err
		}
	}
	return set, nil
}

func (c *Core) addRule(set int32, rule Rule) error {
	if rule.Words != nil {
		return c.addWords(set, rule)
	}
	name, which := "mask_add_builtin", c.abi[rule.Builtin]
	if rule.Builtin == "" {
		regex, err := c.compile(rule.Pattern)
		if err != nil {
			return err
		}
		// The set keeps it.
		defer c.call("regex_free", regex)
		name, which = "mask_add", regex
	}
	var err error
	c.scratch(func() {
		bytes := []byte(rule.Replacement)
		_, err = c.check(c.call(name, set, which, c.put(bytes), int32(len(bytes))))
	})
	return err
}

func (c *Core) addWords(set int32, rule Rule) (err error) {
	c.scratch(func() {
		words, text := []byte(strings.Join(rule.Words, "\n")), []byte(rule.Replacement)
		_, err = c.check(c.call("mask_add_words", set, c.put(words), int32(len(words)), c.put(text), int32(len(text))))
	})
	return err
}

// mask masks a text that arrives cut at `cuts`; what comes out does not depend on them.
func (c *Core) mask(set int32, text []byte, cuts []int) (masked []byte, err error) {
	stream, err := c.check(c.call("stream_new", set))
	if err != nil {
		return nil, err
	}
	defer c.call("stream_free", stream)
	from := 0
	for i := range len(cuts) + 1 {
		end, isEnd := len(text), int32(1)
		if i < len(cuts) {
			end, isEnd = cuts[i], 0
		}
		var count int32
		c.scratch(func() {
			count, err = c.check(c.call("stream_push", stream, c.put(text[from:end]), int32(end-from), isEnd))
		})
		if err != nil {
			return nil, err
		}
		start := uint32(c.call("stream_output", stream))
		masked = append(masked, c.read(start, start+uint32(count))...)
		from = end
	}
	return masked, nil
}
