import { describe, expect, it } from 'vitest'
import { bytesBefore, Utf8Places } from './utf8-places.ts'

const text = 'aé€😀z'

describe('positions in a text', () => {
  it('are bytes or characters', () => {
    const places = new Utf8Places()
    for (const piece of ['aé', '€😀z']) places.add(piece)
    const positions = [0, 1, 2, 3, 5, 6]
    const bytes = bytesBefore(text, positions)
    expect(positions.map((at) => bytes.get(at))).toEqual([0, 1, 3, 6, 10, 11])
    expect([...bytes.values()].map((byte) => places.characterAt(byte))).toEqual(positions)
  })

  it('are counted in any order, and before the character that they cut', () => {
    expect([...bytesBefore(text, [6, 4, 0, 4])]).toEqual([
      [0, 0],
      [4, 6],
      [6, 11],
    ])
  })

  it('may be beyond the end', () => {
    expect(bytesBefore(text, [99]).get(99)).toBe(11)
  })
})
