import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'

/** Maximum size of a file that is read at once, unless the caller knows a smaller one. */
const defaultMaxBytes = 256 * 1024 * 1024
/** Bytes that are read beyond the size that the system has reported, to notice files that grow. */
const spare = 1

/**
 * Returns the bytes of a file that a user has named. Pipes and devices are refused, because a pipe blocks the process
 * until it is written, can be read only once, and a device may have no end.
 * @throws if it is no such file, has more than `maxBytes`, or cannot be read; the message has no path, unless it is
 * that of the system
 */
export function readFileBytes(path: string, maxBytes = defaultMaxBytes): Buffer {
  // Without blocking, because opening a pipe waits until it is written.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const found = fstatSync(file)
    if (!found.isFile()) throw new Error('not a regular file')
    return readOpen(file, found.size, maxBytes)
  } finally {
    closeSync(file)
  }
}

/** Like `readFileBytes`, as text in UTF-8. */
export const readWholeFile = (path: string, maxBytes?: number): string =>
  readFileBytes(path, maxBytes).toString('utf8')

/** Files of `/proc` have size 0, so that the end of the file counts, and not its size. */
function readOpen(file: number, size: number, maxBytes: number): Buffer {
  let bytes = Buffer.allocUnsafe(Math.min(size, maxBytes) + spare)
  let length = 0
  for (;;) {
    const read = readSync(file, bytes, length, bytes.length - length, null)
    length += read
    if (length > maxBytes) throw new Error(`more than ${maxBytes} bytes`)
    if (read === 0) return bytes.subarray(0, length)
    if (length === bytes.length) {
      const longer = Buffer.allocUnsafe(Math.min(2 * length + 4_096, maxBytes + spare))
      bytes.copy(longer, 0, 0, length)
      bytes = longer
    }
  }
}
