package sluice

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"
)

func TestReplacesAnInstanceThatTraps(t *testing.T) {
	mask := MustMask(Email)
	writer := NewMaskWriter(io.Discard, mask)
	if _, err := writer.Write([]byte("text")); err != nil {
		t.Fatal(err)
	}
	trap := func(on *instance) { on.call("block_free", i32(-64)) }
	err := writer.stream.run(func(on *instance, _ int32) { trap(on) })
	if !errors.Is(err, errTrapped) {
		t.Fatal("block_free of no block:", err)
	}
	if _, err := writer.Write([]byte("text")); !errors.Is(err, errTrapped) {
		t.Error("a stream of an instance that has trapped takes more:", err)
	}
	if err := writer.Close(); !errors.Is(err, errTrapped) {
		t.Error(err)
	}
	for range 2 * runtime.GOMAXPROCS(0) {
		if masked, err := mask.MaskString("ada@example.com"); err != nil || masked != "<EMAIL_ADDRESS>" {
			t.Error(masked, err)
		}
		if err := NewMaskWriter(io.Discard, mask).Close(); err != nil {
			t.Error(err)
		}
	}
	limiter, err := NewRateLimiter(Limit{Rate: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := limiter.pool.run(trap); !errors.Is(err, errTrapped) {
		t.Error(err)
	}
	if decision, err := limiter.Take("", 1); err != nil || !decision.Allowed {
		t.Error(decision, err)
	}
}

func TestOpensNoStreamOnAnInstanceThatHasJustTrapped(t *testing.T) {
	pool := newPool(corePool.module, 1)
	defer pool.close()
	on, err := pool.acquire(pool.lockFree)
	if err != nil {
		t.Fatal(err)
	}
	// The call that trapped has not replaced the instance yet.
	if err := on.runLocked(func(on *instance) { on.call("block_free", i32(-64)) }); !errors.Is(err, errTrapped) {
		t.Fatal(err)
	}
	opened, err := pool.open("mask_free", func(on *instance) int32 { return on.call("mask_new") })
	if err != nil {
		t.Fatal(err)
	}
	opened.close()
}

func TestFreesWhatIsNotReachable(t *testing.T) {
	use := func() {
		for i := range 50 {
			mask := MustMask(Rule{Pattern: fmt.Sprint("pattern ", i)})
			if _, err := NewMaskWriter(io.Discard, mask).Write([]byte("text")); err != nil {
				t.Fatal(err)
			}
			if _, err := NewRouter([]Route{{Path: "/a+", PathType: PathRegex}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	kept := func() (count int) {
		corePool.mutex.Lock()
		defer corePool.mutex.Unlock()
		for _, each := range corePool.instances {
			each.mutex.Lock()
			if err := each.runLocked(func(on *instance) { count += len(on.handles) }); err != nil {
				t.Fatal(err)
			}
		}
		return count
	}
	use()
	if kept() == 0 {
		t.Fatal("no instance has a handle")
	}
	for deadline := time.Now().Add(30 * time.Second); kept() > 10; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatal(kept(), "handles are left")
		}
	}
}
