import { describe, expect, it } from 'vitest'
import { lastMessageOf } from './last-message.ts'
import { SimilarRequests, unitVector } from './similar-requests.ts'

const vector = (...numbers: number[]) => unitVector(numbers) ?? new Float32Array()
const entry = (key: string, numbers: number[], group = 'g') => ({
  ...{ group, key, vector: vector(...numbers), words: key, sequence: key },
  storedAt: Date.now(),
  expiresAt: Date.now() + 60_000,
})
const asked = (...numbers: number[]) => ({ vector: vector(...numbers), words: 'w', sequence: 's' })
const any = { threshold: 0.9, since: Number.NEGATIVE_INFINITY }

describe('SimilarRequests', () => {
  it('returns the most similar request of the group', () => {
    const all = new SimilarRequests(1e6)
    all.add(entry('far', [1, 0.4]), 10)
    all.add(entry('near', [1, 0.1]), 10)
    all.add(entry('other', [1, 0], 'h'), 10)
    expect(all.find('g', asked(1, 0), any)).toMatchObject({ key: 'near' })
    expect(all.find('g', asked(0, 1), any)).toBeUndefined()
    expect(all.find('g', asked(1, 0, 0), any)).toBeUndefined()
    expect(all.find('g', asked(1, 0), { ...any, since: Date.now() + 1_000 })).toBeUndefined()
    all.forget('g', 'near')
    expect(all.find('g', asked(1, 0), any)).toMatchObject({ key: 'far' })
  })

  it('drops the oldest requests of a full group, and of a full memory', () => {
    const all = new SimilarRequests(1e6)
    for (const key of ['a', 'b', 'c']) all.add(entry(key, [1, 0]), 2)
    all.forget('g', 'c')
    all.forget('g', 'b')
    expect(all.find('g', asked(1, 0), any)).toBeUndefined()
    const small = new SimilarRequests(1_100)
    for (const [at, key] of ['a', 'b', 'c'].entries()) small.add(entry(key, [1, 0], `${at}`), 9)
    expect([0, 1, 2].map((at) => small.find(`${at}`, asked(1, 0), any)?.key)).toEqual([
      undefined,
      'b',
      'c',
    ])
  })

  it('does not find requests that have expired', () => {
    const all = new SimilarRequests(1e6)
    all.add({ ...entry('old', [1, 0]), expiresAt: Date.now() - 1 }, 10)
    expect(all.find('g', asked(1, 0), any)).toBeUndefined()
  })
})

describe('unitVector', () => {
  it('refuses numbers without a direction', () => {
    for (const numbers of [[], [0, 0], [1, 'a'], [1, null], [Number.NaN], [1e300, 1e300]]) {
      expect(unitVector(numbers)).toBeUndefined()
    }
    expect([...vector(3, 4)].map((one) => Math.round(one * 10))).toEqual([6, 8])
  })
})

describe('lastMessageOf', () => {
  it('reads the last message of the user in every format', () => {
    const bodies = [
      { messages: [{ role: 'user', content: 'Hi' }] },
      { messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] },
      { messages: [{ role: 'user', content: [{ text: 'Hi' }] }] },
      { input: 'Hi' },
      { input: [{ role: 'user', content: [{ type: 'input_text', text: 'Hi' }] }] },
      { contents: [{ parts: [{ text: 'Hi' }] }] },
    ]
    for (const body of bodies) {
      expect(lastMessageOf(body)?.text).toBe('Hi')
      expect(JSON.stringify(lastMessageOf(body)?.rest)).not.toContain('Hi')
    }
  })

  it('refuses messages with anything else', () => {
    const bodies = [
      {},
      { messages: [] },
      { messages: [{ role: 'assistant', content: 'Hi' }] },
      { messages: [{ role: 'user', content: [{ type: 'tool_result', text: 'Hi' }] }] },
      { messages: [{ role: 'user', content: [{ text: 'Hi' }, { image: {} }] }] },
      { messages: [{ role: 'user', content: ' ' }] },
      { input: [{ type: 'function_call_output', output: 'Hi' }] },
      { contents: [{ role: 'model', parts: [{ text: 'Hi' }] }] },
    ]
    for (const body of bodies) expect(lastMessageOf(body)).toBeUndefined()
  })
})
