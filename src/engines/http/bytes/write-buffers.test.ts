import { expect, test } from 'vitest'
import { createIoCore } from '../../core/index.ts'
import { WriteBuffers } from './write-buffers.ts'

const core = createIoCore({ memoryPages: 64 })

test('a write buffer joins text, bytes of the core and other bytes in order', () => {
  const buffer = new WriteBuffers(core).lease()
  const at = core.allocate(16)
  core.bytes.write('in the core', at, 'latin1')
  buffer?.addText('short \xff ')
  buffer?.addText(`${'long '.repeat(20)}\xfe `)
  buffer?.addBytes(core.bytes, at, at + 11)
  buffer?.addBytes(Buffer.from(' elsewhere'), 0, 10)
  const expected = `short \xff ${'long '.repeat(20)}\xfe in the core elsewhere`
  expect(buffer?.text()).toBe(expected)
  expect(Buffer.from(buffer?.view() ?? []).toString('latin1')).toBe(expected)
})

test('a write buffer refuses data that does not fit, and stays unchanged', () => {
  const buffer = new WriteBuffers(core).lease()
  expect(buffer?.addText('x'.repeat(16_000))).toBe(true)
  expect(buffer?.addText('y'.repeat(400))).toBe(false)
  expect(buffer?.addBytes(Buffer.alloc(400), 0, 400)).toBe(false)
  expect(buffer?.addBytes(Buffer.from('z'.repeat(384)), 0, 384)).toBe(true)
  expect(buffer?.text()).toBe('x'.repeat(16_000) + 'z'.repeat(384))
})

test('a write buffer is reusable once it is both written and no longer kept, in either order', () => {
  const buffers = new WriteBuffers(core)
  const first = buffers.lease()
  expect(first?.keep(10)).toBe(true)
  expect(first?.keep(10)).toBe(false)
  first?.addText('0123456789')
  first?.release()
  expect(buffers.lease()).not.toBe(first)
  expect(first?.copy(2, 5).toString()).toBe('234')
  first?.unkeep()
  expect(buffers.lease()).toBe(first)
  first?.keep(0)
  first?.unkeep()
  first?.release()
  expect(buffers.lease()).toBe(first)
})

test('at most half of the write buffers can be kept', () => {
  const buffers = new WriteBuffers(core)
  const all = Array.from({ length: 40 }, () => buffers.lease())
  expect(all.filter((buffer) => buffer?.keep(1)).length).toBe(32)
  for (const buffer of all) buffer?.release()
  expect(buffers.kept).toBe(32)
})

test('no write buffer is available if the core has no memory to spare', () => {
  const small = createIoCore({ memoryPages: 16 })
  expect(new WriteBuffers(small).lease()).toBeUndefined()
})
