import { describe, expect, it } from 'vitest'
import { MemoryBody } from '../../../ground/exchange/memory-message.ts'
import { FormBody } from './form-body.ts'
import { MultipartReader } from './reader.ts'

/** A generator of the same numbers in each run. */
function numbersFrom(seed: number) {
  let state = seed
  return (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const characters = "0123456789abcXYZ'()+_,-./:=?"

interface Example {
  readonly boundary: string
  readonly parts: readonly (readonly [name: string, value: Buffer, isFile: boolean])[]
  readonly bytes: Buffer
}

/** Makes a body whose contents are full of line ends, dashes and beginnings of its boundary. */
function exampleOf(seed: number): Example {
  const below = numbersFrom(seed)
  const length = 1 + below(70)
  const boundary = Array.from({ length }, () => characters[below(characters.length)]).join('')
  const pieces = ['\r', '\n', '\r\n', '-', '--', '\r\n-', `--${boundary.slice(0, -1)}`, 'a', '\0']
  const content = () =>
    Array.from({ length: below(30) }, () => pieces[below(pieces.length)]).join('')
  const clean = (text: string) => text.replaceAll(`--${boundary}`, '')
  const parts = Array.from({ length: 1 + below(5) }, (_, at) => {
    let value = content()
    while (clean(value) !== value) value = clean(value)
    return [`field${at}`, Buffer.from(value), at > 1] as const
  })
  const bytes = Buffer.concat([
    ...parts.map(([name, value, isFile]) =>
      Buffer.concat([
        Buffer.from(
          `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${isFile ? '; filename="x"' : ''}\r\n\r\n`,
        ),
        value,
        Buffer.from('\r\n'),
      ]),
    ),
    Buffer.from(`--${boundary}--${seed % 2 === 0 ? '\r\n' : ''}`),
  ])
  return { boundary, parts, bytes }
}

function readAll({ boundary, bytes }: Example, cuts: readonly number[]) {
  const found: [name: string, value: Buffer, isFile: boolean][] = []
  const reader = new MultipartReader(boundary, {
    onPart: ({ name, isFile }) => void found.push([name, Buffer.alloc(0), isFile]),
    onContent: (piece) => {
      const part = found.at(-1)
      if (part !== undefined) part[1] = Buffer.concat([part[1], piece])
    },
    onPartEnd: () => undefined,
    onLast: () => undefined,
  })
  let from = 0
  for (const to of [...cuts, bytes.length]) {
    reader.push(bytes.subarray(from, to))
    from = to
  }
  reader.end()
  return found
}

describe('a multipart body with any boundary', () => {
  it('is read alike for any cut', () => {
    for (let seed = 1; seed <= 300; seed++) {
      const example = exampleOf(seed)
      const below = numbersFrom(seed + 1_000)
      const { length } = example.bytes
      const cuts = Array.from({ length: 5 }, () => below(length)).toSorted((a, b) => a - b)
      expect(readAll(example, [])).toEqual(example.parts)
      expect(readAll(example, cuts)).toEqual(example.parts)
      expect(
        readAll(
          example,
          Array.from({ length }, (_, at) => at),
        ),
      ).toEqual(example.parts)
    }
  })

  it('is read in linear time', () => {
    const lines = Buffer.alloc(8 * 1024 * 1024, '\r\n--')
    const head = '--x\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n'
    const bytes = Buffer.concat([Buffer.from(head), lines, Buffer.from('\r\n--x--\r\n')])
    let seen = 0
    const reader = new MultipartReader('x', {
      onPart: () => undefined,
      onContent: (piece) => {
        seen += piece.length
      },
      onPartEnd: () => undefined,
      onLast: () => undefined,
    })
    for (let at = 0; at < bytes.length; at += 4) reader.push(bytes.subarray(at, at + 4))
    reader.end()
    expect(seen).toBe(lines.length)
  })

  it('is written again with the bytes of its files, and the length that it has said', async () => {
    for (let seed = 1; seed <= 300; seed++) {
      const example = exampleOf(seed)
      const body = new MemoryBody(example.bytes)
      const form = await FormBody.read(body, [
        `multipart/form-data; boundary="${example.boundary}"`,
      ])
      form.send(body, { ...form.fields, field0: 'other', added: 'new' }, undefined)
      const sent = body.known
      if (!sent.complete) throw new Error('a body in memory is complete')
      const [first, ...others] = readAll({ ...example, bytes: Buffer.from(sent.bytes) }, [])
      expect(first).toEqual(['added', Buffer.from('new'), false])
      expect(others).toEqual([['field0', Buffer.from('other'), false], ...example.parts.slice(1)])
    }
  })
})
