import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { encodeBody } from '../../../control/wire/encode.ts'
import { splitDelta } from '../../../control/wire/pieces.ts'
import { LastGood } from './last-good.ts'
import { ReceivedState } from './received-state.ts'

function received(n: number, size = 700) {
  const [key, value] = [`secret/${n}`, new Uint8Array(size).fill(n % 251)]
  return { key, version: `v${n}`, body: encodeBody({ type: 'secret', key, digest: `${n}`, value }) }
}
const always = () => false

it('the received state keeps every resource unchanged while others are added and removed', () => {
  const state = new ReceivedState()
  const left = new Map<string, Uint8Array>()
  for (let round = 1; round <= 40; round++) {
    const fresh = Array.from({ length: 200 }, (_, n) => received(round * 200 + n))
    const gone = [...left.keys()].slice(0, 190)
    for (const key of gone) left.delete(key)
    const pieces = state.receive(round, fresh, gone)
    for (const [at, { key }] of fresh.entries()) left.set(key, Uint8Array.from(pieces[at] ?? []))
    state.settle(round, always)
  }
  expect([...state.base()].map((piece) => Buffer.from(piece).toString('hex'))).toEqual(
    [...left.values()].map((piece) => Buffer.from(piece).toString('hex')),
  )
})

it('the received state restores accepted and rejected resources from disk, including large ones', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-last-good-'))
  try {
    const state = new ReceivedState()
    const sizes = [10, 300_000, 65_520, 200, 70_000]
    state.receive(
      1,
      sizes.map((size, n) => received(n, size)),
      [],
    )
    state.settle(1, always)
    state.receive(2, [{ ...received(0, 20), version: 'newer' }], [])
    state.settle(2, (key) => key === 'secret/0')
    await new LastGood(folder, 'default/edge').save(state.toStore(), 'now')
    const loaded = new LastGood(folder, 'default/edge').load((text) => {
      throw new Error(text)
    })
    const restored = new ReceivedState()
    restored.restore(loaded?.inForce ?? [], loaded?.refused ?? [])
    expect(restored.toStore()).toEqual(state.toStore())
    expect(loaded?.refused.map(({ version }) => version)).toEqual(['newer'])
    expect(restored.versions().get('secret/0')).toBe('')
    expect(splitDelta(new Uint8Array())).toEqual([])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
