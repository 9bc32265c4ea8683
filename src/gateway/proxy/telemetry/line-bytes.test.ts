import { expect, it } from 'vitest'
import { LineBytes } from './line-bytes.ts'

it('reuses a buffer once it is released, and not before', () => {
  const lines = new LineBytes(32 * 1_024)
  const takeBatch = () => {
    lines.ascii('x'.repeat(20_000))
    return lines.take(lines.length).buffer
  }
  const first = takeBatch()
  lines.release()
  const second = takeBatch()
  lines.release()
  expect(second).not.toBe(first)
  expect(takeBatch()).toBe(first)
  expect(takeBatch()).toBe(second)
  // Both may still be read.
  expect([first, second]).not.toContain(takeBatch())
})
