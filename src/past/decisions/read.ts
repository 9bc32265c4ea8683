/** Reads blocks of decisions. A damaged part is skipped and reported with its file and offset. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readBlock } from './block-reader.ts'
import { framesOf } from './frame.ts'
import type { RecordedDecision } from './record.ts'
import { decisionFiles } from './ring.ts'

/** A part of a file that cannot be read. */
export interface ReadProblem {
  readonly file: string
  readonly offset: number
  readonly message: string
}

export type ReadResult = { readonly decision: RecordedDecision } | { readonly problem: ReadProblem }

/**
 * Yields every decision in a folder, in the order in which requests ended. Each ring is read file by file,
 * so that memory use does not depend on the number of files. If a text is given, blocks that do not contain
 * it are skipped.
 */
export function readFolder(folder: string, text?: string): Generator<ReadResult> {
  const groups = [...Map.groupBy(decisionFiles(folder), ringOf).values()]
  const rings = groups.map((names) => readFiles(folder, names, text))
  const [only] = rings
  return only !== undefined && rings.length === 1 ? only : mergeByEnd(rings)
}

/** Yields at most a number of decisions of a folder, about the newest ones; unreadable parts are skipped. */
export function* readNewest(folder: string, most: number): Generator<RecordedDecision> {
  const rings = [...Map.groupBy(decisionFiles(folder), ringOf).values()]
  const mostOfRing = Math.ceil(most / Math.max(1, rings.length))
  for (const names of rings) yield* newestOfRing(folder, names.toReversed(), mostOfRing)
}

function* newestOfRing(
  folder: string,
  names: readonly string[],
  most: number,
): Generator<RecordedDecision> {
  let left = most
  for (const name of names) {
    for (const block of blocksIn(join(folder, name)).toReversed()) {
      if (left <= 0) return
      try {
        for (const decision of readBlock(block)) {
          if (left-- <= 0) return
          yield decision
        }
      } catch {
        // The block was damaged, or has another version.
      }
    }
  }
}

/** The readable blocks of a file; none if a running proxy has deleted it. */
function blocksIn(file: string): Buffer[] {
  try {
    return [...framesOf(readFileSync(file))].flatMap((frame) =>
      'block' in frame ? [frame.block] : [],
    )
  } catch {
    return []
  }
}

/** Returns the name of the ring: the file name without the number of the file. */
const ringOf = (name: string): string => name.slice(0, name.lastIndexOf('-'))

function* readFiles(
  folder: string,
  names: readonly string[],
  text: string | undefined,
): Generator<ReadResult> {
  for (const name of names) {
    const file = join(folder, name)
    try {
      yield* readBlocks(readFileSync(file), file, text)
    } catch (error) {
      // A running proxy may have deleted the oldest file of its ring.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue
      yield { problem: { file, offset: 0, message: (error as Error).message } }
    }
  }
}

/** Merges the decisions of several rings, each of which is in order. */
function* mergeByEnd(rings: readonly Generator<ReadResult>[]): Generator<ReadResult> {
  const heads: { readonly ring: Generator<ReadResult>; decision: RecordedDecision; end: number }[] =
    []
  for (const ring of rings) {
    const decision = yield* nextDecision(ring)
    if (decision !== undefined) heads.push({ ring, decision, end: endOf(decision) })
  }
  for (;;) {
    const [first, ...others] = heads
    if (first === undefined) return
    const earliest = others.reduce((least, head) => (head.end < least.end ? head : least), first)
    yield { decision: earliest.decision }
    const decision = yield* nextDecision(earliest.ring)
    if (decision === undefined) heads.splice(heads.indexOf(earliest), 1)
    else {
      earliest.decision = decision
      earliest.end = endOf(decision)
    }
  }
}

const endOf = ({ time, response }: RecordedDecision): number =>
  Date.parse(time) + response.durationMs

/** Yields the problems before the next decision of a ring, and returns that decision. */
function* nextDecision(
  ring: Generator<ReadResult>,
): Generator<ReadResult, RecordedDecision | undefined> {
  for (;;) {
    const { done, value } = ring.next()
    if (done === true) return undefined
    if ('decision' in value) return value.decision
    yield value
  }
}

/**
 * Yields the decisions of a file or a message, which consists of blocks. If a text is given, blocks that do
 * not contain it are skipped.
 */
export function* readBlocks(bytes: Buffer, file: string, text?: string): Generator<ReadResult> {
  for (const frame of framesOf(bytes)) {
    const { offset } = frame
    if ('problem' in frame) {
      yield { problem: { file, offset, message: frame.problem } }
      continue
    }
    if (text !== undefined && !frame.block.includes(text)) continue
    try {
      for (const decision of readBlock(frame.block)) yield { decision }
    } catch (error) {
      yield { problem: { file, offset, message: (error as Error).message } }
    }
  }
}
