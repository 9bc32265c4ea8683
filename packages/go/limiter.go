package sluice

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"math"
	"math/bits"
	"runtime"
	"time"

	"sluice.dev/sluice/internal/abi"
)

// Limit describes the buckets of a [RateLimiter].
type Limit struct {
	// Rate is the number of units that return in Per, evenly.
	Rate float64
	// Per is a second if it is zero.
	Per time.Duration
	// Burst is added to the capacity of a bucket, which is Rate + Burst.
	Burst float64
	// Keys is about the number of buckets that there may be; 10,000 if it is zero.
	Keys int
}

// Decision is what a limiter decided.
type Decision struct {
	Allowed bool
	// Wait is the time until the request can be repeated. It is [Never] if the bucket can never hold the
	// amount.
	Wait time.Duration
	// Remaining is the number of units that are left.
	Remaining float64
	// Reset is the time until the bucket is full again.
	Reset time.Duration
}

// Never is the wait for an amount that is larger than a bucket.
const Never time.Duration = math.MaxInt64

// RateLimiter has one bucket for each key.
type RateLimiter struct {
	// The limiter has an instance of its own, so that its calls do not wait for others.
	pool             *pool
	table            *compiled
	period, capacity float64
	// now returns the milliseconds of a monotonic clock.
	now func() float64
}

const maxKeyBytes = 256

// digestMark is the first byte of a digest. UTF-8 never begins with it.
const digestMark = 0xff

// maxPeriod is 36 years in milliseconds. The core cannot count a refill of one unit that takes longer.
const maxPeriod = 36 * 365 * 86_400_000

// keyBytes returns the key, or its digest if it is too long for the table or looks like a digest.
func keyBytes(key string) []byte {
	if len(key) <= maxKeyBytes && !(len(key) == 1+sha256.Size && key[0] == digestMark) {
		return []byte(key)
	}
	digest := sha256.Sum256([]byte(key))
	return append([]byte{digestMark}, digest[:]...)
}

// NewRateLimiter creates a limiter whose buckets are full.
func NewRateLimiter(limit Limit) (*RateLimiter, error) {
	if limit.Per == 0 {
		limit.Per = time.Second
	}
	if limit.Keys == 0 {
		limit.Keys = 10_000
	}
	isFinite := limit.Rate+limit.Burst <= math.MaxFloat64
	if !(limit.Rate > 0 && limit.Per > 0 && limit.Burst >= 0 && limit.Keys > 0 && isFinite) {
		return nil, errors.New("sluice: Rate, Per and Keys must be positive, Burst must not be negative, and all must be finite")
	}
	period := float64(limit.Per) / float64(time.Millisecond) / limit.Rate
	if !(period > 0 && period <= maxPeriod) {
		return nil, errors.New("sluice: Per / Rate, the time in which one unit returns, must be at most 36 years")
	}
	// 32 buckets in a group; half of them stay free, so that groups of unequal size have room.
	groups := i32(min(65_536, int32(1)<<bits.Len(uint(min(limit.Keys, 1<<24)*2-1)/32)))
	start := time.Now()
	limiter := &RateLimiter{
		pool:     newPool(coreModule, 1),
		period:   period,
		capacity: limit.Rate + limit.Burst,
		now:      func() float64 { return float64(time.Since(start)) / float64(time.Millisecond) },
	}
	var err error
	limiter.table, err = newCompiled(limiter.pool, "block_free", func(on *instance) int32 {
		size := on.checked("creating a limiter", "rate_size", groups, i32(maxKeyBytes))
		table := on.block(int(size))
		secret := make([]byte, 16)
		_, _ = rand.Read(secret) // It never returns an error.
		place, _ := on.put(secret)
		on.checked("creating a limiter", "rate_format", table.arg(), groups, i32(maxKeyBytes), place)
		return int32(table)
	})
	if err != nil {
		return nil, err
	}
	runtime.AddCleanup(limiter, func(pool *pool) { pool.close() }, limiter.pool)
	return limiter, nil
}

// Take takes units from the bucket of a key if the bucket has them. A key may have any length. If the
// table has no room for another bucket, the request is not allowed.
func (l *RateLimiter) Take(key string, amount float64) (Decision, error) {
	return l.call("rate_take", key, amount)
}

// Peek returns what Take would return.
func (l *RateLimiter) Peek(key string, amount float64) (Decision, error) {
	return l.call("rate_peek", key, amount)
}

// Charge takes units after the fact; the balance may become negative. A negative amount gives units back.
func (l *RateLimiter) Charge(key string, amount float64) (Decision, error) {
	return l.call("rate_charge", key, amount)
}

func (l *RateLimiter) call(function, key string, amount float64) (decision Decision, err error) {
	now := l.now()
	err = l.pool.run(func(on *instance) {
		table := l.table.handle(on)
		place, length := on.put(keyBytes(key))
		out := on.alloc(abi.RateSize)
		answer := on.call(function, i32(table), i32(1), place, length,
			f64(l.period), f64(l.capacity), f64(amount), f64(now), out.arg())
		switch {
		case answer == abi.RateFull:
			decision = Decision{Wait: duration(l.period)}
		case answer < 0:
			fail(&CoreError{"limiting", codeName(answer)})
		default:
			decision = Decision{
				Allowed:   answer == 1,
				Wait:      duration(on.double(out + abi.RateWait)),
				Remaining: on.double(out + abi.RateRemaining),
				Reset:     duration(on.double(out + abi.RateReset)),
			}
		}
	})
	runtime.KeepAlive(l)
	return decision, err
}

// duration rounds milliseconds up, so that a request after this time is not early.
func duration(milliseconds float64) time.Duration {
	nanoseconds := math.Ceil(milliseconds * 1e6)
	if nanoseconds >= math.MaxInt64 {
		return Never
	}
	return time.Duration(nanoseconds)
}
