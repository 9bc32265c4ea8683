import { expect, test } from 'vitest'
import { ManualClock } from '../../../../test/support/manual-clock.ts'
import { Timer, TimerWheel } from './timer-wheel.ts'

function recorder(): { fired: string[]; timer: (name: string, then?: () => void) => Timer } {
  const fired: string[] = []
  return {
    fired,
    timer: (name, then) =>
      new Timer({
        onTimer() {
          fired.push(name)
          then?.()
        },
      }),
  }
}

test('a timer fires at its deadline, not before', () => {
  const clock = new ManualClock()
  const wheel = new TimerWheel(clock)
  const { fired, timer } = recorder()
  wheel.arm(timer('a'), 100)
  clock.advance(99)
  expect(fired).toEqual([])
  clock.advance(11)
  expect(fired).toEqual(['a'])
  clock.advance(10_000)
  expect(fired).toEqual(['a'])
})

test('a timer with a deadline beyond one turn of the wheel fires at its deadline', () => {
  const clock = new ManualClock()
  const wheel = new TimerWheel(clock)
  const { fired, timer } = recorder()
  wheel.arm(timer('far'), 600_000)
  wheel.arm(timer('near'), 20)
  clock.advance(599_000)
  expect(fired).toEqual(['near'])
  clock.advance(1_020)
  expect(fired).toEqual(['near', 'far'])
})

test('arming a timer again moves its deadline later or earlier', () => {
  const clock = new ManualClock()
  const wheel = new TimerWheel(clock)
  const { fired, timer } = recorder()
  const later = timer('later')
  const earlier = timer('earlier')
  wheel.arm(later, 50)
  wheel.arm(earlier, 5_000)
  wheel.arm(later, 1_000)
  wheel.arm(earlier, 100)
  clock.advance(200)
  expect(fired).toEqual(['earlier'])
  clock.advance(900)
  expect(fired).toEqual(['earlier', 'later'])
})

test('a timer that was postponed by whole turns of the wheel can be armed for an earlier time', () => {
  const clock = new ManualClock()
  const wheel = new TimerWheel(clock)
  const { fired, timer } = recorder()
  const postponed = timer('postponed')
  wheel.arm(timer('other'), 60_000)
  wheel.arm(postponed, 1_000)
  wheel.arm(postponed, 1_000 + 5_120)
  clock.advance(1_500)
  wheel.arm(postponed, 100)
  clock.advance(110)
  expect(fired).toEqual(['postponed'])
})

test('a timer that another timer disarms in the same tick does not fire', () => {
  const clock = new ManualClock()
  const wheel = new TimerWheel(clock)
  const { fired, timer } = recorder()
  const both: Timer[] = []
  const disarmAll = (): void => {
    for (const each of both) wheel.disarm(each)
  }
  both.push(timer('a', disarmAll), timer('b', disarmAll))
  for (const each of both) wheel.arm(each, 30)
  clock.advance(100)
  expect(fired).toHaveLength(1)
})

test('a timer can be armed again in its own callback', () => {
  const clock = new ManualClock()
  const wheel = new TimerWheel(clock)
  const { fired, timer } = recorder()
  const again: Timer = timer('again', () => wheel.arm(again, 50))
  wheel.arm(again, 50)
  clock.advance(60)
  clock.advance(60)
  clock.advance(60)
  expect(fired).toEqual(['again', 'again', 'again'])
})
