/**
 * How blocks lie in a file: a mark, the length of the block, its CRC-32, the block. After a damaged
 * block the reader looks for the next mark.
 */
import { crc32 } from 'node:zlib'

/** `SLD1`, little-endian. */
const mark = 0x31_44_4c_53
export const frameBytes = 12
/** No block is longer. */
const mostBlockBytes = 1 << 20

/** Fills in the frame in front of a block that begins at `frameBytes`. */
export function closeFrame(bytes: Buffer, end: number): void {
  bytes.writeUInt32LE(mark, 0)
  bytes.writeUInt32LE(end - frameBytes, 4)
  bytes.writeUInt32LE(crc32(bytes.subarray(frameBytes, end)), 8)
}

/** A block, or bytes that hold none. */
type FoundFrame =
  | { readonly offset: number; readonly end: number; readonly block: Buffer }
  | { readonly offset: number; readonly end: number; readonly problem: string }

const markBytes = Buffer.from('SLD1', 'latin1')
const wrongSum = 'the checksum of the block differs'
/**
 * How often, on average, the bytes of a file may be summed in vain. Beyond that, blocks with a wrong checksum
 * are skipped as a whole, so that the time stays linear however many marks a damaged file contains.
 */
const mostSums = 4

/** The frames of a file in order, damaged parts among them. */
export function* framesOf(bytes: Buffer): Generator<FoundFrame> {
  let offset = 0
  let budget = mostSums * bytes.length
  while (offset < bytes.length) {
    const problem = problemAt(bytes, offset)
    if (problem === undefined) {
      const end = endAt(bytes, offset)
      yield { offset, end, block: bytes.subarray(offset + frameBytes, end) }
      offset = end
      continue
    }
    let next = offset
    let reason: string | undefined = problem
    while (next >= 0 && reason !== undefined) {
      const end = reason === wrongSum ? endAt(bytes, next) : next + 1
      budget -= end - next
      next = bytes.indexOf(markBytes, budget < 0 ? end : next + 1)
      reason = next < 0 ? undefined : problemAt(bytes, next)
    }
    const end = next < 0 ? bytes.length : next
    yield { offset, end, problem }
    offset = end
  }
}

const endAt = (bytes: Buffer, offset: number): number =>
  offset + frameBytes + bytes.readUInt32LE(offset + 4)

function problemAt(bytes: Buffer, offset: number): string | undefined {
  if (offset + frameBytes > bytes.length) return 'the block is cut off'
  if (bytes.readUInt32LE(offset) !== mark) return 'no block begins here'
  const length = bytes.readUInt32LE(offset + 4)
  if (length > mostBlockBytes) return 'the length of the block is not plausible'
  const end = endAt(bytes, offset)
  if (end > bytes.length) return 'the block is cut off'
  const sum = crc32(bytes.subarray(offset + frameBytes, end))
  return sum === bytes.readUInt32LE(offset + 8) ? undefined : wrongSum
}
