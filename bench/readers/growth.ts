/**
 * Claim: every reader of bytes from outside takes time in proportion to what it reads, whatever the
 * size of the pieces. Each row reads twice as much, in pieces of 1 byte, 4 kB or 64 kB, and must not
 * take more than 2.5 times as long.
 */
import { linesOf } from '../../src/control/kube/lines.ts'
import { type BenchContext, cpuNanoseconds, interleave, type Row } from '../harness.ts'
import { connectionReaders, http2Readers } from './connections.ts'
import { guardReaders, processorReaders } from './guards.ts'
import { modelReaders, sseReaders } from './models.ts'
import { filled, large, type Reader } from './reader.ts'
import { mcpReaders, textReaders } from './texts.ts'

const readers = [
  ...sseReaders(),
  ...modelReaders(),
  ...guardReaders(),
  ...processorReaders(),
  ...connectionReaders(),
  ...mcpReaders(),
  ...http2Readers(),
  ...textReaders(),
]

/** Least nanoseconds of a sample. */
const leastSample = 20_000_000

function readAll(reader: Reader, pieces: readonly Buffer[]): void {
  const push = reader.start()
  for (const piece of pieces) push(piece)
}

/** Nanoseconds of one reading; many are made if one is too short to be measured. */
function costOf(reader: Reader, bytes: Buffer, size: number): () => number {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size))
  const once = cpuNanoseconds(() => readAll(reader, pieces))
  const times = Math.max(1, Math.ceil(leastSample / Math.max(once, 1000)))
  return () => {
    const spent = cpuNanoseconds(() => {
      for (let time = 0; time < times; time++) readAll(reader, pieces)
    })
    return spent / times
  }
}

async function lineRows({ rounds }: BenchContext): Promise<Row[]> {
  const rows: Row[] = []
  for (const size of [1, 4096, 65_536]) {
    const cost = (length: number) => async () => {
      const bytes = filled('x', length)
      async function* pieces() {
        for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
      }
      const before = process.cpuUsage()
      for await (const _ of linesOf(pieces()));
      const { user, system } = process.cpuUsage(before)
      return (user + system) * 1000
    }
    const length = size === 1 ? 64 * 1024 : 1024 * 1024
    const samples = await interleave(rounds, { twice: cost(2 * length), once: cost(length) })
    rows.push(rowOf(`lines.${size}`, samples))
  }
  return rows
}

const rowOf = (id: string, { twice, once }: { twice: number[]; once: number[] }): Row => ({
  id: `readers.${id}`,
  unit: 'ns',
  own: twice,
  peer: { name: 'half of the bytes', samples: once },
  as: 'cost',
  bound: { atMost: 2.5 },
})

export default async function readersBench(context: BenchContext): Promise<Row[]> {
  const rows: Row[] = []
  for (const reader of readers) {
    for (const size of reader.isWhole === true ? [large] : [1, 4096, 65_536]) {
      // A byte at a time costs a call for each: fewer of them say as much.
      const length = size === 1 ? Math.min(reader.size, 64 * 1024) : reader.size
      const bytes = [reader.bytes(length), reader.bytes(2 * length)] as const
      const samples = await interleave(context.rounds, {
        twice: costOf(reader, bytes[1], size),
        once: costOf(reader, bytes[0], size),
      })
      rows.push(rowOf(size === large ? reader.id : `${reader.id}.${size}`, samples))
    }
  }
  return [...rows, ...(await lineRows(context))]
}
