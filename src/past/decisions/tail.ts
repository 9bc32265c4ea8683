/** Follows the records that running proxies append to the files of a folder. */
import { open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import { framesOf } from './frame.ts'
import { readBlocks } from './read.ts'
import type { RecordedDecision } from './record.ts'
import { decisionFiles } from './ring.ts'

const pollMs = 500
/** Bytes of a file that are read at a time; more than the largest block has. */
const pieceBytes = 4 << 20

/**
 * Yields the records of blocks that are written from now on. Damaged blocks are skipped. Ends when the signal
 * is aborted.
 */
export async function* tailFolder(
  folder: string,
  signal: AbortSignal,
): AsyncGenerator<RecordedDecision> {
  const offsets = new Map<string, number>()
  for (const name of namesIn(folder)) offsets.set(name, await sizeOf(join(folder, name)))
  while (!signal.aborted) {
    const names = namesIn(folder)
    for (const name of names) {
      const piece = await readFrom(join(folder, name), offsets.get(name) ?? 0)
      const complete = piece.subarray(0, completeBytes(piece))
      offsets.set(name, (offsets.get(name) ?? 0) + complete.length)
      for (const result of readBlocks(complete, name)) {
        if ('decision' in result) yield result.decision
      }
    }
    for (const name of offsets.keys()) if (!names.includes(name)) offsets.delete(name)
    await after(pollMs, undefined, { signal }).catch(() => undefined)
  }
}

/** A folder that does not exist yet has no files. */
function namesIn(folder: string): string[] {
  try {
    return decisionFiles(folder)
  } catch {
    return []
  }
}

const sizeOf = (path: string): Promise<number> =>
  stat(path).then(
    ({ size }) => size,
    () => 0,
  )

/** The bytes of a file from an offset on. Empty if there are none, or if the ring has deleted the file. */
async function readFrom(path: string, offset: number): Promise<Buffer> {
  const available = (await sizeOf(path)) - offset
  if (available <= 0) return Buffer.alloc(0)
  const file = await open(path).catch(() => undefined)
  if (file === undefined) return Buffer.alloc(0)
  try {
    const bytes = Buffer.alloc(Math.min(available, pieceBytes))
    const { bytesRead } = await file.read(bytes, 0, bytes.length, offset)
    return bytes.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

/** Number of bytes before a block at the end that is still being written. */
function completeBytes(bytes: Buffer): number {
  let complete = 0
  let isCut = false
  for (const frame of framesOf(bytes)) {
    isCut = 'problem' in frame && frame.end === bytes.length
    if (!isCut) complete = frame.end
  }
  // A damaged block as long as a piece would otherwise be read again and again.
  return isCut && bytes.length === pieceBytes ? bytes.length : complete
}
