package sluice

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"sluice.dev/sluice/internal/abi"
)

var errTrapped = errors.New("sluice: this instance of the core has failed")

// kept is the handle of a compiled object, with the handles of patterns that it refers to.
type kept struct {
	handle   int32
	patterns []int32
}

// failure is an error that ends the work of runLocked.
type failure struct{ error }

func fail(err error) { panic(failure{err}) }

// instance is one instance of a module. Except for later, its methods need the lock.
type instance struct {
	mutex     sync.Mutex
	module    api.Module
	functions map[string]api.Function
	stack     [16]uint64
	trapped   atomic.Bool
	// handles of compiled objects, by their id.
	handles map[uint64]kept
	// patterns to which the object refers that is being compiled.
	patterns []int32

	garbageMutex sync.Mutex
	garbage      []func()
}

func newInstance(module module) (*instance, error) {
	host, compiled, err := module()
	if err != nil {
		return nil, fmt.Errorf("sluice: compiling the core: %w", err)
	}
	config := wazero.NewModuleConfig().WithName("")
	instantiated, err := host.InstantiateModule(context.Background(), compiled, config)
	if err != nil {
		return nil, fmt.Errorf("sluice: starting the core: %w", err)
	}
	made := &instance{
		module:    instantiated,
		functions: map[string]api.Function{},
		handles:   map[uint64]kept{},
	}
	made.mutex.Lock()
	return made, made.runLocked(func(on *instance) {
		if on.call("abi_version") != abi.AbiVersion {
			fail(errors.New("sluice: the core has another ABI version than this package"))
		}
	})
}

// runLocked calls work, frees its scratch memory and unlocks the instance.
func (i *instance) runLocked(work func(*instance)) (err error) {
	defer i.mutex.Unlock()
	defer func() {
		switch thrown := recover().(type) {
		case nil:
		case failure:
			err = thrown.error
		default:
			panic(thrown)
		}
	}()
	i.free()
	mark := i.call("mark")
	defer func() {
		if !i.trapped.Load() {
			i.call("reset", i32(mark))
		}
	}()
	work(i)
	return nil
}

// later frees something before the instance is used again.
func (i *instance) later(free func()) {
	i.garbageMutex.Lock()
	defer i.garbageMutex.Unlock()
	i.garbage = append(i.garbage, free)
}

func (i *instance) free() {
	i.garbageMutex.Lock()
	garbage := i.garbage
	i.garbage = nil
	i.garbageMutex.Unlock()
	for _, free := range garbage {
		free()
	}
}

func (i *instance) close() { _ = i.module.Close(context.Background()) }

// call runs an export. A trap ends the work of runLocked.
func (i *instance) call(name string, arguments ...uint64) int32 {
	if i.trapped.Load() {
		fail(errTrapped)
	}
	function, ok := i.functions[name]
	if !ok {
		function = i.module.ExportedFunction(name)
		i.functions[name] = function
	}
	copy(i.stack[:], arguments)
	if err := function.CallWithStack(context.Background(), i.stack[:]); err != nil {
		// The memory cannot be trusted any more.
		i.trapped.Store(true)
		fail(fmt.Errorf("%w: %s: %w", errTrapped, name, err))
	}
	return api.DecodeI32(i.stack[0])
}

// orUndo calls undo if work fails.
func (i *instance) orUndo(undo, work func()) {
	isComplete := false
	defer func() {
		if !isComplete && !i.trapped.Load() {
			undo()
		}
	}()
	work()
	isComplete = true
}

// checked runs an export whose negative results are error codes.
func (i *instance) checked(action, name string, arguments ...uint64) int32 {
	result := i.call(name, arguments...)
	if result < 0 {
		fail(&CoreError{action, codeName(result)})
	}
	return result
}

func i32(value int32) uint64   { return api.EncodeI32(value) }
func f64(value float64) uint64 { return api.EncodeF64(value) }

// address is an offset in the memory of an instance.
type address uint32

func (a address) arg() uint64 { return api.EncodeU32(uint32(a)) }

// alloc returns memory that is freed when the work of runLocked ends.
func (i *instance) alloc(size int) address { return i.allocate("alloc", size) }

// block returns memory that lives until block_free.
func (i *instance) block(size int) address { return i.allocate("block_new", size) }

func (i *instance) allocate(function string, size int) address {
	if size <= math.MaxInt32 {
		if place := address(i.call(function, i32(int32(size)))); place != 0 {
			return place
		}
	}
	fail(fmt.Errorf("sluice: the core has no room for %d bytes", size))
	return 0
}

// put copies bytes into scratch memory, followed by the bytes that the core may read beyond them. It
// returns the arguments (address, length).
func (i *instance) put(data []byte) (place, length uint64) {
	start := i.alloc(len(data) + 16)
	i.write(start, data)
	return start.arg(), i32(int32(len(data)))
}

func (i *instance) write(start address, data []byte) {
	if !i.module.Memory().Write(uint32(start), data) {
		fail(fmt.Errorf("sluice: write of %d bytes at %d is outside of the memory", len(data), start))
	}
}

// view returns bytes of the memory, which are valid until the next call.
func (i *instance) view(start address, size int) []byte {
	data, ok := i.module.Memory().Read(uint32(start), uint32(size))
	if !ok {
		fail(fmt.Errorf("sluice: read of %d bytes at %d is outside of the memory", size, start))
	}
	return data
}

func (i *instance) word(start address) int32 {
	return int32(binary.LittleEndian.Uint32(i.view(start, 4)))
}

func (i *instance) double(start address) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(i.view(start, 8)))
}
