package sluice

import (
	"context"
	_ "embed"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero"
	"sluice.dev/sluice/internal/abi"
)

var (
	//go:embed data/core.wasm
	coreBinary []byte
	//go:embed data/core-texts.wasm
	textsBinary []byte

	coreModule  = newModule(coreBinary)
	textsModule = newModule(textsBinary)

	corePool  = newPool(coreModule, runtime.GOMAXPROCS(0))
	textsPool = newPool(textsModule, runtime.GOMAXPROCS(0))
)

// module is a WebAssembly module, which is compiled when it is first needed.
type module func() (wazero.Runtime, wazero.CompiledModule, error)

func newModule(binary []byte) module {
	type result struct {
		runtime  wazero.Runtime
		compiled wazero.CompiledModule
	}
	compile := sync.OnceValues(func() (result, error) {
		host := wazero.NewRuntime(context.Background())
		compiled, err := host.CompileModule(context.Background(), binary)
		return result{host, compiled}, err
	})
	return func() (wazero.Runtime, wazero.CompiledModule, error) {
		made, err := compile()
		return made.runtime, made.compiled, err
	}
}

// pool has the instances of a module. The first ones are preferred, so that a program has no more of
// them than calls that run at the same time.
type pool struct {
	module    module
	limit     int
	mutex     sync.Mutex
	instances []*instance
	turn      int
}

func newPool(module module, limit int) *pool {
	return &pool{module: module, limit: limit}
}

// run calls work with an instance that nothing else uses until work returns.
func (p *pool) run(work func(*instance)) error {
	chosen, err := p.acquire(p.lockFree)
	if err != nil {
		return err
	}
	defer p.replaceTrapped(chosen)
	return chosen.runLocked(work)
}

// acquire returns an instance that lock has chosen and locked. One that has trapped since is replaced.
func (p *pool) acquire(lock func() (*instance, error)) (*instance, error) {
	for {
		chosen, err := lock()
		if err != nil || !chosen.trapped.Load() {
			return chosen, err
		}
		chosen.mutex.Unlock()
		p.replaceTrapped(chosen)
	}
}

func (p *pool) lockFree() (*instance, error) {
	p.mutex.Lock()
	for _, each := range p.instances {
		if each.mutex.TryLock() {
			p.mutex.Unlock()
			return each, nil
		}
	}
	chosen, err := p.next()
	p.mutex.Unlock()
	if err == nil {
		chosen.mutex.Lock()
	}
	return chosen, err
}

// lockNext locks an instance for a stream. Streams are spread over the instances.
func (p *pool) lockNext() (*instance, error) {
	p.mutex.Lock()
	chosen, err := p.next()
	p.mutex.Unlock()
	if err == nil {
		chosen.mutex.Lock()
	}
	return chosen, err
}

// next returns a new instance until there are enough, and then each in turn.
func (p *pool) next() (*instance, error) {
	if len(p.instances) < p.limit {
		made, err := newInstance(p.module)
		if err == nil {
			p.instances = append(p.instances, made)
		}
		return made, err
	}
	p.turn = (p.turn + 1) % len(p.instances)
	return p.instances[p.turn], nil
}

func (p *pool) replaceTrapped(failed *instance) {
	if !failed.trapped.Load() {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.instances = slices.DeleteFunc(p.instances, func(each *instance) bool { return each == failed })
	failed.close()
}

// close frees the memory of the instances. Nothing may use them any more.
func (p *pool) close() {
	for _, each := range p.instances {
		each.close()
	}
}

// forget frees what the instances keep for a compiled object.
func (p *pool) forget(id uint64, free string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, each := range p.instances {
		each.later(func() {
			if kept, ok := each.handles[id]; ok {
				delete(each.handles, id)
				each.call(free, i32(kept.handle))
				each.freePatterns(kept.patterns)
			}
		})
	}
}

// compiled is something that instances keep under a handle. Each instance compiles it when it is first
// needed there.
type compiled struct {
	pool  *pool
	id    uint64
	build func(*instance) int32
}

var lastID atomic.Uint64

// newCompiled builds in one instance at once, so that the caller gets the errors of what was given.
func newCompiled(in *pool, free string, build func(*instance) int32) (*compiled, error) {
	made := &compiled{in, lastID.Add(1), build}
	if err := in.run(func(on *instance) { made.handle(on) }); err != nil {
		return nil, err
	}
	id := made.id
	runtime.AddCleanup(made, func(in *pool) { in.forget(id, free) }, in)
	return made, nil
}

func (c *compiled) handle(on *instance) int32 {
	known, ok := on.handles[c.id]
	if !ok {
		on.patterns = nil
		on.orUndo(func() { on.freePatterns(on.patterns) }, func() { known.handle = c.build(on) })
		known.patterns = on.patterns
		on.handles[c.id] = known
	}
	return known.handle
}

func (i *instance) freePatterns(handles []int32) {
	for _, each := range handles {
		i.call("regex_free", i32(each))
	}
}

// session is a handle that exists in one instance only, such as the state of a stream.
type session struct {
	on      *instance
	pool    *pool
	free    string
	handle  int32
	cleanup runtime.Cleanup
}

func (p *pool) open(free string, build func(*instance) int32) (*session, error) {
	on, err := p.acquire(p.lockNext)
	if err != nil {
		return nil, err
	}
	defer p.replaceTrapped(on)
	opened := &session{on: on, pool: p, free: free}
	if err := on.runLocked(func(*instance) { opened.handle = build(on) }); err != nil {
		return nil, err
	}
	handle := opened.handle
	opened.cleanup = runtime.AddCleanup(opened, func(on *instance) {
		on.later(func() { on.call(free, i32(handle)) })
	}, on)
	return opened, nil
}

func (s *session) locked(work func()) error {
	s.on.mutex.Lock()
	defer s.pool.replaceTrapped(s.on)
	return s.on.runLocked(func(*instance) { work() })
}

func (s *session) run(work func(on *instance, handle int32)) error {
	return s.locked(func() {
		if s.handle == 0 {
			fail(fmt.Errorf("sluice: the stream is closed"))
		}
		work(s.on, s.handle)
	})
}

// close frees the handle. It may be called more than once.
func (s *session) close() {
	s.cleanup.Stop()
	// An instance that has trapped keeps nothing.
	_ = s.locked(func() {
		if s.handle != 0 {
			s.on.call(s.free, i32(s.handle))
			s.handle = 0
		}
	})
}

// CoreError is a call that the core refused.
type CoreError struct {
	// Action says what was tried.
	Action string
	// Name is the name of the code in core.abi.json, for example "ERROR_MEMORY".
	Name string
}

func (e *CoreError) Error() string { return "sluice: " + e.Action + " failed: " + e.Name }

func codeName(code int32) string {
	if name := abi.CodeName(code); name != "" {
		return name
	}
	return fmt.Sprintf("code %d", code)
}
